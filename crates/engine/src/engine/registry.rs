//! Which queries and shared sources run.
//!
//! REGISTRY-1. Adding, removing and finding one costs the same however many there are.
//! REGISTRY-2. A name belongs to one of them from when it is added until it is removed, which is before it has ended for
//!     its users.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::query::state::State;

#[derive(Default)]
struct Registered {
    /// By their numbers, which are in the order in which they were submitted.
    queries: BTreeMap<u64, Arc<State>>,
    names: HashMap<String, u64>,
    tasks: usize,
}

/// The queries and shared sources that run.
#[derive(Default)]
pub(super) struct Registry(Mutex<Registered>);

impl Registry {
    fn locked(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, whose tasks are known.
    pub(super) fn add(&self, query: &Arc<State>) {
        let mut running = self.locked();
        running.names.insert(query.name.clone(), query.id);
        running.tasks += query.faces().len();
        running.queries.insert(query.id, Arc::clone(query));
    }

    /// Removes the one of that number.
    pub(super) fn remove(&self, id: u64) {
        let removed = {
            let mut running = self.locked();
            let removed = running.queries.remove(&id);
            if let Some(query) = &removed {
                running.names.remove(&query.name);
                running.tasks -= query.faces().len();
            }
            removed
        };
        drop(removed); // without the lock: whatever goes with it
    }

    /// Returns whether one of that name runs.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.locked().names.contains_key(name)
    }

    /// Returns how many run, and of how many tasks they are made.
    pub(super) fn counts(&self) -> (usize, usize) {
        let running = self.locked();
        (running.queries.len(), running.tasks)
    }

    /// Returns all of them, in the order in which they were submitted.
    pub(super) fn all(&self) -> Vec<Arc<State>> {
        self.locked().queries.values().cloned().collect()
    }
}

/// Returns queries and shared sources in rounds: each is in a round after those of everything that it reads, which was
/// submitted before it.
pub(super) fn rounds(queries: &[Arc<State>]) -> Vec<Vec<Arc<State>>> {
    let mut rounds: Vec<Vec<Arc<State>>> = Vec::new();
    let mut places = HashMap::new();
    for state in queries {
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
