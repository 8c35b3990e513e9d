//! The windows that an operator keeps, and their total size.
//!
//! WINDOW_MAP-1. `bytes` and `rows` are the sums over all windows, each with its size at its last update.

use std::collections::BTreeMap;

use penstock_progress::aligned::WindowNumber;

/// The state that an operator keeps of one window.
pub(crate) trait WindowState {
    /// Returns its heap memory. The cost does not depend on the number of rows.
    fn bytes(&self) -> usize;

    /// Returns the number of rows consumed.
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
    /// Creates an empty map.
    pub(crate) fn new() -> Self {
        Self { windows: BTreeMap::new(), bytes: 0, rows: 0 }
    }

    /// Returns the heap memory of the windows.
    pub(crate) fn bytes(&self) -> usize {
        // The nodes of the map are at least half full.
        self.bytes + self.windows.len() * size_of::<(WindowNumber, CountedWindow<W>)>() * 2
    }

    /// Returns the rows consumed; a row in several windows counts for each.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the first number.
    pub(crate) fn first(&self) -> Option<WindowNumber> {
        self.windows.first_key_value().map(|(number, _)| *number)
    }

    /// Returns the last number.
    pub(crate) fn last(&self) -> Option<WindowNumber> {
        self.windows.last_key_value().map(|(number, _)| *number)
    }

    /// Returns all numbers.
    pub(crate) fn numbers(&self) -> Vec<WindowNumber> {
        self.windows.keys().copied().collect()
    }

    /// Returns all windows, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WindowNumber, &W)> {
        self.windows.iter().map(|(number, counted)| (*number, &counted.window))
    }

    /// Returns a window.
    pub(crate) fn get(&self, number: WindowNumber) -> Option<&W> {
        self.windows.get(&number).map(|counted| &counted.window)
    }

    /// Updates a window; creates it if it is missing.
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

    /// Calls `ask` with the first window, which may move its cursor but not change its size.
    pub(crate) fn with_first<R>(&mut self, ask: impl FnOnce(WindowNumber, &mut W) -> R) -> Option<R> {
        self.windows.first_entry().map(|mut entry| ask(*entry.key(), &mut entry.get_mut().window))
    }

    /// Adds a missing window.
    pub(crate) fn insert(&mut self, number: WindowNumber, window: W) {
        let (bytes, rows) = (window.bytes(), window.rows());
        self.bytes += bytes;
        self.rows += rows;
        let replaced = self.windows.insert(number, CountedWindow { window, bytes, rows });
        debug_assert!(replaced.is_none(), "a new window replaces no other");
    }

    /// Removes a window.
    pub(crate) fn remove(&mut self, number: WindowNumber) -> Option<W> {
        let counted = self.windows.remove(&number)?;
        self.bytes -= counted.bytes;
        self.rows -= counted.rows;
        Some(counted.window)
    }

    /// Returns all windows, in order.
    pub(crate) fn into_windows(self) -> impl Iterator<Item = (WindowNumber, W)> {
        self.windows.into_iter().map(|(number, counted)| (number, counted.window))
    }

    /// Splits off the windows below that number.
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
