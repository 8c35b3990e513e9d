//! The layout of columns in a block.
//!
//! A block holds columns only, one after the other: the values of each, then its mask if it may hold nulls.
//!
//! LAYOUT-1. Every column starts at a multiple of a cache line and takes an odd number of lines. So the same row of
//!     two columns of one width never has the same offset within a 4 KiB page (for up to 64 columns), which
//!     power-of-two strides would give it; caches map such addresses to the same few sets.

use arrow_schema::DataType;

use crate::column::Physical;

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Largest number of rows of a block, whatever their width.
pub const MAX_ROWS: usize = 64 * 1024;

/// The storage of one column of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnKind {
    /// The storage of its values.
    pub physical: Physical,
    /// True if it has a mask.
    pub nullable: bool,
}

impl ColumnKind {
    /// Returns the storage of a column of that type; `None` when the engine does not support such columns.
    pub fn of(data_type: &DataType, nullable: bool) -> Option<Self> {
        Physical::of(data_type).map(|physical| Self { physical, nullable })
    }

    fn row_bytes(self) -> usize {
        self.physical.width() + usize::from(self.nullable)
    }
}

/// The columns of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    columns: Vec<ColumnKind>,
}

/// Returns the bytes of `rows` values of `width`, in an odd number of cache lines (LAYOUT-1).
fn region(rows: usize, width: usize) -> usize {
    ((rows * width).div_ceil(LINE) | 1) * LINE
}

impl Layout {
    /// Creates a layout of these columns.
    pub fn new(columns: Vec<ColumnKind>) -> Self {
        Self { columns }
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[ColumnKind] {
        &self.columns
    }

    /// Returns the bytes of one row, masks included.
    pub fn row_bytes(&self) -> usize {
        self.columns.iter().map(|column| column.row_bytes()).sum()
    }

    /// Returns the bytes of a block of that many rows.
    pub fn block_bytes(&self, rows: usize) -> usize {
        let masks = self.columns.iter().filter(|column| column.nullable).count();
        self.columns.iter().map(|column| region(rows, column.physical.width())).sum::<usize>()
            + masks * region(rows, 1)
    }

    /// Returns the largest number of rows, at least one, of a block of at most that many bytes.
    pub fn rows_within(&self, bytes: usize) -> usize {
        let fits = |rows: usize| self.block_bytes(rows) <= bytes;
        if fits(MAX_ROWS) {
            return MAX_ROWS;
        }
        let (mut fit, mut not) = (1, MAX_ROWS);
        while not - fit > 1 {
            let middle = fit.midpoint(not);
            *(if fits(middle) { &mut fit } else { &mut not }) = middle;
        }
        // A multiple of 16 rows, so that vector instructions need no remainder, where more than one vector fits.
        if fit > 16 { fit / 16 * 16 } else { fit }
    }

    /// Lays out a block of that many rows.
    pub fn block(&self, rows: usize) -> BlockLayout {
        let mut next = 0;
        let mut take = |bytes: usize| {
            let start = next;
            next += bytes;
            start
        };
        let places = self
            .columns
            .iter()
            .map(|column| ColumnPlace {
                physical: column.physical,
                values: take(region(rows, column.physical.width())),
                mask: column.nullable.then(|| take(region(rows, 1))),
            })
            .collect();
        BlockLayout { rows, bytes: next, places }
    }
}

/// The offsets of one column of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPlace {
    /// The storage of its values.
    pub physical: Physical,
    /// Offset of its values.
    pub values: usize,
    /// Offset of its mask, if it has one.
    pub mask: Option<usize>,
}

/// The offsets of all columns in a block of a certain number of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLayout {
    /// Rows of the block.
    pub rows: usize,
    /// Bytes of the block.
    pub bytes: usize,
    /// The columns.
    pub places: Vec<ColumnPlace>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = Vec<ColumnKind>> {
        let physical = prop::sample::select(vec![
            Physical::U8,
            Physical::I16,
            Physical::F32,
            Physical::I64,
            Physical::I128,
            Physical::View,
        ]);
        let column =
            (physical, any::<bool>()).prop_map(|(physical, nullable)| ColumnKind { physical, nullable });
        prop::collection::vec(column, 0..12)
    }

    proptest! {
        #[test]
        fn columns_are_aligned_and_do_not_overlap(columns in kinds(), rows in 1_usize..5_000) {
            let layout = Layout::new(columns);
            let block = layout.block(rows);
            prop_assert_eq!(block.bytes, layout.block_bytes(rows));
            let mut free = 0;
            for place in &block.places {
                for (start, width) in [(Some(place.values), place.physical.width()), (place.mask, 1)] {
                    let Some(start) = start else { continue };
                    prop_assert_eq!(start % LINE, 0);
                    prop_assert!(start >= free);
                    free = start + rows * width;
                }
            }
            prop_assert!(free <= block.bytes);
        }

        #[test]
        fn columns_of_one_width_are_staggered(count in 2_usize..60, rows in 1_usize..5_000) {
            let column = ColumnKind { physical: Physical::I64, nullable: false };
            let block = Layout::new(vec![column; count]).block(rows);
            for (number, left) in block.places.iter().enumerate() {
                for right in &block.places[number + 1..] {
                    prop_assert_ne!(left.values % 4096, right.values % 4096);
                }
            }
        }

        #[test]
        fn as_many_rows_as_fit(columns in kinds(), bytes in 64_usize..1 << 20) {
            let layout = Layout::new(columns);
            let rows = layout.rows_within(bytes);
            prop_assert!(rows >= 1);
            prop_assert!(rows == 1 || layout.block_bytes(rows) <= bytes);
            prop_assert!(rows == MAX_ROWS || layout.block_bytes(rows + 17) > bytes);
        }
    }
}
