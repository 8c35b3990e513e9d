//! Rows of words from one writer to one reader, with signals between them and values that they keep alive.
//!
//! A *frame* is a row of words; all frames have the same number. The words mean nothing here. `S` is a signal, `K` a
//! value that a frame keeps alive while it waits. Frames, signals and kept values have a queue each, so each kind is
//! counted apart; a signal carries the number of the frame that follows it.
//!
//! FRAMES-1. Words of frames in `head..tail` belong to the reader, the others to the writer: RING-2, with atomics for
//!     slots. The positions order all accesses to them, so these are Relaxed.
//! FRAMES-2. A signal before frame `n` is in its queue before `tail` passes `n`. A reader loads `tail` before it looks
//!     at the signals, so it knows every signal before the frames that it knows.
//! FRAMES-3. The value that a frame keeps is in its queue before `tail` passes the frame, and leaves it before `head`
//!     does. So where there is room for a frame there is room for what it keeps.
//! FRAMES-4. The flag that the writer is gone is stored last and loaded first: a reader that sees it then sees the
//!     last of everything else.
//!
//! No call here sleeps: the side that publishes wakes the other side afterwards, by its own means.

use std::ops::Range;

use super::ends::Ends;
use super::{Consumer, Producer, PushBatch, ring, slot_bytes};
use crate::log::Work;
use crate::sync::{Arc, AtomicU64, Ordering, planted};

/// The capacities of the queues, and the size of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameShape {
    /// Number of frames that may wait; rounded up to a power of two.
    pub frames: usize,
    /// Words per frame.
    pub words: usize,
    /// Number of signals that may wait.
    pub signals: usize,
    /// Largest number of values that a frame keeps.
    pub kept: usize,
}

impl FrameShape {
    /// Returns the bytes of the queues, for signals `S` and kept values `K`.
    pub fn bytes<S, K>(&self) -> usize {
        self.frames.next_power_of_two() * self.words * size_of::<u64>()
            + slot_bytes::<(usize, S)>(self.signals)
            + slot_bytes::<K>(self.kept_in_all())
    }

    /// Returns the number of values that all frames keep (FRAMES-3). At least one, since a queue has room for a value.
    fn kept_in_all(&self) -> usize {
        (self.frames.next_power_of_two() * self.kept).max(1)
    }
}

/// The words of all frames.
struct FrameWords {
    words: Box<[AtomicU64]>,
    per_frame: usize,
    frames: usize,
}

impl FrameWords {
    /// Returns the words of up to `most` frames from number `first` on, as far as they are adjacent.
    fn together(&self, first: usize, most: usize) -> (usize, &[AtomicU64]) {
        let slot = first & (self.frames - 1);
        let frames = most.min(self.frames - slot);
        (frames, &self.words[slot * self.per_frame..(slot + frames) * self.per_frame])
    }
}

/// Creates a queue of frames.
///
/// # Panics
/// When there is no room for a frame or a signal.
pub fn frames<S, K>(shape: FrameShape) -> (FrameWriter<S, K>, FrameReader<S, K>) {
    assert!(shape.frames > 0 && shape.words > 0, "a queue needs room for a frame");
    let frames = shape.frames.next_power_of_two();
    let words = Arc::new(FrameWords {
        words: (0..frames * shape.words).map(|_| AtomicU64::new(0)).collect(),
        per_frame: shape.words,
        frames,
    });
    let ends = Arc::new(Ends::new());
    let (to_signals, signals) = ring(shape.signals);
    let (to_kept, kept) = ring(shape.kept_in_all());
    let writer = FrameWriter {
        ends: Arc::clone(&ends),
        words: Arc::clone(&words),
        signals: to_signals,
        kept: to_kept,
    };
    (writer, FrameReader { ends, words, signals, kept, head: 0, tail: 0, peeked: PeekedFrames::Nothing })
}

/// The writing side.
pub struct FrameWriter<S, K> {
    ends: Arc<Ends>,
    words: Arc<FrameWords>,
    signals: Producer<(usize, S)>,
    kept: Producer<K>,
}

/// Adjacent frames to be filled.
#[derive(Clone, Copy)]
pub struct Blank<'a> {
    words: &'a [AtomicU64],
    per_frame: usize,
}

