//! The sizes of blocks and chunks of a log.
//!
//! A log starts with small chunks and moves to larger ones as it is used, so that a thousand idle logs take little
//! and a busy one runs through whole blocks. Sizes are *classes*: each doubles the bytes of the one before, up to
//! the full chunk. A small chunk may hold shorter blocks than a large one.

use crate::layout::{BlockLayout, Layout, MAX_ROWS};
use crate::platform::HUGE_PAGE_BYTES;

/// Bytes of the smallest chunk.
pub const START_CHUNK_BYTES: usize = 16 * 1024;
/// Largest number of blocks of a chunk, whatever the options ask for.
const MAX_BLOCKS: usize = 1024;
/// Smallest piece of memory that is allocated.
const PAGE: usize = 4096;

/// The user's choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapeOptions {
    /// Rows of a full block; by default as many as fit an eighth of the second-level cache. By the same sweep the
    /// speed is flat around that, from 512 to 2,048 rows of 64 bytes, and falls off below 256 and above 4,096.
    pub block_rows: Option<usize>,
    /// Blocks of a full chunk.
    pub chunk_blocks: Option<usize>,
    /// True if a busy log moves on to full chunks, not only to full blocks, even when its readers keep up.
    pub full_chunks: bool,
}

impl ShapeOptions {
    /// Returns sizes for rows that leave the engine: a chunk is one huge page, with the fewest and longest blocks
    /// possible, since a block becomes a batch and takes its whole chunk along.
    pub fn for_export(layout: &Layout) -> Self {
        let longest = layout.block_bytes(MAX_ROWS).max(1);
        let blocks = HUGE_PAGE_BYTES.div_ceil(longest).clamp(1, MAX_BLOCKS);
        Self {
            block_rows: Some(layout.rows_within(HUGE_PAGE_BYTES / blocks)),
            chunk_blocks: Some(blocks),
            full_chunks: true,
        }
    }
}

/// Default number of blocks of a full chunk.
/// From `cargo bench -p penstock-benches --bench memory -- sweep`, blocks of the default size: on one thread it does
/// not matter; from thread to thread 2 blocks reach half the speed of 8 to 32, and beyond that chunks outgrow the
/// caches.
pub const DEFAULT_CHUNK_BLOCKS: usize = 8;

/// A chunk of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkShape {
    /// The class of this size.
    pub class: usize,
    /// Bytes of its memory.
    pub bytes: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// The layout of each block.
    pub block: BlockLayout,
}

impl ChunkShape {
    /// Returns the rows of all blocks.
    pub fn rows(&self) -> usize {
        self.blocks * self.block.rows
    }
}

/// The classes of one log.
#[derive(Clone, Debug)]
pub struct Shapes {
    layout: Layout,
    block_rows: usize,
    chunk_blocks: usize,
    full_chunks: bool,
    start_bytes: usize,
    full_bytes: usize,
}

impl Shapes {
    /// Computes the classes of a log with that layout, on a machine with that much second-level cache per core.
    pub fn new(layout: Layout, options: ShapeOptions, l2_cache_bytes: usize) -> Self {
        let block_rows =
            options.block_rows.unwrap_or_else(|| layout.rows_within(l2_cache_bytes / 8)).clamp(1, MAX_ROWS);
        let chunk_blocks = options.chunk_blocks.unwrap_or(DEFAULT_CHUNK_BLOCKS).clamp(1, MAX_BLOCKS);
        let full_bytes = (layout.block_bytes(block_rows) * chunk_blocks).next_power_of_two().max(PAGE);
        let start_bytes = START_CHUNK_BYTES.max(layout.block_bytes(1).next_power_of_two()).min(full_bytes);
        let full_chunks = options.full_chunks;
        Self { layout, block_rows, chunk_blocks, full_chunks, start_bytes, full_bytes }
    }

    /// Returns the layout of rows.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the rows of a full block.
    pub fn block_rows(&self) -> usize {
        self.block_rows
    }

