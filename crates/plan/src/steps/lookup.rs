//! Joins each row with the row of a table that has the same key.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use penstock_memory::SlotId;
use penstock_operators::{Lookup, LookupKind};
use penstock_types::{PlanError, Tick};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::single;
use crate::bound::Bound;
use crate::check::fields as fields_of;
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::{Scope, kind};
use crate::step::{Form, Node, Step, StepOutput, Times, comparable};
use crate::table::{KeyedTable, PortableTable};
use crate::text::{StepReader, fields, written};

/// A lookup.
#[derive(Clone, Debug, PartialEq)]
pub struct LookupStep {
    table: KeyedTable,
}

/// Reads the name of a kind of lookup.
pub fn lookup_kind(how: &str) -> Result<LookupKind, PlanError> {
    match how {
        "inner" => Ok(LookupKind::Inner),
        "left" => Ok(LookupKind::Left),
        other => Err(PlanError::Invalid(format!("how=\"{other}\" is not known; use \"inner\" or \"left\""))),
    }
}

fn kind_name(kind: LookupKind) -> &'static str {
    match kind {
        LookupKind::Inner => "inner",
        LookupKind::Left => "left",
    }
}

impl Plan {
    /// Joins each row with the row of `table` that has the same key.
    pub fn lookup(&self, table: &RecordBatch, on: Vec<String>, kind: LookupKind) -> Result<Self, PlanError> {
        self.named_lookup(table, on, kind, None)
    }

    /// Joins each row with the row of a table that can be replaced by its name while the query runs.
    pub fn named_lookup(
        &self,
        table: &RecordBatch,
        on: Vec<String>,
        kind: LookupKind,
        name: Option<String>,
    ) -> Result<Self, PlanError> {
        let table = KeyedTable::new(table, on, kind == LookupKind::Left, name, self.schema())?;
        self.then(LookupStep { table })
    }
}

impl LookupStep {
    fn kind(&self) -> LookupKind {
        if self.table.fills_nulls() { LookupKind::Left } else { LookupKind::Inner }
    }
}

impl Step for LookupStep {
    comparable!();

