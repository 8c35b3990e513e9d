//! Decides which payloads a chunk shares and which it copies.
//!
//! A long string or binary value is outside its block. A chunk could keep the buffer alive that the value arrived in,
//! but a filter may let one short value through out of a buffer of megabytes.
//!
//! STRINGS-1. A run shares a payload only if the bytes kept alive are at most [`MAX_PINNED`] times the bytes that the
//!     run uses of it; otherwise it copies the values into an arena of the log. What is kept alive or copied is
//!     charged to the log.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::writer::SelectedColumn;
use crate::chunk::Chunk;
use crate::payload::{Arena, ArenaWriter, Payload, PayloadIdentity, Payloads};
use crate::view::{INLINE_BYTES, make_view, view_len};

/// Most bytes kept alive per byte used.
const MAX_PINNED: usize = 4;
/// Bytes of a log's first arena. Each further one is twice as long, up to the maximum, or as long as a longer value.
const FIRST_ARENA_BYTES: usize = 4 * 1024;
const MAX_ARENA_BYTES: usize = 64 * 1024;
/// Most empty arenas kept for reuse.
const SPARE_ARENAS: usize = 4;

#[derive(Clone, Copy)]
enum Target {
    Shared(u32),
    Copied,
}

/// Writes views, and shares or copies their payloads.
#[derive(Default)]
pub(super) struct Strings {
    /// Numbers in the current chunk's table, by the identity of the payload; all are alive, since the chunk owns them.
    shared: HashMap<PayloadIdentity, u32, RandomState>,
    /// Pieces of memory that were charged for the current chunk.
    charged: HashSet<usize, RandomState>,
    arena: Option<ArenaWriter>,
    /// Number of the arena in the current chunk's table.
    arena_number: Option<u32>,
    spare: Vec<Arc<Arena>>,
    /// Per payload of the run: bytes used, and the decision. Payloads that the run does not touch are not looked at.
    used: Vec<usize>,
    targets: Vec<Target>,
    touched: Vec<usize>,
}

fn payload_of(view: u128) -> usize {
    (view >> 64) as u32 as usize
}

fn with_payload(view: u128, number: u32) -> u128 {
    (view & !(u128::from(u32::MAX) << 64)) | (u128::from(number) << 64)
}

impl Strings {
    /// Resets the tables: the next rows go into another chunk.
    pub(super) fn turn(&mut self) {
        self.shared.clear();
        self.charged.clear();
        self.arena_number = None;
    }

    /// Takes back a payload of a chunk that was reset.
    pub(super) fn take_back(&mut self, payload: Payload) {
        if let Payload::Arena(mut arena) = payload
            && self.spare.len() < SPARE_ARENAS
            && Arc::get_mut(&mut arena).is_some()
        {
            self.spare.push(arena);
        }
    }

    /// Writes views `from..from + to.len()` of a piece for the rows of `chunk`; returns the bytes to charge the log
    /// for: those of every payload that the chunk keeps alive from now on.
    pub(super) fn write(
        &mut self,
        chunk: &Chunk,
        piece: &SelectedColumn<'_>,
        from: usize,
        to: &mut [u128],
    ) -> usize {
        let (views, payloads) = piece.column.views();
        let len = to.len();
        match piece.rows {
            None => to.copy_from_slice(&views[from..from + to.len()]),
            Some(rows) => {
                for (to, &row) in to.iter_mut().zip(&rows[from..from + len]) {
                    *to = views[row as usize];
                }
            }
        }
        if self.used.len() < payloads.len() {
            self.used.resize(payloads.len(), 0);
            self.targets.resize(payloads.len(), Target::Copied);
        }
        for (place, view) in to.iter_mut().enumerate() {
            if !piece.is_valid(from + place) {
                *view = 0; // a view under a null must not be followed
            } else if view_len(*view) > INLINE_BYTES {
                let used = &mut self.used[payload_of(*view)];
                if *used == 0 {
                    self.touched.push(payload_of(*view));
                }
                *used += view_len(*view);
            }
        }
        if self.touched.is_empty() {
            return 0;
        }
        let mut charge = self.decide(chunk, payloads);
        for view in to.iter_mut().filter(|view| view_len(**view) > INLINE_BYTES) {
            *view = match self.targets[payload_of(*view)] {
                Target::Shared(number) => with_payload(*view, number),
                Target::Copied => {
                    let payload = payloads.get(payload_of(*view));
                    let bytes = payload.bytes((*view >> 96) as usize, view_len(*view));
                    self.copy(chunk, bytes, &mut charge)
                }
            };
        }
        charge
    }

    /// Decides by STRINGS-1 for each payload that the run touches; returns the bytes to charge for shared ones.
    fn decide(&mut self, chunk: &Chunk, payloads: Payloads<'_>) -> usize {
        let mut charge = 0;
        for number in self.touched.drain(..) {
            let used = std::mem::take(&mut self.used[number]);
            let payload = payloads.get(number);
            let identity = payload.identity();
            self.targets[number] = match self.shared.get(&identity) {
                Some(&shared) => Target::Shared(shared),
                None if payload.held_bytes() <= MAX_PINNED * used => {
                    let shared = chunk.payloads().push(payload.clone());
                    self.shared.insert(identity, shared);
                    if self.charged.insert(identity.memory) {
                        charge += payload.held_bytes();
                    }
                    Target::Shared(shared)
                }
                None => Target::Copied,
            };
        }
        charge
    }

    /// Copies a value into the arena and returns its view.
    fn copy(&mut self, chunk: &Chunk, bytes: &[u8], charge: &mut usize) -> u128 {
        if self.arena.as_ref().is_none_or(|arena| arena.room() < bytes.len()) {
            self.arena = Some(self.next_arena(bytes.len()));
            self.arena_number = None;
        }
        let arena = self.arena.as_mut().expect("the arena was just given room");
        let number = *self.arena_number.get_or_insert_with(|| {
            let payload = Payload::Arena(Arc::clone(arena.arena()));
            *charge += payload.held_bytes();
            chunk.payloads().push(payload)
        });
        let offset = arena.push(bytes).expect("the arena was just given room");
        make_view(bytes, number, offset)
    }

    /// Returns an arena with room for that many bytes: a spare one, or a new one.
    fn next_arena(&mut self, bytes: usize) -> ArenaWriter {
        let fits = self.spare.iter().position(|arena| arena.capacity() >= bytes);
        let again = fits.and_then(|number| ArenaWriter::again(self.spare.swap_remove(number)));
        again.unwrap_or_else(|| {
            let last = self.arena.as_ref().map_or(0, |arena| arena.arena().capacity());
            ArenaWriter::new((2 * last).clamp(FIRST_ARENA_BYTES, MAX_ARENA_BYTES).max(bytes))
        })
    }
}
