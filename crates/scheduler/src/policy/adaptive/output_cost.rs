//! What it takes to get one more row out of a query by running a task.
//!
//! The output selectivity of a task is how many rows leave the query, along the best path, for one row that it
//! takes in. Its output cost is its own cost per row that leaves, plus the output costs of what is downstream: all
//! the way down, so that a task always costs more than those it feeds. A task that is reached along two paths is
//! paid for twice. Of several tasks that share the rows of one log among them a row reaches one: they count as one task,
//! each for the part of the rows that it takes.

use smallvec::SmallVec;

use crate::views::{PartView, Snapshot, TaskView};

/// What a row costs in a task that has not been measured. Low, so that the task is measured soon.
const UNKNOWN_COST_NS: f64 = 1.0;

/// Rows out per row in of a task that has not been measured: it passes rows on, until the contrary is known.
const UNKNOWN_SELECTIVITY: f64 = 1.0;

/// The least selectivity of a task: one row per run of a thousand, since less cannot be told from nothing between
/// two roll-ups. A task that has given nothing yet would otherwise cost infinitely much and never run.
const LEAST_SELECTIVITY: f64 = 1.0 / 1024.0;

/// Bounds that no query reaches, and that keep quotients and sums finite for any counters.
const OUTPUT_SELECTIVITY: (f64, f64) = (1e-12, 1e12);
const COST_NS: (f64, f64) = (LEAST_OUTPUT_COST_NS, 1e15);

/// No output cost is lower.
pub const LEAST_OUTPUT_COST_NS: f64 = 1e-3;

/// The output cost of every task, in buffers that are kept from epoch to epoch.
#[derive(Debug, Default)]
pub struct OutputCosts {
    tasks: Vec<OutputCost>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OutputCost {
    selectivity: f64,
    cost_ns: f64,
}

impl OutputCosts {
    /// Works out the costs of all tasks, the last one first (VIEWS-1).
    pub fn compute(&mut self, snapshot: &Snapshot) {
        self.tasks.clear();
        self.tasks.resize(snapshot.tasks.len(), OutputCost::default());
        for (index, task) in snapshot.tasks.iter().enumerate().rev() {
            let readers = snapshot.downstream(index);
            let readers = readers.map(|down| (snapshot.tasks[down].part, self.tasks[down]));
            self.tasks[index] = output(task, readers);
        }
    }

