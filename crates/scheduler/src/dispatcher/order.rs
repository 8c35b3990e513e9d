//! From priorities to ranks.

use crate::decision::Decision;

/// Ranks decisions, and keeps its buffers for the next epoch.
#[derive(Debug, Default)]
pub struct Order {
    /// Key and index of each decision, in the order of the last ranking.
    keys: Vec<(u64, usize)>,
    ranked: Vec<usize>,
}

impl Order {
    /// Returns the indices of the decisions: highest priority first, equal ones in the order of the tasks, NaN last.
    pub fn rank(&mut self, decisions: &[Decision]) -> &[usize] {
        if self.keys.len() != decisions.len() {
            self.keys.clear();
            self.keys.extend((0..decisions.len()).map(|index| (0, index)));
        }
        // From the last ranking on: most epochs change no rank, and sorting what is sorted costs one pass.
        for (key, index) in &mut self.keys {
            *key = falling(decisions[*index].priority);
        }
        self.keys.sort_unstable();
        self.ranked.clear();
        self.ranked.extend(self.keys.iter().map(|&(_, index)| index));
        &self.ranked
    }
}

/// Returns a number that is smaller for a higher priority.
fn falling(priority: f64) -> u64 {
    if priority.is_nan() {
        return u64::MAX;
    }
    // Adding zero makes one zero of the two.
    let bits = (priority + 0.0).to_bits();
    // Floats of one sign order like their bits: turn the positive ones round, put the negative ones after them.
    if bits >> 63 == 0 { !bits & (u64::MAX >> 1) } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantum::Quantum;

    #[test]
    fn every_float_has_its_place() {
        let positive = [f64::INFINITY, f64::MAX, 1.0, f64::MIN_POSITIVE, 5e-324, 0.0];
        let negative = positive.map(|priority| -priority).into_iter().rev();
        let keys: Vec<u64> = positive.into_iter().chain(negative).map(falling).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(falling(-0.0), falling(0.0));
        assert!(falling(f64::NEG_INFINITY) < falling(f64::NAN));
        assert_eq!(falling(f64::NAN), falling(-f64::NAN));
    }

    #[test]
    fn equal_priorities_keep_the_order_of_the_tasks() {
        let decision = |priority| Decision {
            priority,
            threshold_rows: 1,
            is_eligible: true,
            quantum: Quantum::of_rows(1),
        };
        let mut order = Order::default();
        let decisions = [0.0, 2.0, f64::NAN, 1.0, 2.0, -0.0].map(decision);
        assert_eq!(order.rank(&decisions), [1, 4, 3, 0, 5, 2]);
        assert_eq!(order.rank(&decisions[..1]), [0]);
    }
}
