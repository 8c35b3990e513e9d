//! Operators that run without a pause between them.

use std::time::Instant;

use penstock_memory::{Exporter, Run, SlotId};
use penstock_operators::window::Late;
use penstock_operators::{Stage, WindowAggregate};
use penstock_scheduler::Profile;

use crate::error::RunError;
use crate::output::OperatorReport;

/// Nanoseconds since `started`.
pub(super) fn elapsed_ns(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A stateless operator and what it did.
pub(super) struct Link {
    pub(super) name: &'static str,
    pub(super) stage: Box<dyn Stage>,
    pub(super) profile: Profile,
}

/// A window at the end of a chain.
pub(super) struct WindowEnd {
    pub(super) operator: WindowAggregate,
    pub(super) profile: Profile,
}

/// The sink at the end of the last chain.
pub(super) struct Sink {
    pub(super) exporter: Exporter,
    pub(super) slots: Vec<SlotId>,
    pub(super) profile: Profile,
}

/// Where the rows of a chain go.
pub(super) enum End {
    Window(Box<WindowEnd>),
    Sink(Sink),
}

/// A chain and its run.
pub(super) struct Chain {
    pub(super) run: Run,
    /// Rows that a cursor in front of this chain may put into one run.
    pub(super) room: usize,
    pub(super) links: Vec<Link>,
    pub(super) end: End,
}

impl Chain {
    /// Passes the present run through the operators to the end.
    pub(super) fn process(&mut self) -> Result<(), RunError> {
        let run = &mut self.run;
        // One clock reading between two operators: the end of one is the start of the next.
        let mut clock = Instant::now();
        let mut lap = |profile: &mut Profile, rows_in: usize, rows_out: usize| {
            let now = Instant::now();
            profile.record(rows_in, rows_out, u64::try_from((now - clock).as_nanos()).unwrap_or(u64::MAX));
            clock = now;
        };
        for link in &mut self.links {
            if run.is_empty() {
                return Ok(());
            }
            let rows = run.len();
            link.stage
                .apply(run)
                .map_err(|error| RunError::Compute { operator: link.name.to_owned(), error })?;
            lap(&mut link.profile, rows, run.len());
        }
        let rows = run.len();
        if rows == 0 {
            return Ok(());
        }
        match &mut self.end {
            End::Window(window) => {
                window.operator.consume(run);
                lap(&mut window.profile, rows, 0);
            }
            End::Sink(sink) => {
                run.ready(&sink.slots);
                let columns: Vec<_> = sink.slots.iter().map(|&slot| run.column(slot)).collect();
                sink.exporter.append(&columns, rows)?;
                lap(&mut sink.profile, rows, rows);
            }
        }
        Ok(())
    }

    /// Rows that the operators dropped, and rows that reached the end.
    pub(super) fn row_counts(&self) -> (u64, u64) {
        let dropped = self.links.iter().map(|link| link.profile.rows_in - link.profile.rows_out).sum();
        let reached = match &self.end {
            End::Window(window) => window.profile.rows_in,
            End::Sink(sink) => sink.profile.rows_in,
        };
        (dropped, reached)
    }

    /// Rows that came too late for the window at the end.
    pub(super) fn late(&self) -> Late {
        match &self.end {
            End::Window(window) => window.operator.late(),
            End::Sink(_) => Late::default(),
        }
    }

    /// What each operator did.
    pub(super) fn reports(&self) -> Vec<OperatorReport> {
        let (name, profile) = match &self.end {
            End::Window(window) => ("window", &window.profile),
            End::Sink(sink) => ("sink", &sink.profile),
        };
        let links = self.links.iter().map(|link| (link.name, &link.profile));
        links
            .chain([(name, profile)])
            .map(|(name, profile)| OperatorReport { name: name.to_owned(), profile: profile.clone() })
            .collect()
    }
}
