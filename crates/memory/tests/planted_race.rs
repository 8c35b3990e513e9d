//! A data race that ThreadSanitizer must report, so that its silence about the other tests means something.
//! `scripts/sanitize.sh` runs it; without the sanitizer it shows nothing.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A word that a flag hands over.
struct Planted {
    word: UnsafeCell<u64>,
    ready: AtomicBool,
}

// SAFETY: none. Relaxed hands nothing over, so the reader below races with the writer, on purpose.
unsafe impl Sync for Planted {}

#[test]
#[ignore = "a data race on purpose, for ThreadSanitizer to find"]
fn planted_race() {
    let planted = Arc::new(Planted { word: UnsafeCell::new(0), ready: AtomicBool::new(false) });
    let writing = Arc::clone(&planted);
    let writer = thread::spawn(move || {
        // SAFETY: the reader looks only after `ready`.
        unsafe { *writing.word.get() = 7 };
        // A log that published its rows like this would be wrong: it takes Release here, and Acquire below.
        writing.ready.store(true, Ordering::Relaxed);
    });
    while !planted.ready.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    // SAFETY: the word is valid; nothing makes the write visible, which is the planted race.
    assert_eq!(unsafe { *planted.word.get() }, 7);
    writer.join().expect("the writer does nothing that can fail");
}
