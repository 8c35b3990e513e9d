//! One column of rows that an operator keeps.
//!
//! STORED-1. It owns all its bytes: those of long strings are copied into its arenas when a row is added. Gathered
//!     columns share those arenas, so that a result needs no copy of its strings.
//! STORED-2. The mask is empty while no row is null, and as long as the values afterwards.
//! STORED-3. A view under a null is that of the empty string.

use std::sync::Arc;

use penstock_memory::payload::ArenaWriter;
use penstock_memory::view::{INLINE_BYTES, make_view, view_len, with_bytes};
use penstock_memory::{Column, Payload, Payloads, Physical, Values, ValuesBuf, for_each_kind};

use crate::heap_bytes;

/// The first arena of a column.
const SMALLEST_ARENA: usize = 1 << 10;
/// Later ones are half as long as all before them, up to this.
const LARGEST_ARENA: usize = 64 << 20;
/// Fewer unused bytes than this are not worth a copy of the others.
const WORTH_COMPACTING: usize = 16 << 10;

/// The bytes of long strings.
#[derive(Default)]
struct Arenas {
    filling: Option<ArenaWriter>,
    /// Capacity of all arenas.
    held_bytes: usize,
    /// Bytes in them that no row uses any more.
    dead_bytes: usize,
}

impl Arenas {
    /// Copies a long value in. `payloads` are the arenas; the last one is being filled.
    fn push(&mut self, payloads: &mut Vec<Payload>, value: &[u8]) -> u128 {
        let offset = self.filling.as_mut().and_then(|arena| arena.push(value)).unwrap_or_else(|| {
            let usual = (self.held_bytes / 2).clamp(SMALLEST_ARENA, LARGEST_ARENA);
            let mut arena = ArenaWriter::new(usual.max(value.len()));
            let offset = arena.push(value).expect("the arena was made long enough");
            self.held_bytes += arena.arena().capacity();
            payloads.push(Payload::Arena(Arc::clone(arena.arena())));
            self.filling = Some(arena);
            offset
        });
        make_view(value, payloads.len() as u32 - 1, offset)
    }

    /// Returns the view of a value of another column, with its bytes copied into these arenas unless the view holds
    /// them.
    fn own(&mut self, payloads: &mut Vec<Payload>, view: u128, from: Payloads<'_>) -> u128 {
        if view_len(view) <= INLINE_BYTES {
            return view;
        }
        with_bytes(view, from, |value| self.push(payloads, value))
    }
}

/// Returns the bytes of a value outside its view.
fn outside_bytes(view: u128) -> usize {
    if view_len(view) <= INLINE_BYTES { 0 } else { view_len(view) }
}

/// One column of rows, owned (STORED-1).
pub(crate) struct StoredColumn {
    values: ValuesBuf,
    valid: Vec<u8>,
    arenas: Arenas,
}

/// Runs `$fixed` with the values of two columns of one storage, or `$views`.
macro_rules! both {
    ($from:expr, $to:expr, ($source:ident, $target:ident) => $fixed:expr,
        ($views:ident, $payloads:ident, $own_views:ident, $own_payloads:ident) => $view:expr) => {
        both!(@each $from, $to, $source, $target, $fixed, $views, $payloads, $own_views, $own_payloads, $view,
            I8 I16 I32 I64 U8 U16 U32 U64 F32 F64 I128)
    };
    (@each $from:expr, $to:expr, $source:ident, $target:ident, $fixed:expr, $views:ident, $payloads:ident,
        $own_views:ident, $own_payloads:ident, $view:expr, $($kind:ident)*) => {
        match ($from, $to) {
            $((Values::$kind($source), ValuesBuf::$kind($target)) => $fixed,)*
            (Values::View($views, $payloads), ValuesBuf::View($own_views, $own_payloads)) => $view,
            _ => panic!("a compiled plan keeps columns by their own storage type"),
        }
    };
}

impl StoredColumn {
    /// Creates a column without rows.
    pub(crate) fn new(physical: Physical) -> Self {
        Self { values: ValuesBuf::new(physical), valid: Vec::new(), arenas: Arenas::default() }
    }

