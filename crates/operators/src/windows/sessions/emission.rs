//! Closes sessions and emits them, in order of their ends.

use std::cmp::Reverse;

use penstock_memory::Run;
use penstock_progress::law;
use penstock_types::ComputeError;

use super::{NOTHING, Sessions};
use crate::contract::Stateful;
use crate::pick::Pick;
use crate::windows::output::{Each, Frame, write};

/// Fewer slots or keys than this are not worth dropping (SESSION-4): they hold some 30 KiB where strings are
/// aggregated, and a rebuild costs a fraction of the insertion of that many keys ...
const FEW: usize = 128;
/// ... and there may be this many for each used one.
const SLACK: usize = 4;

fn clamp(time: i128) -> i64 {
    time.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl Sessions {
    /// Returns the watermark at which a session with that last row is over (SESSION-2).
    pub(super) fn over_at(&self, last: i64) -> i128 {
        i128::from(last) + 2 * i128::from(self.gap) - 1
    }

    pub(super) fn close_until(&mut self, watermark: i128) {
        self.closed = self.closed.max(watermark);
        self.settle();
    }

    /// Moves a session that is over to the front of the queue, if there is one (SESSION-3).
    pub(super) fn settle(&mut self) {
        while let Some(&Reverse((last, slot))) = self.queue.peek() {
            if self.over_at(last) > self.closed {
                return;
            }
            let session = &mut self.slots[slot as usize];
            let counts = session.live && session.queued == last;
            if counts && session.last == last {
                return;
            }
            self.queue.pop();
            if counts {
                session.queued = session.last;
                self.queue.push(Reverse((session.last, slot)));
            }
        }
    }

    pub(super) fn emit_some(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError> {
        let mut slots = Vec::new();
        while slots.len() < room && self.has_output() {
            if let Some(Reverse((_, slot))) = self.queue.pop() {
                slots.push(slot);
                self.slots[slot as usize].live = false;
            }
            self.settle();
        }
        if slots.is_empty() {
            return Ok(0);
        }
        let session = |slot: &u32| self.slots[*slot as usize];
        let keys: Vec<u32> = slots.iter().map(|slot| session(slot).key).collect();
        let starts: Vec<i64> = slots.iter().map(|slot| session(slot).first).collect();
        let end = |slot: &u32| i128::from(session(slot).last) + i128::from(self.gap);
        let ends: Vec<i64> = slots.iter().map(|slot| clamp(end(slot))).collect();
        let times: Vec<i64> = slots.iter().map(|slot| clamp(end(slot) - 1)).collect();
        let earliest = times.iter().min();
        law!(
            earliest.is_none_or(|&earliest| earliest >= self.left),
            "a session of {earliest:?} comes after the watermark {}",
            self.left
        ); // CONTRACT-4
        let frame = Frame {
            start: Each::List(&starts),
            end: Each::List(&ends),
            time: Each::List(&times),
            corrects: false,
        };
        let (keys, states) = ((&self.keys, Pick::List(&keys)), (&self.states, Pick::List(&slots)));
        let rows = write(&self.shape, out, &frame, keys, states)?;
        slots.iter().for_each(|&slot| self.release(slot));
        self.tidy();
        Ok(rows)
    }

    /// Removes a session from the list of its key and frees its slot.
    fn release(&mut self, slot: u32) {
        let session = self.slots[slot as usize];
        let head = &mut self.heads[session.key as usize];
        if *head == slot {
            *head = session.older;
            self.live_keys -= usize::from(session.older == NOTHING);
        } else {
            let mut newer = *head as usize;
            while self.slots[newer].older != slot {
                newer = self.slots[newer].older as usize;
            }
            self.slots[newer].older = session.older;
        }
        self.states.0.iter_mut().for_each(|state| state.reset(slot));
        self.free.push(slot);
    }

    /// Drops emitted sessions once they are the majority (SESSION-4).
    fn tidy(&mut self) {
        let too_many = |all: usize, used: usize| used == 0 || (all > FEW && all / SLACK > used);
        if too_many(self.slots.len(), self.live()) || too_many(self.keys.len(), self.live_keys) {
            *self = self.part(|_| true);
        }
    }
}
