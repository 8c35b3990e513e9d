//! Blocks in one piece of memory.
//!
//! A chunk is shared between the writer of a log, its readers, and whoever holds rows that were handed out. Rows are
//! numbered through all blocks; a range of rows that is read or written lies within one block.
//!
//! CHUNK-1. A row is written once, by the writer of the log, before it is published. It is read only after that.
//! CHUNK-2. No reference ever spans a row that may still be written: both sides make slices of exactly their rows.
//! CHUNK-3. Rows are written anew only by an owner whom nobody shares the chunk with (`reset` takes `&mut`), and never once
//!     the memory was exported: whoever keeps it then owns the memory, and not the chunk with all its payloads.
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
/// Aligned, so that the counts of owners in front of it have lines of their own: a reader changes them with each
/// lease, while the writer looks up shape and memory with each run.
#[repr(align(128))]
pub struct Chunk {
    memory: Arc<Memory>,
    shape: Arc<ChunkShape>,
    payloads: PayloadTable,
    /// Payload bytes that the account of the log is charged for, for as long as this chunk keeps them alive.
    charged: AtomicUsize,
}

/// Rows of one block of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct BlockSpan {
    /// Where the block starts.
    block: usize,
    row: usize,
    rows: usize,
}

impl BlockSpan {
    #[inline]
    pub(crate) fn rows(self) -> usize {
        self.rows
    }

    /// Where it ends, counted in rows of the block.
    pub(crate) fn end(self) -> usize {
        self.row + self.rows
    }

    /// Its first rows.
    pub(crate) fn truncated(self, rows: usize) -> Self {
        Self { rows: self.rows.min(rows), ..self }
    }
}

impl Chunk {
    /// A chunk of that shape.
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

    /// Its shape.
    pub fn shape(&self) -> &Arc<ChunkShape> {
        &self.shape
    }

    /// Rows that it has room for.
    pub fn rows(&self) -> usize {
        self.shape.rows()
    }

    /// Rows from `offset` to the end of the block that it lies in.
    pub fn left_in_block(&self, offset: usize) -> usize {
        self.shape.block.rows - offset % self.shape.block.rows
    }

    /// The payloads of its views.
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

    /// The memory, which leaves the account of the log: whoever holds it keeps it from now on.
    pub(crate) fn export(&self) -> Arc<Memory> {
        self.memory.detach();
        Arc::clone(&self.memory)
    }

    /// The memory, for rows that wait to be read: it stays with the account of the log until the log has left it, and
    /// the claim is gone.
    pub(crate) fn claim(&self) -> (Arc<Memory>, Claim) {
        (Arc::clone(&self.memory), self.memory.claim())
    }

    /// Whether somebody outside keeps its memory, or did.
    pub(crate) fn is_exported(&self) -> bool {
        self.memory.is_kept()
    }

    /// Makes all rows free again (CHUNK-3), handing the payloads to `take`.
    ///
    /// # Panics
    /// When the memory was exported.
    pub(crate) fn reset(&mut self, take: impl FnMut(Payload)) {
        assert!(!self.is_exported(), "CHUNK-3: memory that somebody keeps is never written again");
        self.payloads.clear(take);
        self.release_payload();
    }

    /// Rows `offset..offset + rows`, which lie within one block.
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

    /// Where the rows of a span stand in a region that starts at `region` of its block.
    ///
    /// # Safety
    /// The span is of this chunk, and the region is one of `width` bytes per row.
    #[inline]
    unsafe fn address(&self, region: usize, width: usize, span: BlockSpan) -> NonNull<u8> {
        // SAFETY: the rows lie in a block of the shape, and `new` checked that the memory holds all of them.
        unsafe { self.memory.ptr().add(span.block + region + span.row * width) }
    }

    /// # Safety
    /// By CHUNK-1: the rows are published, and nobody makes them free while the slice lives. The span is of this chunk.
    unsafe fn read<T>(&self, region: usize, span: BlockSpan) -> &[T] {
        // SAFETY: the caller's promise.
        let start = unsafe { self.address(region, size_of::<T>(), span) }.cast::<T>();
        // SAFETY: `span` checked the range; columns are aligned to cache lines; CHUNK-4; and the caller's promise.
        unsafe { slice::from_raw_parts(start.as_ptr(), span.rows) }
    }

    /// # Safety
    /// By CHUNK-1: the rows are not published, the caller is the writer of the log, and has no other slice of them. The span
    /// is of this chunk.
    #[allow(
        clippy::mut_from_ref,
        reason = "CHUNK-1 and CHUNK-2 say who may write which rows of a shared chunk"
    )]
    unsafe fn write<T>(&self, region: usize, span: BlockSpan) -> &mut [T] {
        // SAFETY: the caller's promise.
        let start = unsafe { self.address(region, size_of::<T>(), span) }.cast::<T>();
        // SAFETY: as in `read`, and the caller's promise excludes every other access to these rows.
        unsafe { slice::from_raw_parts_mut(start.as_ptr(), span.rows) }
    }

    /// Values of a fixed-width column to be written.
    ///
    /// # Safety
    /// As [`Chunk::write`].
    #[allow(
        clippy::mut_from_ref,
        reason = "CHUNK-1 and CHUNK-2 say who may write which rows of a shared chunk"
    )]
    #[inline]
    pub(crate) unsafe fn values_mut<T: Native>(&self, column: usize, span: BlockSpan) -> &mut [T] {
        let place = &self.shape.block.places[column];
        assert_eq!(place.physical, T::PHYSICAL, "a log is written by the storage types of its layout");
        // SAFETY: the caller's promise.
        unsafe { self.write(place.values, span) }
    }

    /// Views to be written.
    ///
    /// # Safety
    /// As [`Chunk::write`].
    #[allow(
        clippy::mut_from_ref,
        reason = "CHUNK-1 and CHUNK-2 say who may write which rows of a shared chunk"
    )]
    pub(crate) unsafe fn views_mut(&self, column: usize, span: BlockSpan) -> &mut [u128] {
        let place = &self.shape.block.places[column];
        assert_eq!(place.physical, Physical::View, "a log is written by the storage types of its layout");
        // SAFETY: the caller's promise.
        unsafe { self.write(place.values, span) }
    }

    /// The mask of a column to be written; `None` when the column has none.
    ///
    /// # Safety
    /// As [`Chunk::write`].
    #[allow(
        clippy::mut_from_ref,
        reason = "CHUNK-1 and CHUNK-2 say who may write which rows of a shared chunk"
    )]
    pub(crate) unsafe fn mask_mut(&self, column: usize, span: BlockSpan) -> Option<&mut [u8]> {
        let mask = self.shape.block.places[column].mask?;
        // SAFETY: the caller's promise.
        Some(unsafe { self.write(mask, span) })
    }

    /// The mask of a column, if it has one.
    ///
    /// # Safety
    /// As [`Chunk::read`].
    pub(crate) unsafe fn mask(&self, column: usize, span: BlockSpan) -> Option<&[u8]> {
        let mask = self.shape.block.places[column].mask?;
        // SAFETY: the caller's promise.
        Some(unsafe { self.read(mask, span) })
    }

    /// Rows of a column, with the mask it has.
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
