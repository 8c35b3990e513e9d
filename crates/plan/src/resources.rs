//! What the instances of a query share: live lookup tables, and the functions that are called for it.

use std::fmt;
use std::sync::Arc;

use penstock_operators::{IndexedTable, TablePlace};

use crate::function::Function;

/// The resources of one query. [`Step::make`](crate::Step::make) takes from here whatever is not its own.
#[derive(Clone, Default)]
pub struct Resources {
    /// The place at which each table of the plan is found.
    tables: Vec<(Arc<IndexedTable>, TablePlace)>,
    /// Functions of the plan, each with the one that is called in its place.
    functions: Vec<(Function, Function)>,
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tables, functions) = (self.tables.len(), &self.functions);
        f.debug_struct("Resources").field("tables", &tables).field("functions", functions).finish()
    }
}

impl Resources {
    /// The resources of a query in which these functions are called in the place of those of the plan.
    pub fn new(functions: &[(Function, Function)]) -> Self {
        Self { tables: Vec::new(), functions: functions.to_vec() }
    }

    /// Opens a place for a table, or returns the one that it has: all instances look rows up in the same place.
    pub fn open_table(&mut self, table: &Arc<IndexedTable>) -> TablePlace {
        if let Some(place) = self.find(table) {
            return place;
        }
        let place = TablePlace::new(Arc::clone(table));
        self.tables.push((Arc::clone(table), place.clone()));
        place
    }

    /// Returns the place of a table; one of its own if none was opened.
    pub(crate) fn table(&self, table: &Arc<IndexedTable>) -> TablePlace {
        self.find(table).unwrap_or_else(|| TablePlace::new(Arc::clone(table)))
    }

    fn find(&self, table: &Arc<IndexedTable>) -> Option<TablePlace> {
        let found = self.tables.iter().find(|(written, _)| Arc::ptr_eq(written, table));
        found.map(|(_, place)| place.clone())
    }

    /// Returns the function that is called in the place of one of the plan.
    pub(crate) fn function(&self, written: &Function) -> Function {
        let called = self.functions.iter().find(|(plan, _)| plan == written);
        called.map_or(written, |(_, called)| called).clone()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;

    fn table() -> Arc<IndexedTable> {
        let keys = Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("k", keys)]).unwrap();
        Arc::new(IndexedTable::new(&batch, &[0]).unwrap().ok().unwrap())
    }

    #[test]
    fn a_table_has_one_place_however_often_it_is_opened() {
        let mut resources = Resources::default();
        let (one, other) = (table(), table());
        for table in [&one, &other, &one] {
            resources.open_table(table);
        }
        assert_eq!(resources.tables.len(), 2);
        assert!(resources.find(&other).is_some() && resources.find(&table()).is_none());
    }
}