    /// Borrows the column.
    pub(crate) fn as_column(&self) -> Column<'_> {
        let valid = if self.valid.is_empty() { None } else { Some(self.valid.as_slice()) };
        Column { values: self.values.as_values(), valid }
    }

    /// Returns the heap memory of the column.
    pub(crate) fn bytes(&self) -> usize {
        let of_values = for_each_kind!(ValuesBuf, &self.values, vec => heap_bytes(vec),
            (views, payloads) => heap_bytes(views) + heap_bytes(payloads));
        of_values + heap_bytes(&self.valid) + self.arenas.held_bytes
    }

    /// Copies rows in: those that `rows` names, or all.
    pub(crate) fn append(&mut self, column: Column<'_>, rows: Option<&[u32]>) {
        let before = self.values.as_values().len();
        let arenas = &mut self.arenas;
        both!(column.values, &mut self.values,
        (from, to) => match rows {
            None => to.extend_from_slice(from),
            Some(rows) => to.extend(rows.iter().map(|&row| from[row as usize])),
        },
        (from, payloads, to, own) => {
            let mut keep = |row: usize| {
                if column.is_valid(row) { arenas.own(own, from[row], payloads) } else { 0 }
            };
            match rows {
                None => to.extend((0..from.len()).map(&mut keep)),
                Some(rows) => to.extend(rows.iter().map(|&row| keep(row as usize))),
            }
        });
        self.append_mask(column.valid, rows, before);
    }

    fn append_mask(&mut self, valid: Option<&[u8]>, rows: Option<&[u32]>, before: usize) {
        let after = self.values.as_values().len();
        let Some(mask) = valid.filter(|mask| mask.contains(&0)) else {
            if !self.valid.is_empty() {
                self.valid.resize(after, 1);
            }
            return;
        };
        self.valid.resize(before, 1); // STORED-2
        match rows {
            None => self.valid.extend_from_slice(mask),
            Some(rows) => self.valid.extend(rows.iter().map(|&row| mask[row as usize])),
        }
    }

    /// Replaces row `row` by row `from` of `column`.
    pub(crate) fn replace(&mut self, row: usize, column: Column<'_>, from: usize) {
        let valid = column.is_valid(from);
        let arenas = &mut self.arenas;
        both!(column.values, &mut self.values, (source, values) => values[row] = source[from],
        (source, payloads, views, own) => {
            arenas.dead_bytes += outside_bytes(views[row]);
            views[row] = if valid { arenas.own(own, source[from], payloads) } else { 0 };
            if arenas.dead_bytes > WORTH_COMPACTING && arenas.dead_bytes > arenas.held_bytes / 2 {
                compact(arenas, views, own);
            }
        });
        if !valid || !self.valid.is_empty() {
            self.valid.resize(self.values.as_values().len(), 1); // STORED-2
            self.valid[row] = u8::from(valid);
        }
    }
}

/// Copies the bytes that rows still use into new arenas.
fn compact(arenas: &mut Arenas, views: &mut [u128], payloads: &mut Vec<Payload>) {
    *arenas = Arenas::default();
    let old = std::mem::take(payloads);
    for view in views {
        *view = arenas.own(payloads, *view, Payloads::List(&old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_memory::ColumnBuf;

    fn texts(texts: &[Option<String>]) -> ColumnBuf {
        let mut column = ColumnBuf::new(Physical::View);
        let (views, payloads) = column.refill_views();
        let mut bytes = Vec::new();
        for text in texts.iter().map(|text| text.as_deref().unwrap_or_default()) {
            views.push(make_view(text.as_bytes(), 0, bytes.len() as u32));
            bytes.extend_from_slice(text.as_bytes());
        }
        payloads.push(arrow_buffer::Buffer::from_vec(bytes).into());
        column.mask_out(|row| texts[row].is_none());
        column
    }

    fn read(column: Column<'_>) -> Vec<Option<String>> {
        let (views, payloads) = column.views();
        let text = |view| with_bytes(view, payloads, |bytes| String::from_utf8_lossy(bytes).into_owned());
        views.iter().enumerate().map(|(row, &view)| column.is_valid(row).then(|| text(view))).collect()
    }

    #[test]
    fn strings_outlive_what_they_came_from_and_a_replaced_one_gives_its_bytes_back() {
        let long = |number: usize| Some(format!("a string that is longer than a view, number {number}"));
        let mut kept: Vec<Option<String>> = (0..40).map(long).collect();
        kept[3] = None;
        kept[4] = Some("short".to_owned());
        let mut stored = StoredColumn::new(Physical::View);
        stored.append(texts(&kept[..3]).as_column(), None);
        stored.append(texts(&kept).as_column(), Some(&(3..40).collect::<Vec<u32>>()));
        assert_eq!(read(stored.as_column()), kept);
        for round in 0..20_000 {
            let (row, text) = (round % 40, if round % 7 == 0 { None } else { long(round) });
            stored.replace(row, texts(std::slice::from_ref(&text)).as_column(), 0);
            kept[row] = text;
        }
        assert_eq!(read(stored.as_column()), kept);
        assert!(stored.bytes() < 4 * WORTH_COMPACTING, "{} bytes for 40 rows", stored.bytes());
    }
}
