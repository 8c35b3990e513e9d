//! Cuts runs off the batch at hand.

use penstock_memory::{Run, Signal};

use super::{Piece, Source};
use crate::clock::{Clock, elapsed_ns};
use crate::error::RunError;
use crate::event_time::TimeFrom;
use crate::event_time::screen::{good_rows, reject};
use crate::readers::Arrived;
use crate::rejects::Rejects;
use penstock_plan::Arrival;

/// Time between two latency markers.
const MARKER_NS: u64 = 50_000_000;
/// Time between two arrival marks.
const ARRIVAL_NS: u64 = 1_000_000;

impl Source {
    /// Cuts the next run off the batch, of at most `limit` rows, for another task to begin.
    ///
    /// # Errors
    /// As [`Source::next_run`].
    pub fn next_piece(
        &mut self,
        run: &mut Run,
        limit: usize,
        time: &dyn Clock,
        rejects: Option<&mut Rejects>,
    ) -> Result<Piece, RunError> {
        let start = self.next;
        let len = self.next_run(run, limit, time, rejects)?;
        let good = (run.len() < len).then(|| self.good.clone());
        let Some(clock) = &self.clock else {
            return Ok(Piece { start, len, good, range: None, watermark: None, before: None, stamp: None });
        };
        let range = run.range_of(clock.slot);
        let before = run.holds(clock.watermark_slot).then(|| {
            run.ready(&[clock.watermark_slot]);
            run.column(clock.watermark_slot).fixed::<i64>().to_vec()
        });
        let stamp = matches!(clock.from, TimeFrom::Wall(_)).then_some(self.last_us);
        Ok(Piece { start, len, good, range, watermark: run.watermark(), before, stamp })
    }

    /// Returns true if there is more of the batch at hand to be cut off now.
    pub fn has_more_due(&self) -> bool {
        self.next < self.end && self.due > 0
    }

    /// Begins the next run of the batch, of at most `limit` rows, and returns its length before rows were rejected.
    ///
    /// # Errors
    /// A rejected row, without `rejects`.
    pub fn next_run(
        &mut self,
        run: &mut Run,
        limit: usize,
        time: &dyn Clock,
        rejects: Option<&mut Rejects>,
    ) -> Result<usize, RunError> {
        if self.is_in_columns {
            let begun = self.reader.begin(run, limit);
            self.taken += begun.rows as u64;
            self.arrived = begun.arrived;
            self.profile.record(run.len(), run.len(), 0);
            return Ok(run.len());
        }
        let started_ns = time.system_ns();
        let (start, len) = (self.next, self.rows_per_run.min(self.end - self.next).min(self.due).min(limit));
        self.next += len;
        self.due -= len;
        self.taken += len as u64;
        run.begin(&self.columns, start, len);
        self.read_time(run, (start, len), time, rejects)?;
        if self.idle_after_ns.is_some() {
            self.spoke_ns = Some(time.now_ns());
            self.is_idle = false;
            self.counts.is_idle.set(0);
        }
        if self.next == self.end {
            self.raise_mark();
        }
        self.arrived = Some(self.reader.take(len));
        self.rows += len as u64;
        self.profile.record(len, run.len(), elapsed_ns(time, started_ns));
        Ok(len)
    }

    /// Reads event time off the run that has just begun with rows `start..start + len` of the batch.
    fn read_time(
        &mut self,
        run: &mut Run,
        (start, len): (usize, usize),
        time: &dyn Clock,
        rejects: Option<&mut Rejects>,
    ) -> Result<(), RunError> {
        let Some(clock) = &mut self.clock else { return Ok(()) };
        match clock.from {
            TimeFrom::Columns { time, .. } | TimeFrom::Marked { time } => {
                let bad = clock.screen(run, time, (start, len), self.offset);
                if let Some(first) = bad.first() {
                    let schema = self.columns.schema();
                    let Some(rejects) = rejects else {
                        return Err(first.error(schema, clock, self.rows));
                    };
                    let batch = self.current.as_ref().expect("rows are cut off a batch");
                    reject(rejects, (batch, start), (schema, clock), &bad)?;
                    self.counts.rejected.add(bad.len() as u64);
                    let good = good_rows(run, &bad);
                    self.good.clone_from(&good);
                    run.select(good);
                }
                clock.observe(run, time, self.offset, &mut self.marks, &mut self.before);
            }
            TimeFrom::Wall(arrival) => {
                let wall_us = match arrival {
                    Arrival::Processing => time.wall_us(),
                    Arrival::Ingestion => self.arrived_us,
                };
                // People may set the clock back; event time never goes back for that.
                self.last_us = self.last_us.max(wall_us).max(clock.progress.latest());
                clock.stamp(run, len, self.last_us);
            }
        }
        Ok(())
    }

    /// Returns the signals that belong after the rows up to now: an arrival mark and a latency marker, each now and then.
    pub fn marks(&mut self, time: &dyn Clock) -> (Option<Signal>, Option<Signal>) {
        let Some(Arrived { last_ns, .. }) = self.arrived.filter(|_| !self.is_in_columns) else {
            return (None, None); // they stand between the rows
        };
        let is_due = |next: &mut u64, now_ns: u64, every: u64| {
            let due = now_ns >= *next;
            if due {
                *next = now_ns + every;
            }
            due
        };
        let arrival = is_due(&mut self.next_arrival_ns, last_ns, ARRIVAL_NS);
        let marker = is_due(&mut self.next_marker_ns, time.system_ns(), MARKER_NS);
        let arrival = arrival.then_some(Signal::Arrival { at_ns: last_ns });
        (arrival, marker.then_some(Signal::Marker { sent_ns: last_ns }))
    }
}
