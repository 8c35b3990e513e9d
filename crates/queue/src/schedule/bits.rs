//! Which positions are set: a bitmap under summaries, so that the first set bit is found in a few steps.
//!
//! The lowest layer has a bit for each position; a bit of any other layer covers a word of the layer below. The
//! highest layer is one word. Every change is a read-modify-write, so the changes of a word have one order, and a later
//! one sees what an earlier one released.
//!
//! BITS-1. A thread that turns a word from zero into something else sets the bit that covers it *afterwards*; a thread
//!     that clears a bit that covers a word looks at that word *afterwards*, and sets the bit again if the word is
//!     not zero. Of the two the later one decides: the set stays, or the look sees the word as it is now. So a
//!     word that is not zero has its bit set, or some thread is about to set it.
//! BITS-2. A superfluous bit in a summary is harmless: a thread that finds the word below empty clears the bit, under
//!     BITS-1.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering, ordering, planted};

/// Bits of an index that one layer resolves. Models have few tasks, and need several layers all the same.
const LAYER_BITS: usize = if cfg!(loom) {
    1
} else if cfg!(shuttle) {
    2
} else {
    6
};

/// Bits used of a word.
const WIDTH: usize = 1 << LAYER_BITS;

/// The most ranks that a queue has.
pub(super) const MOST_RANKS: usize = WIDTH * WIDTH * WIDTH;

/// Words of a layer that share a cache line, or two of them where the processor fetches pairs.
const LINE_WORDS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// Layers begin on lines of their own: every thread reads the highest one all the time.
type Layer = Box<[CachePadded<[AtomicU64; LINE_WORDS]>]>;

pub(super) struct Bits {
    /// From the positions up to the single word.
    layers: Box<[Layer]>,
}

/// The result of clearing a bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleared {
    /// Whether it was set, and this call cleared it.
    pub(super) was_set: bool,
    /// Whether other positions were out of sight for an instant, and this call brought them back.
    pub(super) restored: bool,
}

/// Returns the word of an index in its layer, and the bit in that word.
fn place(index: usize) -> (usize, u64) {
    (index >> LAYER_BITS, 1 << (index & (WIDTH - 1)))
}

impl Bits {
    /// Makes a bitmap in which no position is set.
    pub(super) fn new(positions: usize) -> Self {
        let line = || CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let mut layers: Vec<Layer> = Vec::new();
        let mut words = positions;
        while words > 1 || layers.is_empty() {
            words = words.div_ceil(WIDTH);
            layers.push((0..words.div_ceil(LINE_WORDS)).map(|_| line()).collect());
        }
        Self { layers: layers.into_boxed_slice() }
    }

    fn word(&self, layer: usize, word: usize) -> &AtomicU64 {
        &self.layers[layer][word / LINE_WORDS][word & (LINE_WORDS - 1)]
    }

    /// Returns whether a position in sight is set. A hint, unless something makes the last changes visible.
    pub(super) fn any(&self) -> bool {
        self.word(self.layers.len() - 1, 0).load(Ordering::Relaxed) != 0
    }

    /// Returns whether that position is set. A hint.
    pub(super) fn is_set(&self, position: usize) -> bool {
        let (word, bit) = place(position);
        self.word(0, word).load(Ordering::Relaxed) & bit != 0
    }

    /// Sets a position.
    pub(super) fn set(&self, position: usize) {
        let (word, bit) = place(position);
        // Release: pairs with the Acquire in `clear`. The thread that clears the bit sees which task has the position.
        let before = self.word(0, word).fetch_or(bit, ordering("schedule.bits.set", Ordering::Release));
        self.raise(1, word, before == 0);
    }

    /// Sets the bits of `layer` and above that stand for the word `index` below; `duty` if that word was zero.
    fn raise(&self, layer: usize, mut index: usize, mut duty: bool) {
        for layer in layer..self.layers.len() {
            let (word, bit) = place(index);
            let above = self.word(layer, word);
            let must = duty && !planted("schedule.bits.duty");
            // The thread with the duty of BITS-1 may be held up: the position does not wait for it.
            let help = || !planted("schedule.bits.help") && above.load(Ordering::Relaxed) & bit == 0;
            if must || help() {
                // Release: pairs with the Acquire in `lower`. The thread that clears the bit sees the word below.
                duty = above.fetch_or(bit, ordering("schedule.bits.raise", Ordering::Release)) == 0;
            }
            index = word;
        }
    }

    /// Clears a position.
    pub(super) fn clear(&self, position: usize) -> Cleared {
        let (word, bit) = place(position);
        // Acquire: pairs with the Release in `set`.
        let before = self.word(0, word).fetch_and(!bit, ordering("schedule.bits.clear", Ordering::Acquire));
        let restored = before == bit && self.lower(1, word);
        Cleared { was_set: before & bit != 0, restored }
    }

    /// Clears the bits of `layer` and above that stand for the word `index` below, which was found empty. Returns
    /// whether one had to be set again.
    fn lower(&self, layer: usize, mut index: usize) -> bool {
        for layer in layer..self.layers.len() {
            let (word, bit) = place(index);
            // Acquire: pairs with the Release in `raise`.
            let see = ordering("schedule.bits.lower", Ordering::Acquire);
            let before = self.word(layer, word).fetch_and(!bit, see);
            // BITS-1.
            if !planted("schedule.bits.again") && self.word(layer - 1, index).load(Ordering::Relaxed) != 0 {
                self.raise(layer, index, true);
                return true;
            }
            if before != bit {
                return false;
            }
            index = word;
        }
        false
    }

    /// Returns the first position that is set, or one before it. A hint, as [`Self::any`].
    pub(super) fn first(&self) -> Option<usize> {
        let mut index = 0;
        for layer in (0..self.layers.len()).rev() {
            let word = self.word(layer, index).load(Ordering::Relaxed);
            if word == 0 && layer + 1 == self.layers.len() {
                return None;
            }
            // Of a word that has been emptied meanwhile (BITS-2), the first position.
            let bit = if word == 0 { 0 } else { word.trailing_zeros() as usize };
            index = index * WIDTH + bit;
        }
        Some(index)
    }

    /// Clears the first position that is set, and returns it. Sets `restored` as in [`Cleared`].
    ///
    /// None is a hint, as in [`Self::any`].
    pub(super) fn take_first(&self, restored: &mut bool) -> Option<usize> {
        'again: loop {
            let mut index = 0;
            for layer in (0..self.layers.len()).rev() {
                // Relaxed: what is found here is only where to try, and an old value is corrected by the
                // read-modify-write that follows it on the same word.
                let word = self.word(layer, index).load(Ordering::Relaxed);
                if word == 0 && layer + 1 == self.layers.len() {
                    return None;
                }
                if word == 0 {
                    // BITS-2.
                    *restored |= self.lower(layer + 1, index);
                    continue 'again;
                }
                index = index * WIDTH + word.trailing_zeros() as usize;
            }
            let cleared = self.clear(index);
            *restored |= cleared.restored;
            if cleared.was_set {
                return Some(index);
            }
        }
    }
}