impl Blank<'_> {
    /// Returns some of the frames.
    #[must_use]
    pub fn part(&self, frames: Range<usize>) -> Self {
        let words = frames.start * self.per_frame..frames.end * self.per_frame;
        Self { words: &self.words[words], per_frame: self.per_frame }
    }

    /// Sets word number `word` of each frame, from the first on, to the next of `values`.
    #[inline]
    pub fn put(&self, word: usize, values: impl Iterator<Item = u64>) {
        assert!(word < self.per_frame, "a frame has the words of its shape");
        for (frame, value) in self.words.chunks_exact(self.per_frame).zip(values) {
            frame[word].store(value, Ordering::Relaxed); // FRAMES-1
        }
    }

    /// Sets those bits in word number `word` of each frame that are set in the next of `values`.
    #[inline]
    pub fn add(&self, word: usize, values: impl Iterator<Item = u64>) {
        assert!(word < self.per_frame, "a frame has the words of its shape");
        for (frame, value) in self.words.chunks_exact(self.per_frame).zip(values) {
            let word = &frame[word];
            word.store(word.load(Ordering::Relaxed) | value, Ordering::Relaxed); // FRAMES-1
        }
    }

    /// Sets word number `word` of one frame.
    #[inline]
    pub fn set(&self, frame: usize, word: usize, value: u64) {
        assert!(word < self.per_frame, "a frame has the words of its shape");
        self.words[frame * self.per_frame + word].store(value, Ordering::Relaxed); // FRAMES-1
    }
}

impl<S, K> FrameWriter<S, K> {
    /// Returns the number of frames that can be appended now; more, once the reader advances.
    pub fn room(&self) -> usize {
        self.ends.room(self.words.frames)
    }

    /// Returns true once the reader is gone.
    pub fn is_closed(&self) -> bool {
        self.ends.is_consumer_gone()
    }

    /// Appends frames and publishes them together. Calls `fill` for one stretch of adjacent frames after the other,
    /// with the numbers of its frames counted from the first of this call; the values that `fill` pushes are kept as
    /// long as their frames.
    ///
    /// # Panics
    /// When there is no room for them.
    pub fn append(
        &mut self,
        frames: usize,
        mut fill: impl FnMut(Range<usize>, Blank<'_>, &mut PushBatch<'_, K>),
    ) {
        assert!(frames <= self.room(), "appended frames fit the room");
        let tail = self.ends.tail();
        if planted("ring.frames.tail.early") {
            self.ends.publish(tail + frames);
        }
        let mut kept = self.kept.batch();
        let mut done = 0;
        while done < frames {
            let (some, words) = self.words.together(tail + done, frames - done);
            fill(done..done + some, Blank { words, per_frame: self.words.per_frame }, &mut kept);
            done += some;
        }
        drop(kept); // FRAMES-3
        self.ends.publish(tail + frames);
    }

    /// Returns the number of signals that can follow the last frame now.
    pub fn signal_room(&self) -> usize {
        self.signals.room()
    }

    /// Puts a signal after the last frame, or returns it when too many wait or the reader is gone.
    pub fn signal(&mut self, signal: S) -> Result<(), S> {
        self.signals.try_push((self.ends.tail(), signal)).map_err(|(_, signal)| signal)
    }
}

impl<S, K> Drop for FrameWriter<S, K> {
    fn drop(&mut self) {
        self.ends.leave_as_producer(); // FRAMES-4: everything else was published before
    }
}

/// What comes next for a reader. A signal before a frame comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameNext<S> {
    /// That many adjacent frames, with no signal between them.
    Frames(usize),
    /// A signal.
    Signal(S),
    /// Nothing now; more may come.
    Nothing,
    /// Nothing now or ever: the writer is gone.
    Closed,
}

/// What `peek` has returned and `advance` or `pass` may consume.
#[derive(Clone, Copy)]
enum PeekedFrames<S> {
    Nothing,
    Frames(usize),
    Signal(S),
}

/// The reading side.
pub struct FrameReader<S, K> {
    ends: Arc<Ends>,
    words: Arc<FrameWords>,
    signals: Consumer<(usize, S)>,
    kept: Consumer<K>,
    /// The reader's own position, and the last value it has loaded of the writer's.
    head: usize,
    tail: usize,
    peeked: PeekedFrames<S>,
}

/// Adjacent frames that wait.
#[derive(Clone, Copy)]
pub struct Frames<'a> {
    words: &'a [AtomicU64],
    per_frame: usize,
}

impl<'a> Frames<'a> {
    /// Returns word number `word` of each frame.
    #[inline]
    pub fn word(&self, word: usize) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        assert!(word < self.per_frame, "a frame has the words of its shape");
        // FRAMES-1.
        self.words.chunks_exact(self.per_frame).map(move |frame| frame[word].load(Ordering::Relaxed))
    }
}

