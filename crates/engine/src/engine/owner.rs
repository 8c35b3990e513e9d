//! Who owns the threads of an engine, and ends them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::core::Core;
use super::workers;

/// How long `stop` waits before it looks again.
const GLANCE: Duration = Duration::from_millis(20);

/// The threads of an engine.
pub(super) struct Owner {
    core: Arc<Core>,
    /// Held while queries come.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held while the engine stops.
    stopping: Mutex<()>,
    process: u32,
}

impl Owner {
    pub(super) fn new(core: &Arc<Core>) -> Self {
        Self {
            core: Arc::clone(core),
            threads: Mutex::default(),
            stopping: Mutex::default(),
            process: std::process::id(),
        }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        if !self.is_of_this_process() {
            return; // N1: the lock below may be held for ever
        }
        // Whoever stops it as well waits for the first.
        let _stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = self.locked();
        if self.core.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        drop(threads); // no query comes any more
        let (core, threads) = (Arc::clone(&self.core), std::mem::take(&mut *self.locked()));
        if workers::is_of(core.number) {
            // A task lets go of its own engine. It cannot wait for itself, and nobody asks it to.
            core.roster.get().queries.iter().rev().for_each(|query| query.stop());
            let _ =
                thread::Builder::new().name("penstock-stop".to_owned()).spawn(move || end(&core, threads));
            return;
        }
        end(&core, threads);
    }
}

/// Ends every query, and joins every thread.
fn end(core: &Core, threads: Vec<JoinHandle<()>>) {
    let roster = core.roster.get();
    // Those that read a shared source before the source: it is not the reason why they end.
    roster.queries.iter().rev().for_each(|query| query.stop());
    for query in &roster.queries {
        while !query.wait(GLANCE) {}
    }
    core.queue.close();
    core.epoch.close();
    for thread in threads {
        // A panic there was caught and reported where it belongs.
        let _ = thread.join();
    }
    core.timers.clear();
    // Whoever holds a query that has ended does not keep a thread.
    core.coordinator.close();
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.is_of_this_process() {
            return self.stop();
        }
        // The threads of the parent are not here, and their locks may be held for ever: nothing is touched.
        std::mem::forget(Arc::clone(&self.core));
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::forget(std::mem::take(threads));
    }
}
