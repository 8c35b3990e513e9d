//! The windows that an operator keeps, and what they hold together.
//!
//! WINDOW_MAP-1. `bytes` and `rows` are what all windows hold: each counts with what it had when it was last updated.

use std::collections::BTreeMap;

use penstock_progress::aligned::WindowNumber;

/// What an operator keeps of one window.
pub(crate) trait WindowState {
    /// Heap memory that it holds. Takes no longer with more rows.
    fn bytes(&self) -> usize;

    /// Rows that were taken in.
    fn rows(&self) -> u64;
}

struct CountedWindow<W> {
    window: W,
    bytes: usize,
    rows: u64,
}

/// Windows by their number.
pub(crate) struct WindowMap<W> {
    windows: BTreeMap<WindowNumber, CountedWindow<W>>,
    bytes: usize,
    rows: u64,
}

impl<W: WindowState> WindowMap<W> {
    /// No window.
    pub(crate) fn new() -> Self {
        Self { windows: BTreeMap::new(), bytes: 0, rows: 0 }
    }

    /// Heap memory that the windows hold.
    pub(crate) fn bytes(&self) -> usize {
        // The nodes of the map are at least half full.
        self.bytes + self.windows.len() * size_of::<(WindowNumber, CountedWindow<W>)>() * 2
    }

    /// Rows that were taken into them; one that is in several windows counts for each.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The first number.
    pub(crate) fn first(&self) -> Option<WindowNumber> {
        self.windows.first_key_value().map(|(number, _)| *number)
    }

    /// The last number.
    pub(crate) fn last(&self) -> Option<WindowNumber> {
        self.windows.last_key_value().map(|(number, _)| *number)
    }

    /// All numbers.
    pub(crate) fn numbers(&self) -> Vec<WindowNumber> {
        self.windows.keys().copied().collect()
    }

    /// All windows, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WindowNumber, &W)> {
        self.windows.iter().map(|(number, counted)| (*number, &counted.window))
    }

    /// A window.
    pub(crate) fn get(&self, number: WindowNumber) -> Option<&W> {
        self.windows.get(&number).map(|counted| &counted.window)
    }

    /// Updates a window, which is made if it is not there.
    pub(crate) fn update<R>(
        &mut self,
        number: WindowNumber,
        make: impl FnOnce() -> W,
        update: impl FnOnce(&mut W) -> R,
    ) -> R {
        let new = || CountedWindow { window: make(), bytes: 0, rows: 0 };
        let counted = self.windows.entry(number).or_insert_with(new);
        let result = update(&mut counted.window);
        let (bytes, rows) = (counted.window.bytes(), counted.window.rows());
        self.bytes = self.bytes - counted.bytes + bytes; // WINDOW_MAP-1
        self.rows = self.rows - counted.rows + rows;
        (counted.bytes, counted.rows) = (bytes, rows);
        result
    }

    /// Asks the first window, which may note how far it has come, but not hold more or less.
    pub(crate) fn with_first<R>(&mut self, ask: impl FnOnce(WindowNumber, &mut W) -> R) -> Option<R> {
        self.windows.first_entry().map(|mut entry| ask(*entry.key(), &mut entry.get_mut().window))
    }

    /// Adds a window that is not there.
    pub(crate) fn insert(&mut self, number: WindowNumber, window: W) {
        let (bytes, rows) = (window.bytes(), window.rows());
        self.bytes += bytes;
        self.rows += rows;
        let replaced = self.windows.insert(number, CountedWindow { window, bytes, rows });
        debug_assert!(replaced.is_none(), "the window is there");
    }

    /// Takes a window out.
    pub(crate) fn remove(&mut self, number: WindowNumber) -> Option<W> {
        let counted = self.windows.remove(&number)?;
        self.bytes -= counted.bytes;
        self.rows -= counted.rows;
        Some(counted.window)
    }

    /// All windows, taken out, in order.
    pub(crate) fn into_windows(self) -> impl Iterator<Item = (WindowNumber, W)> {
        self.windows.into_iter().map(|(number, counted)| (number, counted.window))
    }

    /// Takes the windows below that number out.
    pub(crate) fn remove_below(&mut self, number: WindowNumber) -> Self {
        let above = self.windows.split_off(&number);
        let windows = std::mem::replace(&mut self.windows, above);
        let bytes = windows.values().map(|counted| counted.bytes).sum();
        let rows = windows.values().map(|counted| counted.rows).sum();
        self.bytes -= bytes;
        self.rows -= rows;
        Self { windows, bytes, rows }
    }
}
