//! Which tasks there are: for the planner and for metrics.
//!
//! The list is replaced as a whole when a query comes or goes; whoever looks at it keeps the one it has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_scheduler::PartView;
use smallvec::SmallVec;

use super::bell::Bell;
use crate::query::state::State;
use crate::tasks::share::ShareGauge;

/// One task.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) bell: Arc<Bell>,
    /// Which query of the roster it belongs to.
    pub(crate) query: usize,
    /// Which entries read what it writes.
    pub(crate) downstream: SmallVec<[usize; 2]>,
    pub(crate) is_source: bool,
    /// Where several tasks read the same rows, each of which takes its own: which it is of them.
    pub(crate) part: Option<Part>,
}

/// One of several tasks that share the rows of their input.
#[derive(Clone)]
pub(crate) struct Part {
    /// The entry of the first of them.
    first: usize,
    share: Arc<ShareGauge>,
}

impl Part {
    pub(crate) fn view(&self) -> PartView {
        PartView { first: self.first, share: self.share.fraction() }
    }
}

/// All tasks, and the queries that they belong to.
#[derive(Clone, Default)]
pub(crate) struct Roster {
    pub(crate) tasks: Vec<Entry>,
    pub(crate) queries: Vec<Arc<State>>,
}

/// The present roster.
#[derive(Default)]
pub(crate) struct RosterCell(Mutex<Arc<Roster>>);

impl Roster {
    /// The tasks of all queries. A shared source is also read by tasks of its queries, which were submitted after it.
    fn of(queries: Vec<Arc<State>>) -> Self {
        let mut tasks: Vec<Entry> = Vec::new();
        let mut sources = HashMap::new();
        for (query, state) in queries.iter().enumerate() {
            let first = tasks.len();
            if state.is_source {
                sources.insert(state.id, first);
            }
            for (id, reader) in &state.reads {
                if let Some(&source) = sources.get(id) {
                    tasks[source].downstream.push(first + reader);
                }
            }
            tasks.extend(state.faces().iter().map(|face| Entry {
                bell: Arc::clone(&face.bell),
                query,
                downstream: face.readers.iter().map(|reader| first + reader).collect(),
                is_source: face.is_source,
                part: None,
            }));
            for (task, face) in state.faces().iter().enumerate() {
                // The parts of an operator stand side by side.
                let part = face.part.as_ref();
                let place = first + task;
                tasks[place].part =
                    part.map(|(number, share)| Part { first: place - number, share: Arc::clone(share) });
            }
        }
        Self { tasks, queries }
    }

    /// Queries and shared sources in rounds: each stands in a round behind those of everything that it reads, which was
    /// submitted before it.
    pub(crate) fn rounds(&self) -> Vec<Vec<Arc<State>>> {
        let mut rounds: Vec<Vec<Arc<State>>> = Vec::new();
        let mut places = HashMap::new();
        for state in &self.queries {
            let upstream = state.upstream().filter_map(|id| places.get(&id));
            let place = upstream.max().map_or(0, |place| place + 1);
            places.insert(state.id, place);
            if place == rounds.len() {
                rounds.push(Vec::new());
            }
            rounds[place].push(Arc::clone(state));
        }
        rounds
    }
}

impl RosterCell {
    fn locked(&self) -> MutexGuard<'_, Arc<Roster>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Arc<Roster> {
        Arc::clone(&self.locked())
    }

    pub(crate) fn add(&self, query: &Arc<State>) {
        let mut roster = self.locked();
        let mut queries = roster.queries.clone();
        queries.push(Arc::clone(query));
        *roster = Arc::new(Roster::of(queries));
    }

    pub(crate) fn remove(&self, id: u64) {
        let mut roster = self.locked();
        let queries = roster.queries.iter().filter(|query| query.id != id).cloned().collect();
        *roster = Arc::new(Roster::of(queries));
    }
}
