//! Blocks in one piece of memory.
//!
//! The writer of a log, its readers and the holders of leases share a chunk. Rows are numbered through all blocks; a
//! range of rows that is read or written lies within one block.
//!
//! CHUNK-1. The writer of the log writes a row once, before it is published. The row is read only after that.
//! CHUNK-2. No reference ever spans a row that may still be written: both sides make slices of exactly their rows.
//! CHUNK-3. Only the sole owner of a chunk rewrites its rows (`reset` takes `&mut`), and never once the memory was
//!     exported: the exporter then owns the memory, and not the chunk with all its payloads.
//! CHUNK-4. All bytes are initialised: memory comes zeroed, and is only ever overwritten.

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::column::{Column, Native, Physical, Values};
use crate::coordinator::{Claim, Memory};
use crate::payload::{Payload, PayloadTable, Payloads};
use crate::shape::ChunkShape;

/// Blocks, and the payloads that their views point into.
///
/// Aligned, so that the reference counts before it have lines of their own: a reader changes them with each lease,
/// while the writer reads shape and memory with each run.
#[repr(align(128))]
pub struct Chunk {
    memory: Arc<Memory>,
    shape: Arc<ChunkShape>,
    payloads: PayloadTable,
    /// Payload bytes charged to the account of the log while this chunk keeps them alive.
    charged: AtomicUsize,
}

/// A range of rows in one block of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct BlockSpan {
    /// Start of the block, in bytes.
    block: usize,
    row: usize,
    rows: usize,
}

impl BlockSpan {
    #[inline]
    pub(crate) fn rows(self) -> usize {
        self.rows
    }

    /// Returns the end, counted in rows of the block.
    pub(crate) fn end(self) -> usize {
        self.row + self.rows
    }

    /// Returns the first `rows` rows.
    pub(crate) fn truncated(self, rows: usize) -> Self {
        Self { rows: self.rows.min(rows), ..self }
    }
}

impl Chunk {
    /// Creates a chunk of that shape.
    ///
    /// # Panics
    /// When the memory is too small for it.
    pub(crate) fn new(memory: Memory, shape: Arc<ChunkShape>) -> Self {
        assert!(
            shape.blocks * shape.block.bytes <= memory.bytes(),
            "memory is ordered by the shape it is for"
        );
        Self {
            memory: Arc::new(memory),
            shape,
            payloads: PayloadTable::default(),
            charged: AtomicUsize::new(0),
        }
    }

    /// Returns the chunk's shape.
    pub fn shape(&self) -> &Arc<ChunkShape> {
        &self.shape
    }

    /// Returns the number of rows that it has room for.
    pub fn rows(&self) -> usize {
        self.shape.rows()
    }

    /// Returns the number of rows from `offset` to the end of its block.
    pub fn left_in_block(&self, offset: usize) -> usize {
        self.shape.block.rows - offset % self.shape.block.rows
    }

    /// Returns the payloads of its views.
    pub(crate) fn payloads(&self) -> &PayloadTable {
        &self.payloads
    }

