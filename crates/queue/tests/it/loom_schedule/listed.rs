//! A list of what has tasks at work (LISTED-1).

use penstock_queue::listed::Listed;

use super::*;

#[test]
fn a_task_that_wakes_while_it_is_taken_off_the_list_is_listed() {
    check(|| {
        let (queue, listed) = (flat_queue(1, 0, 1), Arc::new(Listed::new(true)));
        let waking = {
            let listed = Arc::clone(&listed);
            start(&queue, move |queue| queue.wake(0, || Level::FIRST) && listed.enlist())
        };
        listed.delist();
        let is_kept = !queue.is_idle(0);
        let is_added = waking.join().unwrap();
        assert!(is_kept || is_added, "it is ready, and not listed");
    });
}
