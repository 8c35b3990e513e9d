//! Tables that rows are looked up in, and how others take their place while the query runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_memory::coordinator::StateAccount;
use penstock_operators::TablePlace;
use penstock_plan::KeyedTable;
use penstock_types::{PlanError, closest};

use crate::error::StartError;

/// A table at work: one for each lookup of a query, whatever the number of its instances.
pub(crate) struct LiveTable {
    /// The table as it was written, or given last.
    table: Mutex<KeyedTable>,
    /// The columns of the rows that are looked up in it.
    stream: SchemaRef,
    /// Where all instances find it.
    place: TablePlace,
    /// What it is charged; gone with the tasks that look rows up in it.
    charged: Weak<Mutex<StateAccount>>,
}

impl LiveTable {
    /// A table in which rows of that schema are looked up, at that place.
    pub(crate) fn new(
        table: KeyedTable,
        stream: SchemaRef,
        place: TablePlace,
        charged: &Arc<Mutex<StateAccount>>,
    ) -> Self {
        Self { table: Mutex::new(table), stream, place, charged: Arc::downgrade(charged) }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts another table in the place of those of that name; of the only one, if no name is given.
pub(crate) fn replace(
    tables: &[LiveTable],
    name: Option<&str>,
    with: &RecordBatch,
) -> Result<(), StartError> {
    let names: Vec<String> =
        tables.iter().map(|table| locked(&table.table).table_name().to_owned()).collect();
    let invalid = |text: String| Err(StartError::Plan(PlanError::Invalid(text)));
    let all = || {
        let mut named: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        named.dedup();
        named.join(", ")
    };
    let chosen: Vec<&LiveTable> = match name {
        None if tables.is_empty() => return invalid("the query looks nothing up".to_owned()),
        None if tables.len() == 1 => tables.iter().collect(),
        None => return invalid(format!("the query looks rows up in several tables: name one of {}", all())),
        Some(name) => {
            tables.iter().zip(&names).filter(|(_, known)| *known == name).map(|(table, _)| table).collect()
        }
    };
    if let (Some(name), []) = (name, &chosen[..]) {
        let hint = closest(name, names.iter().map(String::as_str))
            .map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
        return invalid(format!("no lookup is named \"{name}\" (there are: {}){hint}", all()));
    }
    for live in chosen {
        let mut table = locked(&live.table);
        let other = table.replaced(with, &live.stream)?;
        if let Some(charged) = live.charged.upgrade() {
            let (bytes, before) = (other.indexed().bytes(), table.indexed().bytes());
            let mut charged = locked(&charged);
            if let Err(limit) = charged.set(bytes) {
                charged.set(before).expect("it was charged as much before");
                return Err(StartError::Table { operator: "lookup".to_owned(), bytes, limit });
            }
            live.place.replace(Arc::clone(other.indexed()));
        }
        *table = other;
    }
    Ok(())
}
