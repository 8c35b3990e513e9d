//! Which ranks are ready: a bitmap under summaries, so that the first set bit is found in a few steps.
//!
//! Level 0 has a bit for each rank; a bit of any other level stands for a word of the level below. The highest level
//! is one word. Every change is a read-modify-write, so the changes of a word have one order, and a later one sees
//! what an earlier one released.
//!
//! B1. Whoever turns a word from zero into something else sets the bit that stands for it *afterwards*; whoever
//!     clears a bit that stands for a word looks at that word *afterwards*, and sets the bit again if the word is
//!     not zero. Of the two the later one decides: the set stays, or the look sees the word as it is now. So a
//!     word that is not zero has its bit set, or somebody is on the way to set it.
//! B2. A bit too many above is harmless: whoever finds the word below empty clears the bit, under B1.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering, ordering, planted};

/// Bits of an index that one level resolves. Models have few tasks, and shall have several levels all the same.
const LEVEL_BITS: usize = if cfg!(loom) {
    1
} else if cfg!(shuttle) {
    2
} else {
    6
};

/// Bits used of a word.
const WIDTH: usize = 1 << LEVEL_BITS;

/// Ranks at most: three levels.
pub(super) const MOST_RANKS: usize = WIDTH * WIDTH * WIDTH;

/// Words of a level that share a cache line, or two of them where the processor fetches pairs.
const LINE_WORDS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// Levels begin on lines of their own: the highest one is read by everybody all the time.
type Level = Box<[CachePadded<[AtomicU64; LINE_WORDS]>]>;

pub(super) struct Bits {
    /// From the ranks up to the single word.
    levels: Box<[Level]>,
}

/// What came of clearing a bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleared {
    /// Whether it was set, and this call cleared it.
    pub(super) was_set: bool,
    /// Whether other ranks were out of sight for an instant, and this call brought them back.
    pub(super) restored: bool,
}

/// The place of an index in the words of its level.
fn place(index: usize) -> (usize, u64) {
    (index >> LEVEL_BITS, 1 << (index & (WIDTH - 1)))
}

impl Bits {
    pub(super) fn new(ranks: usize) -> Self {
        let line = || CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let mut levels: Vec<Level> = Vec::new();
        let mut words = ranks;
        while words > 1 || levels.is_empty() {
            words = words.div_ceil(WIDTH);
            levels.push((0..words.div_ceil(LINE_WORDS)).map(|_| line()).collect());
        }
        Self { levels: levels.into_boxed_slice() }
    }

    fn word(&self, level: usize, word: usize) -> &AtomicU64 {
        &self.levels[level][word / LINE_WORDS][word & (LINE_WORDS - 1)]
    }

    /// Whether a rank is set that is in sight. A hint, unless something makes the last changes visible.
    pub(super) fn any(&self) -> bool {
        self.word(self.levels.len() - 1, 0).load(Ordering::Relaxed) != 0
    }

    /// Whether a rank is set. A hint.
    pub(super) fn is_set(&self, rank: usize) -> bool {
        let (word, bit) = place(rank);
        self.word(0, word).load(Ordering::Relaxed) & bit != 0
    }

    pub(super) fn set(&self, rank: usize) {
        let (word, bit) = place(rank);
        // Release: pairs with the Acquire in `clear`. Whoever clears the bit sees which task has the rank.
        let before = self.word(0, word).fetch_or(bit, ordering("schedule.bits.set", Ordering::Release));
        self.raise(1, word, before == 0);
    }

    /// Sets the bits of `level` and above that stand for the word `index` below; `duty` if that word was zero.
    fn raise(&self, level: usize, mut index: usize, mut duty: bool) {
        for level in level..self.levels.len() {
            let (word, bit) = place(index);
            let above = self.word(level, word);
            let must = duty && !planted("schedule.bits.duty");
            // Somebody else may have the duty of B1, and be held up: the rank shall not wait for that.
            let help = || !planted("schedule.bits.help") && above.load(Ordering::Relaxed) & bit == 0;
            if must || help() {
                // Release: pairs with the Acquire in `lower`. Whoever clears the bit sees the word below.
                duty = above.fetch_or(bit, ordering("schedule.bits.raise", Ordering::Release)) == 0;
            }
            index = word;
        }
    }

    pub(super) fn clear(&self, rank: usize) -> Cleared {
        let (word, bit) = place(rank);
        // Acquire: pairs with the Release in `set`.
        let before = self.word(0, word).fetch_and(!bit, ordering("schedule.bits.clear", Ordering::Acquire));
        let restored = before == bit && self.lower(1, word);
        Cleared { was_set: before & bit != 0, restored }
    }

    /// Clears the bits of `level` and above that stand for the word `index` below, which was found empty. Whether one
    /// had to be set again.
    fn lower(&self, level: usize, mut index: usize) -> bool {
        for level in level..self.levels.len() {
            let (word, bit) = place(index);
            // Acquire: pairs with the Release in `raise`.
            let see = ordering("schedule.bits.lower", Ordering::Acquire);
            let before = self.word(level, word).fetch_and(!bit, see);
            // B1.
            if !planted("schedule.bits.again") && self.word(level - 1, index).load(Ordering::Relaxed) != 0 {
                self.raise(level, index, true);
                return true;
            }
            if before != bit {
                return false;
            }
            index = word;
        }
        false
    }

    /// Clears the first bit that is set, and says its rank. `restored` is set as in [`Cleared`].
    ///
    /// None is a hint, as in [`Self::any`].
    pub(super) fn take_first(&self, restored: &mut bool) -> Option<usize> {
        'again: loop {
            let mut index = 0;
            for level in (0..self.levels.len()).rev() {
                // Relaxed: what is found here is only where to try, and an old value is corrected by the
                // read-modify-write that follows it on the same word.
                let word = self.word(level, index).load(Ordering::Relaxed);
                if word == 0 && level + 1 == self.levels.len() {
                    return None;
                }
                if word == 0 {
                    // B2.
                    *restored |= self.lower(level + 1, index);
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
