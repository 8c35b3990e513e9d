//! The order of tasks: that in which rows pass them.

use super::assemble::Installed;

/// A task and the number that others know it by.
pub(super) type Numbered = (usize, Installed);

/// Gives tasks the numbers of the order in which they stand here, instead of those that they were made with; `reads` are
/// numbers of tasks as well.
///
/// # Panics
/// When a task stands before one whose rows it reads, or reads one that is not there: whoever plans hands costs and ages
/// on from task to task.
pub(super) fn in_order(tasks: Vec<Numbered>, reads: &mut [(u64, usize)]) -> Vec<Installed> {
    let mut places = vec![usize::MAX; tasks.len()];
    for (place, (number, _)) in tasks.iter().enumerate() {
        places[*number] = place;
    }
    for (_, task) in reads {
        *task = places[*task];
    }
    let renumber = |(place, (_, mut task)): (usize, Numbered)| {
        for reader in &mut task.readers {
            *reader = places[*reader];
            assert!(*reader > place, "{} comes before what it reads", task.name);
        }
        task.readers.sort_unstable();
        task
    };
    tasks.into_iter().enumerate().map(renumber).collect()
}
