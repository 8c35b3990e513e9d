//! Tables that rows are looked up in, and how others take their place while the query runs.

use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use arrow_array::RecordBatch;
use penstock_memory::coordinator::StateAccount;
use penstock_types::{PlanError, closest};

use crate::error::StartError;
use crate::pipeline::Table;

/// A table at work.
pub(crate) struct LiveTable {
    pub(crate) table: Mutex<Table>,
    /// What it is charged; gone with the task that looks rows up in it.
    pub(crate) charged: Weak<Mutex<StateAccount>>,
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
    // Lanes look rows up in copies of one table, which are charged as one.
    let is_one = tables.windows(2).all(|pair| pair[0].charged.ptr_eq(&pair[1].charged));
    let names: Vec<String> = tables.iter().map(|table| locked(&table.table).step.name().to_owned()).collect();
    let invalid = |text: String| Err(StartError::Plan(PlanError::Invalid(text)));
    let all = || {
        let mut named: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        named.dedup();
        named.join(", ")
    };
    let chosen: Vec<&LiveTable> = match name {
        None if tables.is_empty() => return invalid("the query looks nothing up".to_owned()),
        None if is_one => tables.iter().collect(),
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
        let step = table.step.replaced(with, &table.stream)?.named(table.step.given_name().cloned());
        if let Some(charged) = live.charged.upgrade() {
            let (bytes, before) = (step.indexed().bytes(), table.step.indexed().bytes());
            let mut charged = locked(&charged);
            if let Err(limit) = charged.set(bytes) {
                charged.set(before).expect("it was charged as much before");
                return Err(StartError::Table { operator: "lookup".to_owned(), bytes, limit });
            }
            table.place.replace(step.indexed());
        }
        table.step = step;
    }
    Ok(())
}
