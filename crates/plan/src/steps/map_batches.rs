//! Calls a function from outside with batches of rows.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use penstock_memory::batch::decoded;
use penstock_types::{PlanError, Tick};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::single;
use crate::bound::Bound;
use crate::check::{check_supported, check_unique, fields as fields_of, names};
use crate::function::Function;
use crate::made::{BoundFunction, Made, ReturnedTime};
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Step, StepOutput, comparable};
use crate::text::{FieldText, StepReader, bad, columns, fields, read_schema, write_schema, written};
use crate::time::EventTime;

/// A function over batches.
#[derive(Clone, Debug, PartialEq)]
pub struct MapBatchesStep {
    function: Function,
    /// The columns of what it returns.
    schema: SchemaRef,
}

impl Plan {
    /// Calls a function with batches of rows: what it returns, of that schema, goes on.
    pub fn map_batches(&self, function: Function, schema: &Schema) -> Result<Self, PlanError> {
        let returned: Vec<Field> = schema
            .fields()
            .iter()
            .map(|field| Field::new(field.name(), field.data_type().clone(), field.is_nullable()))
            .collect();
        self.then(MapBatchesStep { function, schema: Arc::new(Schema::new(returned)) })
    }
}

impl Step for MapBatchesStep {
    comparable!();

    fn name(&self) -> &'static str {
        "map_batches"
    }

    fn form(&self) -> Form {
        Form::Operator
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let (input, returned) = (single(inputs), fields_of(&self.schema));
        returned.iter().try_for_each(check_supported)?;
        check_unique(names(&returned), "give one of them another name")?;
        let plain: Vec<Field> = returned
            .into_iter()
            .map(|field| {
                let data_type = decoded(field.data_type()).clone();
                field.with_data_type(data_type)
            })
            .collect();
        // A function that returns the time column, of the same type, keeps event time.
        let keeps = |time: &&EventTime| {
            let before = input.schema().field_with_name(&time.column).map(Field::data_type).ok();
            plain.iter().any(|field| field.name() == &time.column && Some(field.data_type()) == before)
        };
        let time = input.time().filter(keeps).cloned();
        Ok(StepOutput { schema: Arc::new(Schema::new(plain)), time })
    }

    fn describe(&self, _tick: Tick) -> String {
        format!("{}\ngives {}", self.function.0.name(), columns(&self.schema))
    }

    fn write(&self, functions: &mut Vec<Function>) -> Result<String, PlanError> {
        functions.push(self.function.clone());
        written(self.name(), MapBatchesText { function: functions.len() - 1, schema: write_schema(&self.schema) })
    }

    fn reads(&self, _port: usize, input: &Node) -> Vec<String> {
        input.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        None
    }

    fn may_fail(&self) -> bool {
        true
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn why_one_worker(&self) -> Option<&'static str> {
        Some("it calls a function")
    }

    fn why_time_lost(&self, _column: &str, _output: &SchemaRef) -> &'static str {
        "not given back by the function of map_batches(), or with another type"
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        let mut bound = Bound::of(scope);
        let columns = 0..bound.columns.slots.len();
        bound.inputs = columns.map(|column| Some(bound.columns.place(column))).collect();
        Ok(bound)
    }

    fn make(&self, bounds: &[Bound], resources: &Resources) -> Result<Made, PlanError> {
        let Bound { columns, results, .. } = &bounds[0];
        // A row without a time is rejected even if no reader asks for the time.
        let time = results.time.as_ref().map(|time| {
            let (column, _) = results.schema.fields().find(&time.column).expect("PLAN-1: the time is there");
            ReturnedTime { column, slot: results.time_slot, is_end: time.is_end }
        });
        Ok(Made::Function(BoundFunction {
            function: resources.function(&self.function),
            columns: columns.clone(),
            returns: Arc::clone(&self.schema),
            time,
        }))
    }

    fn function(&self) -> Option<&Function> {
        Some(&self.function)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MapBatchesText {
    /// The number of the function among those that go along.
    function: usize,
    schema: Vec<FieldText>,
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let text: MapBatchesText = fields(text)?;
    let [plan] = from.inputs()?;
    let Some(function) = from.functions.get(text.function) else {
        return Err(bad("it calls a function, and functions are not part of the text: pickle the plan"));
    };
    plan.map_batches(function.clone(), &read_schema(&text.schema)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::samples::{bind_last, events, identity};

    fn mapped() -> Plan {
        events("a").map_batches(identity(), events("a").schema()).unwrap()
    }

    #[test]
    fn what_is_declared_leaves_it_and_time_is_kept_with_its_column() {
        let plan = mapped();
        assert_eq!((plan.schema(), plan.time()), (events("a").schema(), Some("t")));
        let words = "identity\ngives t: int64 not null, k: int64 not null, v: int64";
        assert_eq!(plan.root().step().describe(Tick::Plain), words);
        let other = Schema::new(vec![plan.schema().field(2).clone()]);
        let untimed = events("a").map_batches(identity(), &other).unwrap();
        assert_eq!(untimed.time(), None);
        let lost = untimed.root().step().why_time_lost("t", untimed.schema());
        assert!(lost.contains("function of map_batches()"));
    }

    #[test]
    fn it_reads_back_with_its_function_and_not_without() {
        let plan = mapped();
        let (text, functions) = plan.to_parts().unwrap();
        assert_eq!(Plan::from_parts(&text, &functions).unwrap(), plan);
        assert!(Plan::from_json(&text).unwrap_err().to_string().contains("functions are not part of the text"));
        assert!(plan.to_json().is_err());
    }

    #[test]
    fn it_calls_the_function_that_takes_the_place_of_its_own() {
        let plan = mapped();
        let (mut bound, _) = bind_last(&plan, 0);
        bound.results.time_slot = Some(5);
        let (written, called) = (plan.root().step().function().unwrap().clone(), identity());
        let resources = Resources::new(&[(written, called.clone())]);
        let Made::Function(made) = plan.root().step().make(&[bound], &resources).unwrap() else {
            panic!("it is a function");
        };
        assert_eq!((made.function, made.columns.slots), (called, vec![0, 1, 2]));
        assert_eq!(made.time, Some(ReturnedTime { column: 0, slot: Some(5), is_end: false }));
    }

    #[test]
    fn it_runs_on_one_worker() {
        let plan = mapped();
        let step = plan.root().step();
        assert_eq!((step.why_one_worker(), step.is_stateful()), (Some("it calls a function"), false));
        assert!(!step.is_pure() && step.may_fail());
        assert!(Arc::clone(plan.root().shared_step()).carrying("k").is_none(), "it makes new rows");
    }
}
