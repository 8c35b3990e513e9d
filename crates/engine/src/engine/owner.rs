//! The owner of an engine: the last handle that is dropped ends it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::core::Core;
use crate::executors;

/// How long `stop` waits before it looks again.
const GLANCE: Duration = Duration::from_millis(20);

/// Owns an engine.
pub(super) struct Owner {
    core: Arc<Core>,
    /// Held while queries come.
    coming: Mutex<()>,
    /// Held while the engine stops.
    stopping: Mutex<()>,
    process: u32,
}

impl Owner {
    pub(super) fn new(core: &Arc<Core>) -> Self {
        Self {
            core: Arc::clone(core),
            coming: Mutex::default(),
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

    /// Takes the lock that is held while a query comes.
    pub(super) fn admission(&self) -> MutexGuard<'_, ()> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        if !self.is_of_this_process() {
            return; // ENGINE-1: the lock below may be held for ever
        }
        // Another thread that stops it as well waits for the first.
        let _stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let admission = self.admission();
        if self.core.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        drop(admission); // no query comes any more
        let core = Arc::clone(&self.core);
        if executors::is_run_here(core.number) {
            // A task lets go of its own engine. It cannot wait for itself, and no caller expects it to.
            core.registry.all().iter().rev().for_each(|query| query.stop());
            let _ = thread::Builder::new().name("penstock-stop".to_owned()).spawn(move || end(&core));
            return;
        }
        end(&core);
    }
}

/// Ends every query, and joins every thread.
fn end(core: &Core) {
    let queries = core.registry.all();
    // Those that read a shared source before the source: it is not the reason why they end.
    queries.iter().rev().for_each(|query| query.stop());
    for query in &queries {
        while !query.wait(GLANCE) {}
    }
    core.executor.stop();
    // A query that has ended, and is still held, does not keep a thread.
    core.coordinator.close();
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.is_of_this_process() {
            return self.stop();
        }
        // The threads of the parent are not here, and their locks may be held for ever: nothing is touched.
        std::mem::forget(Arc::clone(&self.core));
    }
}
