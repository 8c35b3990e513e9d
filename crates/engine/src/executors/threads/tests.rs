//! Threads of tasks that start together or not at all.

use super::*;
use crate::executors::tests::{StubQuery, await_that};

#[test]
fn a_thread_that_is_not_to_go_on_ends_without_a_run() {
    let executor = ThreadsExecutor::start(&EngineOptions::default(), u64::MAX).unwrap();
    let queries: Arc<dyn Executor> = Arc::clone(&executor) as _;
    let query = StubQuery::new(&queries, 1, vec![Arc::default()]);
    query.reserve();
    query.give(0, 3);
    for goes_on in [false, true] {
        let query = StubQuery::new(&queries, 1, query.desks.clone());
        query.reserve();
        query.bell(0).ring();
        let (_, cells) = executor.groups.add(query.group(), &executor.shared.arrivals);
        let latch = Arc::new(Latch::default());
        for cell in cells {
            let thread = executor.start_task(cell, &latch).unwrap();
            executor.threads().push(thread);
        }
        latch.open(goes_on);
        if goes_on {
            await_that("a run", || query.done(0) >= 3);
            query.end();
        } else {
            await_that("the task to go", || query.left.load(Ordering::Acquire) == 0);
            assert_eq!(query.done(0), 0);
        }
    }
    queries.stop();
}