    /// Returns what one more row out of the query costs by way of task `index`.
    pub fn cost_ns(&self, index: usize) -> f64 {
        self.tasks[index].cost_ns
    }
}

fn output(task: &TaskView, readers: impl Iterator<Item = (Option<PartView>, OutputCost)>) -> OutputCost {
    let mut best: Option<f64> = None;
    let mut rest_ns = 0.0;
    let mut shared: SmallVec<[(usize, OutputCost); 2]> = SmallVec::new();
    for (part, reader) in readers {
        let Some(PartView { first, share }) = part else {
            best = Some(best.map_or(reader.selectivity, |best| best.max(reader.selectivity)));
            rest_ns += reader.cost_ns;
            continue;
        };
        let share = within(share, (0.0, 1.0));
        let (selectivity, cost_ns) = (share * reader.selectivity, share * reader.cost_ns);
        match shared.iter_mut().find(|(group, _)| *group == first) {
            Some((_, sum)) => {
                sum.selectivity += selectivity;
                sum.cost_ns += cost_ns;
            }
            None => shared.push((first, OutputCost { selectivity, cost_ns })),
        }
    }
    for (_, sum) in shared {
        best = Some(best.map_or(sum.selectivity, |best| best.max(sum.selectivity)));
        rest_ns += sum.cost_ns;
    }
    let own = task.selectivity.unwrap_or(UNKNOWN_SELECTIVITY).max(LEAST_SELECTIVITY);
    let selectivity = within(own * best.unwrap_or(1.0), OUTPUT_SELECTIVITY);
    let cost_ns = within(task.cost_ns.unwrap_or(UNKNOWN_COST_NS), COST_NS);
    OutputCost { selectivity, cost_ns: within(cost_ns / selectivity + rest_ns, COST_NS) }
}

/// Returns the value, or the bound it exceeds; the lower one for NaN.
fn within(value: f64, (least, most): (f64, f64)) -> f64 {
    if value >= least { value.min(most) } else { least }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::*;

    fn task(cost_ns: f64, selectivity: f64, downstream: &[usize]) -> TaskView {
        TaskView {
            cost_ns: Some(cost_ns),
            selectivity: Some(selectivity),
            downstream: SmallVec::from_slice(downstream),
            ..TaskView::default()
        }
    }

    fn costs_ns(tasks: Vec<TaskView>) -> Vec<f64> {
        let mut costs = OutputCosts::default();
        costs.compute(&Snapshot { tasks, ..Snapshot::default() });
        costs.tasks.iter().map(|output| output.cost_ns).collect()
    }

    #[test]
    fn costs_add_up_all_the_way_down() {
        // The five operators of Enjima's Table 1: A -> B -> {C, D} -> E.
        let costs = costs_ns(vec![
            task(0.5, 1.0, &[1]),
            task(0.5, 1.0, &[2, 3]),
            task(0.5, 0.25, &[4]),
            task(0.5, 0.3, &[4]),
            task(0.5, 1.0, &[]),
        ]);
        for (cost, expected) in costs.iter().zip([8.0, 6.0 + 1.0 / 3.0, 2.5, 2.0 + 1.0 / 6.0, 0.5]) {
            assert!((cost - expected).abs() < 1e-9, "{cost} {expected}");
        }
    }

    #[test]
    fn a_row_that_is_exchanged_is_paid_for_once() {
        let part = |first, share, cost_ns, selectivity| TaskView {
            part: Some(PartView { first, share }),
            ..task(cost_ns, selectivity, &[])
        };
        // A writer, and two parts that take three quarters and a quarter of its rows.
        let costs =
            costs_ns(vec![task(10.0, 1.0, &[1, 2]), part(1, 0.75, 40.0, 0.5), part(1, 0.25, 80.0, 0.25)]);
        // 40 / 0.5 and 80 / 0.25 for a result; a row gives 0.75 * 0.5 + 0.25 * 0.25 = 0.4375 of one.
        for (cost, expected) in costs.iter().zip([10.0 / 0.4375 + 0.75 * 80.0 + 0.25 * 320.0, 80.0, 320.0]) {
            assert!((cost - expected).abs() < 1e-9, "{cost} {expected}");
        }
        // The parts of two operators that read one log are paid for both; the better one counts.
        let costs = costs_ns(vec![
            task(10.0, 1.0, &[1, 2, 3, 4]),
            part(1, 0.5, 10.0, 1.0),
            part(1, 0.5, 10.0, 1.0),
            part(3, 0.5, 10.0, 0.5),
            part(3, 0.5, 10.0, 0.5),
        ]);
        assert_eq!(costs[0], 10.0 + 10.0 + 20.0);
    }

    #[test]
    fn a_task_without_output_yet_is_dear_but_not_infinitely() {
        let costs =
            costs_ns(vec![task(100.0, 0.0, &[]), task(100.0, 1.0 / 2000.0, &[]), task(100.0, 0.01, &[])]);
        assert_eq!(costs[0], 102_400.0);
        assert_eq!(costs[1], costs[0]);
        assert!(costs[2] < costs[0]);
    }

    #[test]
    fn what_is_not_known_is_taken_to_be_cheap() {
        let unknown = TaskView::default();
        assert_eq!(costs_ns(vec![unknown]), [UNKNOWN_COST_NS]);
    }

    #[test]
    fn paths_without_end_and_numbers_without_measure_stay_within_bounds() {
        let steps = (0..3_000).map(|index| task(1e6, 0.0, &[index + 1, index + 2]));
        let ladder = steps.chain([task(1e6, 0.0, &[]), task(1e6, 0.0, &[])]).collect();
        let odd = vec![
            task(f64::MAX, f64::MAX, &[1, 3]),
            task(f64::NAN, f64::NAN, &[2, 2, 2]),
            task(0.0, f64::INFINITY, &[3]),
            TaskView { part: Some(PartView { first: 3, share: f64::NAN }), ..task(-1.0, -1.0, &[]) },
        ];
        for cost_ns in costs_ns(ladder).into_iter().chain(costs_ns(odd)) {
            assert!((COST_NS.0..=COST_NS.1).contains(&cost_ns), "{cost_ns}");
        }
    }
}
