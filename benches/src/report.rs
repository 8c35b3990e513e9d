//! Runs contenders in turns over the same rows and prints how they compare.
//!
//! Each round runs every contender once, and the next round starts with another one, so that a slow moment of
//! the machine and a warm cache fall on all of them alike. The ratio is the median of the ratios within each
//! round.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds when nothing else is asked for: an odd number, so that the median is a run that happened.
pub const DEFAULT_ROUNDS: usize = 7;

/// The contenders of one comparison. The first is the one that the others are measured against.
pub struct Comparison<'a> {
    rows: u64,
    rounds: usize,
    contenders: Vec<(String, Box<dyn FnMut() + 'a>)>,
}

impl<'a> Comparison<'a> {
    /// A comparison in which each run of each contender goes over `rows` rows.
    pub fn new(rows: u64) -> Self {
        Self { rows, rounds: DEFAULT_ROUNDS, contenders: Vec::new() }
    }

    /// Sets the number of timed rounds; at least one is run.
    #[must_use]
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Adds a contender. Its result is kept from the optimiser.
    #[must_use]
    pub fn contender<R>(mut self, name: impl Into<String>, mut run: impl FnMut() -> R + 'a) -> Self {
        let run = move || {
            black_box(run());
        };
        self.contenders.push((name.into(), Box::new(run)));
        self
    }

    /// One round untimed, to touch all memory once, then the timed ones.
    pub fn run(mut self) -> Report {
        for (_, run) in &mut self.contenders {
            run();
        }
        let count = self.contenders.len();
        let mut times = vec![Vec::with_capacity(self.rounds); count];
        for round in 0..self.rounds {
            for turn in 0..count {
                let at = (round + turn) % count;
                let begin = Instant::now();
                (self.contenders[at].1)();
                times[at].push(begin.elapsed());
            }
        }
        let names = self.contenders.into_iter().map(|(name, _)| name);
        Report::new(self.rows, names.zip(times).collect())
    }
}

/// How one contender did.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The contender.
    pub name: String,
    /// Rows per second, the median over the rounds.
    pub median: f64,
    /// Rows per second in the slowest round.
    pub min: f64,
    /// Rows per second in the fastest round.
    pub max: f64,
    /// This contender's speed over the first one's, the median over the rounds.
    pub ratio: f64,
}

/// The finished comparison. Printing it gives a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// One line per contender, in the order in which they were added.
    pub lines: Vec<Line>,
}

impl Report {
    /// From the times of each contender, one per round and as many for each.
    fn new(rows: u64, times: Vec<(String, Vec<Duration>)>) -> Self {
        let speeds: Vec<Vec<f64>> = times
            .iter()
            .map(|(_, times)| times.iter().map(|time| rows as f64 / time.as_secs_f64().max(1e-9)).collect())
            .collect();
        let lines = times.into_iter().zip(&speeds).map(|((name, _), own)| {
            let ratios: Vec<f64> = own.iter().zip(&speeds[0]).map(|(own, first)| own / first).collect();
            Line {
                name,
                median: median(own),
                min: own.iter().copied().fold(f64::INFINITY, f64::min),
                max: own.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ratio: median(&ratios),
            }
        });
        Self { lines: lines.collect() }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0).max(4);
        writeln!(f, "{:<wide$}  {:>10}  {:>17}  {:>6}", "name", "M rows/s", "min..max", "ratio")?;
        for line in &self.lines {
            let [median, min, max] = [line.median, line.min, line.max].map(|speed| speed / 1e6);
            let spread = format!("{min:.1}..{max:.1}");
            writeln!(f, "{:<wide$}  {median:>10.1}  {spread:>17}  {:>6.3}", line.name, line.ratio)?;
        }
        Ok(())
    }
}

/// The middle value, or the mean of the middle two. 0 when there are none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn millis(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|&time| Duration::from_millis(time)).collect()
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[5.0]), 5.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn speeds_and_ratios_follow_from_the_times() {
        // The machine is half as fast in the second round, for both: the ratio does not notice.
        let times = vec![
            ("fused".to_owned(), millis(&[100, 200, 125])),
            ("engine".to_owned(), millis(&[200, 400, 200])),
        ];
        let report = Report::new(1_000_000, times);
        let [fused, engine] = &report.lines[..] else { panic!("two lines") };
        assert_eq!((fused.median, fused.min, fused.max, fused.ratio), (8e6, 5e6, 1e7, 1.0));
        assert_eq!((engine.median, engine.min, engine.max, engine.ratio), (5e6, 2.5e6, 5e6, 0.5));
    }

    #[test]
    fn the_table_lines_up() {
        let times = vec![("fused loop".to_owned(), millis(&[100])), ("engine".to_owned(), millis(&[400]))];
        let expected = "\
name          M rows/s           min..max   ratio
fused loop        10.0         10.0..10.0   1.000
engine             2.5           2.5..2.5   0.250
";
        assert_eq!(Report::new(1_000_000, times).to_string(), expected);
    }

    #[test]
    fn contenders_take_turns() {
        let order = RefCell::new(String::new());
        let report = Comparison::new(1)
            .rounds(3)
            .contender("a", || order.borrow_mut().push('a'))
            .contender("b", || order.borrow_mut().push('b'))
            .run();
        assert_eq!(*order.borrow(), "ababbaab");
        assert_eq!(report.lines.iter().map(|line| line.name.as_str()).collect::<String>(), "ab");
    }

    #[test]
    fn an_empty_comparison_is_an_empty_table() {
        assert_eq!(Comparison::new(1).run().lines, []);
    }
}