    fn name(&self) -> &'static str {
        "lookup"
    }

    fn form(&self) -> Form {
        Form::Stage
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let input = single(inputs);
        let mut fields = fields_of(input.schema());
        for added in self.table.added_behind() {
            if fields.iter().any(|existing| existing.name() == added.name()) {
                return Err(PlanError::Invalid(format!(
                    "the lookup table has a column \"{}\", and so has the stream; rename it in the table",
                    added.name()
                )));
            }
            fields.push(added);
        }
        Ok(StepOutput { schema: Arc::new(Schema::new(fields)), time: input.time().cloned() })
    }

    fn describe(&self, _tick: Tick) -> String {
        let (rows, added) = (self.table.rows().num_rows(), self.table.added());
        let added: Vec<&str> = added.iter().map(|field| field.name().as_str()).collect();
        format!(
            "{}, on {}, {rows} row{}, adds {}",
            kind_name(self.kind()),
            self.table.on().join(", "),
            if rows == 1 { "" } else { "s" },
            added.join(", ")
        )
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        let text = LookupText {
            table: PortableTable::write(self.table.rows())?,
            on: self.table.on().to_vec(),
            how: kind_name(self.kind()).to_owned(),
            name: self.table.given_name().cloned(),
        };
        written(self.name(), text)
    }

    fn reads(&self, _port: usize, _input: &Node) -> Vec<String> {
        self.table.on().to_vec()
    }

    fn passes(&self, column: &str) -> Option<String> {
        Some(column.to_owned())
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        Some(self)
    }

    fn may_fail(&self) -> bool {
        false
    }

    fn is_pure(&self) -> bool {
        // Another table may take the place of this one.
        false
    }

    fn times(&self) -> Times {
        Times::Kept
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        let mut bound = Bound::of(scope);
        bound.keys = bound.columns.named(self.table.on());
        let mut slot = |field: &Field| scope.add_slot(kind(field.data_type(), field.is_nullable()));
        bound.fills = self.table.added_behind().iter().map(&mut slot).collect();
        let mut slots = scope.slots().to_vec();
        slots.extend_from_slice(&bound.fills);
        scope.set_slots(slots);
        Ok(bound)
    }

    fn make(&self, bounds: &[Bound], resources: &Resources) -> Result<Made, PlanError> {
        let bound = &bounds[0];
        let keys: Vec<SlotId> = bound.keys.iter().map(|key| key.slot).collect();
        let fills = bound.fills.iter().copied().enumerate().collect();
        let place = resources.table(self.table.indexed());
        Ok(Made::Stage(Box::new(Lookup::new(place, self.kind(), keys, fills))))
    }

    fn table(&self) -> Option<&KeyedTable> {
        Some(&self.table)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LookupText {
    table: PortableTable,
    on: Vec<String>,
    how: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let text: LookupText = fields(text)?;
    let [plan] = from.inputs()?;
    plan.named_lookup(&text.table.table()?, text.on, lookup_kind(&text.how)?, text.name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;
    use crate::steps::samples::{bind_last, check_json, events, is_stage};

    fn names(keys: Vec<i64>) -> RecordBatch {
        let labels = keys.iter().map(|key| format!("k{key}")).collect::<Vec<_>>();
        let keys = Arc::new(Int64Array::from(keys)) as ArrayRef;
        RecordBatch::try_from_iter([("k", keys), ("label", Arc::new(StringArray::from(labels)) as ArrayRef)])
            .unwrap()
    }

    fn looked_up(kind: LookupKind) -> Plan {
        events("a").lookup(&names(vec![1, 2]), vec!["k".to_owned()], kind).unwrap()
    }

    #[test]
    fn the_columns_of_the_table_are_added() {
        let plan = looked_up(LookupKind::Inner);
        assert_eq!((plan.schema().field(3).name().as_str(), plan.time()), ("label", Some("t")));
        assert_eq!(plan.root().step().describe(Tick::Plain), "inner, on k, 2 rows, adds label");
        check_json(&plan);
        assert!(looked_up(LookupKind::Left).schema().field(3).is_nullable(), "a row may find nothing");
    }

    #[test]
    fn a_column_that_the_stream_has_is_refused() {
        let table = names(vec![1]);
        let twice = looked_up(LookupKind::Left).lookup(&table, vec!["k".to_owned()], LookupKind::Left);
        assert!(twice.unwrap_err().to_string().contains("\"label\", and so has the stream"));
        assert!(events("a").lookup(&names(vec![1, 1]), vec!["k".to_owned()], LookupKind::Left).is_err());
    }

    #[test]
    fn the_columns_of_the_table_take_slots() {
        let plan = looked_up(LookupKind::Left);
        let (bound, scope) = bind_last(&plan, 0);
        assert_eq!((bound.reads(), bound.all_fills()), (vec![1], vec![4]));
        assert_eq!(scope.slots(), [0, 1, 2, 4]);
        assert!(is_stage(&plan, &[bound]));
        let step = plan.root().step();
        let table = step.table().unwrap();
        let mut resources = Resources::default();
        resources.open_table(table.indexed());
        assert!(matches!(step.make(&[bind_last(&plan, 0).0], &resources), Ok(Made::Stage(_))));
    }

    #[test]
    fn another_table_has_the_same_columns() {
        let plan = looked_up(LookupKind::Inner);
        let (table, stream) = (plan.root().step().table().unwrap(), events("a"));
        let other = table.replaced(&names(vec![7]), stream.schema()).unwrap();
        assert_eq!((other.table_name(), other.rows().num_rows()), ("lookup", 1));
        let narrow = names(vec![7]).project(&[0]).unwrap();
        let error = table.replaced(&narrow, stream.schema()).unwrap_err().to_string();
        assert!(error.contains("they have to be the same"), "{error}");
    }
}
