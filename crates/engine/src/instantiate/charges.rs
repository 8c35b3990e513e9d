//! The tables of a query: one place and one charge each, whatever the number of operators that look rows up in them.

use std::sync::{Arc, Mutex};

use penstock_graph::strands::StageSpec;
use penstock_memory::Coordinator;
use penstock_memory::coordinator::StateAccount;
use penstock_operators::IndexedTable;
use penstock_plan::{KeyedTable, Resources};

use crate::error::StartError;
use crate::query::tables::LiveTable;

/// What a table is charged, for as long as a task looks rows up in it.
pub(super) type Charge = Arc<Mutex<StateAccount>>;

/// The tables of a query.
#[derive(Default)]
pub(super) struct TableCharges {
    charges: Vec<(Arc<IndexedTable>, Charge)>,
    /// The tables, for those who replace them.
    pub(super) live: Vec<LiveTable>,
}

impl TableCharges {
    /// Charges the budget for the table of a stage, unless another instance has done so.
    pub(super) fn charge(
        &mut self,
        stage: &StageSpec,
        table: &KeyedTable,
        coordinator: &Coordinator,
        resources: &mut Resources,
    ) -> Result<Charge, StartError> {
        let indexed = table.indexed();
        if let Some((_, charge)) = self.charges.iter().find(|(known, _)| Arc::ptr_eq(known, indexed)) {
            return Ok(Arc::clone(charge));
        }
        let (mut account, bytes) = (coordinator.state_account(), indexed.bytes());
        account.set(bytes).map_err(|limit| StartError::Table {
            operator: stage.name.to_owned(),
            bytes,
            limit,
        })?;
        let charge = Arc::new(Mutex::new(account));
        self.charges.push((Arc::clone(indexed), Arc::clone(&charge)));
        let place = resources.open_table(indexed);
        let stream = Arc::clone(&stage.columns().schema);
        self.live.push(LiveTable::new(table.clone(), stream, place, &charge));
        Ok(charge)
    }
}