    /// Charges the log for payload that this chunk keeps alive from now on.
    pub(crate) fn charge_payload(&self, bytes: usize) {
        self.memory.charge_payload(bytes);
        self.charged.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release_payload(&mut self) {
        self.memory.release_payload(std::mem::take(self.charged.get_mut()));
    }

    /// Returns the memory and removes it from the account of the log: the holder keeps it from now on.
    pub(crate) fn export(&self) -> Arc<Memory> {
        self.memory.detach();
        Arc::clone(&self.memory)
    }

    /// Returns the memory with a claim, for rows that wait to be read: it stays in the account of the log until the
    /// log has left it and the claim is dropped.
    pub(crate) fn claim(&self) -> (Arc<Memory>, Claim) {
        (Arc::clone(&self.memory), self.memory.claim())
    }

    /// Returns true if the memory was exported.
    pub(crate) fn is_exported(&self) -> bool {
        self.memory.is_kept()
    }

    /// Frees all rows for reuse (CHUNK-3), handing the payloads to `take`.
    ///
    /// # Panics
    /// When the memory was exported.
    pub(crate) fn reset(&mut self, take: impl FnMut(Payload)) {
        assert!(!self.is_exported(), "CHUNK-3: exported memory is never written again");
        self.payloads.clear(take);
        self.release_payload();
    }

    /// Returns the span of rows `offset..offset + rows`, which lie within one block.
    ///
    /// # Panics
    /// When they do not.
    #[inline]
    pub(crate) fn span(&self, offset: usize, rows: usize) -> BlockSpan {
        let block = &self.shape.block;
        let (number, row) = (offset / block.rows, offset % block.rows);
        assert!(
            number < self.shape.blocks && row + rows <= block.rows,
            "a range of rows lies within one block"
        );
        BlockSpan { block: number * block.bytes, row, rows }
    }

    /// Returns the address of a span's rows in a region that starts at byte `region` of its block.
    ///
    /// # Safety
    /// The span is of this chunk, and the region is one of `width` bytes per row.
    #[inline]
    unsafe fn address(&self, region: usize, width: usize, span: BlockSpan) -> NonNull<u8> {
        // SAFETY: the rows lie in a block of the shape, and `new` checked that the memory holds all of them.
        unsafe { self.memory.ptr().add(span.block + region + span.row * width) }
    }

    /// # Safety
    /// By CHUNK-1: the rows are published, and stay published while the slice lives. The span is of this chunk.
    unsafe fn read<T>(&self, region: usize, span: BlockSpan) -> &[T] {
        // SAFETY: the caller's promise.
        let start = unsafe { self.address(region, size_of::<T>(), span) }.cast::<T>();
        // SAFETY: `span` checked the range; columns are aligned to cache lines; CHUNK-4; and the caller's promise.
        unsafe { slice::from_raw_parts(start.as_ptr(), span.rows) }
    }

    /// # Safety
    /// By CHUNK-1: the rows are not published, the caller is the writer of the log, and has no other slice of them.
    /// The span is of this chunk.
    #[allow(clippy::mut_from_ref, reason = "CHUNK-1 and CHUNK-2 name the only writer of a row")]
    unsafe fn write<T>(&self, region: usize, span: BlockSpan) -> &mut [T] {
        // SAFETY: the caller's promise.
        let start = unsafe { self.address(region, size_of::<T>(), span) }.cast::<T>();
        // SAFETY: as in `read`, and the caller's promise excludes every other access to these rows.
        unsafe { slice::from_raw_parts_mut(start.as_ptr(), span.rows) }
    }

    /// Returns values of a fixed-width column, to be written.
    ///
    /// # Safety
    /// As [`Chunk::write`].
    #[allow(clippy::mut_from_ref, reason = "CHUNK-1 and CHUNK-2 name the only writer of a row")]
    #[inline]
    pub(crate) unsafe fn values_mut<T: Native>(&self, column: usize, span: BlockSpan) -> &mut [T] {
        let place = &self.shape.block.places[column];
        assert_eq!(place.physical, T::PHYSICAL, "a log is written by the storage types of its layout");
        // SAFETY: the caller's promise.
        unsafe { self.write(place.values, span) }
    }

    /// Returns views, to be written.
    ///
    /// # Safety
    /// As [`Chunk::write`].
    #[allow(clippy::mut_from_ref, reason = "CHUNK-1 and CHUNK-2 name the only writer of a row")]
    pub(crate) unsafe fn views_mut(&self, column: usize, span: BlockSpan) -> &mut [u128] {
        let place = &self.shape.block.places[column];
        assert_eq!(place.physical, Physical::View, "a log is written by the storage types of its layout");
        // SAFETY: the caller's promise.
        unsafe { self.write(place.values, span) }
    }

    /// Returns the mask of a column, to be written; `None` when the column has none.
    ///
    /// # Safety
    /// As [`Chunk::write`].
    #[allow(clippy::mut_from_ref, reason = "CHUNK-1 and CHUNK-2 name the only writer of a row")]
    pub(crate) unsafe fn mask_mut(&self, column: usize, span: BlockSpan) -> Option<&mut [u8]> {
        let mask = self.shape.block.places[column].mask?;
        // SAFETY: the caller's promise.
        Some(unsafe { self.write(mask, span) })
    }

    /// Returns the mask of a column, if it has one.
    ///
    /// # Safety
    /// As [`Chunk::read`].
    pub(crate) unsafe fn mask(&self, column: usize, span: BlockSpan) -> Option<&[u8]> {
        let mask = self.shape.block.places[column].mask?;
        // SAFETY: the caller's promise.
        Some(unsafe { self.read(mask, span) })
    }

    /// Returns rows of a column, with its mask.
    ///
    /// # Safety
    /// As [`Chunk::read`].
    #[inline]
    pub(crate) unsafe fn column(&self, column: usize, span: BlockSpan) -> Column<'_> {
        let place = &self.shape.block.places[column];
        macro_rules! values {
            ($($kind:ident),*) => {
                match place.physical {
                    $(Physical::$kind => {
                        // SAFETY: the caller's promise.
                        Values::$kind(unsafe { self.read(place.values, span) })
                    })*
                    Physical::View => {
                        // SAFETY: the caller's promise.
                        let views = unsafe { self.read(place.values, span) };
                        Values::View(views, Payloads::Table(&self.payloads))
                    }
                }
            };
        }
        let values = values!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128);
        // SAFETY: the caller's promise.
        Column { values, valid: unsafe { self.mask(column, span) } }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.payloads.clear(drop);
        self.release_payload();
        self.memory.unclaim();
    }
}