impl<S: Copy + Sync, K: Sync> FrameReader<S, K> {
    /// Returns what comes next, at most `most` frames at a time. The result stays the same until [`Self::advance`] or
    /// [`Self::pass`] consumes it, except that [`FrameNext::Nothing`] is looked up anew each time.
    #[inline]
    pub fn peek(&mut self, most: usize) -> FrameNext<S> {
        let mut gone = false;
        if let PeekedFrames::Nothing = self.peeked {
            gone = self.look(most);
        }
        match self.peeked {
            PeekedFrames::Frames(frames) => FrameNext::Frames(frames),
            PeekedFrames::Signal(signal) => FrameNext::Signal(signal),
            PeekedFrames::Nothing if gone => FrameNext::Closed,
            PeekedFrames::Nothing => FrameNext::Nothing,
        }
    }

    /// Looks for the next frames or signal; returns true if the writer was gone before.
    fn look(&mut self, most: usize) -> bool {
        let gone = self.ends.is_producer_gone();
        let early = if planted("ring.frames.signal.early") { Some(self.next_signal()) } else { None };
        // While enough frames are known, the writer's line stays untouched.
        if self.tail - self.head < most {
            self.tail = self.ends.known_tail();
        }
        let signal = early.unwrap_or_else(|| self.next_signal());
        let until = signal.map_or(self.tail, |(at, _)| at.min(self.tail));
        self.peeked = if until > self.head {
            PeekedFrames::Frames(self.words.together(self.head, most.min(until - self.head)).0)
        } else {
            match signal {
                Some((at, signal)) if at == self.head => PeekedFrames::Signal(signal),
                _ => PeekedFrames::Nothing,
            }
        };
        if planted("ring.frames.gone.late") { self.ends.is_producer_gone() } else { gone }
    }

    fn next_signal(&self) -> Option<(usize, S)> {
        self.signals.see(self.signals.position(), |signal| *signal)
    }

    /// Returns the first `frames` of the peeked frames.
    ///
    /// # Panics
    /// When fewer were peeked.
    #[inline]
    pub fn frames(&self, frames: usize) -> Frames<'_> {
        assert!(frames <= self.peeked_frames(), "only peeked frames are read");
        let (_, words) = self.words.together(self.head, frames);
        Frames { words, per_frame: self.words.per_frame }
    }

    /// Returns the number of the oldest kept value.
    pub fn kept_position(&self) -> usize {
        self.kept.position()
    }

    /// Calls `look` with the kept value of that number, if it is still there.
    #[inline]
    pub fn see_kept<R>(&self, position: usize, look: impl FnOnce(&K) -> R) -> Option<R> {
        self.kept.see(position, look)
    }

    fn peeked_frames(&self) -> usize {
        if let PeekedFrames::Frames(frames) = self.peeked { frames } else { 0 }
    }

    /// Consumes frames that [`Self::peek`] has returned, and releases the kept values below number `kept`.
    ///
    /// # Panics
    /// When `peek` has returned fewer frames.
    pub fn advance(&mut self, frames: usize, kept: usize) {
        assert!(frames <= self.peeked_frames(), "only peeked frames are consumed");
        if frames == 0 {
            return;
        }
        self.peeked = PeekedFrames::Nothing;
        let gone = kept - self.kept.position();
        if gone > 0 {
            self.kept.take(gone).for_each(drop); // FRAMES-3
        }
        self.head += frames;
        self.ends.release(self.head);
    }

    /// Consumes the signal that [`Self::peek`] has returned.
    ///
    /// # Panics
    /// When `peek` has not returned one.
    pub fn pass(&mut self) {
        let PeekedFrames::Signal(_) = self.peeked else { panic!("only a peeked signal is passed") };
        self.peeked = PeekedFrames::Nothing;
        let passed = self.signals.take(1).next();
        debug_assert!(passed.is_some(), "a signal stays until it is passed");
    }
}

impl<S, K> FrameReader<S, K> {
    /// Returns the number of waiting frames.
    pub fn pending(&self) -> usize {
        self.ends.known_tail() - self.head
    }

    /// Returns a gauge that reports to any thread how much work waits for this reader.
    pub fn gauge(&self) -> FrameGauge {
        FrameGauge { frames: Arc::clone(&self.ends), signals: self.signals.ends() }
    }
}

impl<S, K> Drop for FrameReader<S, K> {
    fn drop(&mut self) {
        self.ends.leave_as_consumer();
    }
}

/// Reports how much work waits for one reader. It keeps neither frames nor kept values alive.
#[derive(Clone)]
pub struct FrameGauge {
    frames: Arc<Ends>,
    signals: Arc<Ends>,
}

impl FrameGauge {
    /// Returns what waits now. While both sides work it may read high for an instant, never low: what was consumed is
    /// read before what was published, for rows and for signals.
    #[inline]
    pub fn work(&self) -> Work {
        // A reader that is gone consumes nothing, however far the writer proceeds.
        if self.frames.is_consumer_gone() {
            return Work::default();
        }
        Work { rows: self.frames.len() as u64, signals: self.signals.len() as u64 }
    }
}