    /// Returns the bytes of a chunk of the first class.
    pub fn start_bytes(&self) -> usize {
        self.start_bytes
    }

    /// Returns the largest class.
    pub fn last(&self) -> usize {
        (self.full_bytes / self.start_bytes).ilog2() as usize
    }

    /// Returns the bytes of a chunk of that class.
    pub fn bytes(&self, class: usize) -> usize {
        self.start_bytes << class.min(self.last())
    }

    /// Returns the class that a busy log moves to: the smallest with full blocks, unless full chunks are asked for.
    pub fn working(&self) -> usize {
        if self.full_chunks {
            return self.last();
        }
        (0..=self.last())
            .find(|&class| self.shape(class).block.rows == self.block_rows)
            .unwrap_or(self.last())
    }

    /// Returns the shape of a chunk of that class.
    pub fn shape(&self, class: usize) -> ChunkShape {
        let class = class.min(self.last());
        let bytes = self.bytes(class);
        let block = self.layout.block(self.block_rows.min(self.layout.rows_within(bytes)));
        let blocks = (bytes / block.bytes.max(1)).clamp(1, self.chunk_blocks);
        ChunkShape { class, bytes, blocks, block }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Physical;
    use crate::layout::ColumnKind;
    use proptest::prelude::*;

    fn shapes(columns: usize, block_rows: Option<usize>, chunk_blocks: Option<usize>) -> Shapes {
        let column = ColumnKind { physical: Physical::I64, nullable: true };
        Shapes::new(
            Layout::new(vec![column; columns]),
            ShapeOptions { block_rows, chunk_blocks, ..ShapeOptions::default() },
            512 * 1024,
        )
    }

    #[test]
    fn the_default_block_fits_an_eighth_of_the_cache() {
        let shapes = shapes(8, None, None);
        let full = shapes.shape(shapes.last());
        assert!(full.block.bytes <= 64 * 1024 && full.block.bytes > 60 * 1024);
        assert_eq!(full.blocks, DEFAULT_CHUNK_BLOCKS);
        assert!(shapes.working() < shapes.last());
    }

    proptest! {
        #[test]
        fn rows_that_leave_fill_their_chunks(widths in prop::collection::vec((0_usize..4, any::<bool>()), 1..40)) {
            let kinds = [Physical::U8, Physical::I32, Physical::I64, Physical::View];
            let column = |(kind, nullable): &(usize, bool)| ColumnKind { physical: kinds[*kind], nullable: *nullable };
            let layout = Layout::new(widths.iter().map(column).collect());
            let shapes = Shapes::new(layout.clone(), ShapeOptions::for_export(&layout), 512 * 1024);
            let full = shapes.shape(shapes.last());
            prop_assert_eq!(full.bytes, HUGE_PAGE_BYTES);
            prop_assert!(full.blocks * full.block.bytes * 10 >= full.bytes * 9, "{} x {}", full.blocks, full.block.bytes);
        }

        #[test]
        fn every_class_holds_its_blocks(
            columns in 0_usize..300,
            block_rows in prop::option::of(1_usize..10_000),
            chunk_blocks in prop::option::of(1_usize..80),
        ) {
            let shapes = shapes(columns, block_rows, chunk_blocks);
            let mut before = 0;
            for class in 0..=shapes.last() {
                let shape = shapes.shape(class);
                prop_assert!(shape.blocks * shape.block.bytes <= shape.bytes);
                prop_assert!(shape.bytes.is_power_of_two() && shape.bytes > before);
                prop_assert!(shape.block.rows >= 1 && shape.block.rows <= shapes.block_rows());
                before = shape.bytes;
            }
            let full = shapes.shape(shapes.last());
            prop_assert_eq!(full.block.rows, shapes.block_rows());
            prop_assert_eq!(full.blocks, shapes.chunk_blocks);
            prop_assert!(shapes.start_bytes() <= START_CHUNK_BYTES.max(shapes.layout.block_bytes(1) * 2));
        }
    }
}
