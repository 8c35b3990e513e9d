//! A step bound to slots: what it reads and fills, and what has to be computed before it. Plain data, which can be cloned,
//! compared and printed; [`Step::make`](crate::Step::make) builds from it what runs.

use arrow_schema::SchemaRef;
use penstock_expr::Expr;
use penstock_memory::SlotId;
use penstock_operators::{Grouping, Project, Stateless};
use penstock_types::PlanError;

use crate::scope::{ClockSlots, Columns, GROUP_KIND, Place, Scope, kind};
use crate::time::EventTime;

/// Expressions and the slots that they fill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Projection {
    /// What is computed, and where to. Columns that are only renamed are not among them.
    pub computed: Vec<(Expr, SlotId)>,
    /// The slots that it reads.
    pub reads: Vec<SlotId>,
}

impl Projection {
    /// Binds expressions to a scope: gives each computed one a slot. Returns where all of them are then.
    pub(crate) fn bind(scope: &mut Scope, exprs: &[Expr]) -> Result<(Self, Vec<Place>), PlanError> {
        let (mut projection, mut places) = (Self::default(), Vec::new());
        for expr in exprs {
            let compiled = scope.compile(expr)?;
            let data_type = compiled.data_type.clone();
            let slot = match compiled.as_slot() {
                Some(slot) => slot,
                None => {
                    let slot = scope.add_slot(kind(&data_type, compiled.nullable));
                    projection.reads.extend_from_slice(compiled.slots());
                    projection.computed.push((expr.clone(), slot));
                    slot
                }
            };
            places.push(Place { slot, data_type });
        }
        Ok((projection, places))
    }

    /// The slots that it fills.
    pub fn fills(&self) -> Vec<SlotId> {
        self.computed.iter().map(|(_, slot)| *slot).collect()
    }

    /// Makes the operator that computes it over these columns.
    pub(crate) fn make(&self, columns: &Columns) -> Result<Project, PlanError> {
        let compile = |(expr, slot): &(Expr, SlotId)| Ok((columns.compile(expr)?, *slot));
        Ok(Project::new(self.computed.iter().map(compile).collect::<Result<_, PlanError>>()?))
    }
}

/// What a [`Preparation`] computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// Keys or inputs that are not columns as they are.
    Projection(Projection),
    /// The key group of each row, by these keys.
    Groups {
        /// The keys.
        keys: Vec<Place>,
        /// The slot that it fills.
        slot: SlotId,
    },
}

/// A stateless operator that computes what the step behind it reads. It never has a task of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// What it is called in reports.
    pub name: &'static str,
    /// The columns that it sees.
    pub columns: Columns,
    /// What it computes.
    pub work: Prepared,
}

impl Preparation {
    /// The slots that it reads.
    pub fn reads(&self) -> Vec<SlotId> {
        match &self.work {
            Prepared::Projection(projection) => projection.reads.clone(),
            Prepared::Groups { keys, .. } => keys.iter().map(|key| key.slot).collect(),
        }
    }

    /// The slots that it fills.
    pub fn fills(&self) -> Vec<SlotId> {
        match &self.work {
            Prepared::Projection(projection) => projection.fills(),
            Prepared::Groups { slot, .. } => vec![*slot],
        }
    }

    /// Makes the operator. May be called once per instance.
    pub fn make(&self) -> Result<Box<dyn Stateless>, PlanError> {
        Ok(match &self.work {
            Prepared::Projection(projection) => Box::new(projection.make(&self.columns)?),
            Prepared::Groups { keys, slot } => {
                let keys: Vec<_> = keys.iter().map(|key| (key.slot, key.data_type.clone())).collect();
                Box::new(Grouping::new(&keys, *slot))
            }
        })
    }
}

/// What is known of the rows behind a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumns {
    /// The columns.
    pub schema: SchemaRef,
    /// Their event time.
    pub time: Option<EventTime>,
    /// The slot that event time goes to, if a reader of the results asks for it. The graph settles this.
    pub time_slot: Option<SlotId>,
}

/// A step at one of its ports, bound to the slots of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The columns that the step sees.
    pub columns: Columns,
    /// Event time, if the step goes by it.
    pub clock: Option<ClockSlots>,
    /// What has to run before the step, in order.
    pub preparations: Vec<Preparation>,
    /// What a stateless step computes itself.
    pub projection: Projection,
    /// The keys by which the step tells rows apart.
    pub keys: Vec<Place>,
    /// The other columns that the step reads, in an order of its own; `None` where it only counts rows.
    pub inputs: Vec<Option<Place>>,
    /// The slots that a stateless step fills besides those of its projection.
    pub fills: Vec<SlotId>,
    /// The key group of each row, where rows are exchanged by key.
    pub group: Option<SlotId>,
    /// What leaves the step.
    pub results: ResultColumns,
    /// Whether nothing runs: the step only renames, drops or reorders columns.
    pub is_free: bool,
}

impl Bound {
    /// A step that sees the columns in scope and reads none of them yet; [`Node::bind`](crate::Node::bind) adds the results.
    pub(crate) fn of(scope: &Scope) -> Self {
        let columns = scope.columns().clone();
        let results =
            ResultColumns { schema: SchemaRef::clone(&columns.schema), time: None, time_slot: None };
        Self {
            columns,
            clock: None,
            preparations: Vec::new(),
            projection: Projection::default(),
            keys: Vec::new(),
            inputs: Vec::new(),
            fills: Vec::new(),
            group: None,
            results,
            is_free: false,
        }
    }

    /// Computes expressions before the step, unless all of them are columns. Returns where they are.
    pub(crate) fn prepare(
        &mut self,
        scope: &mut Scope,
        name: &'static str,
        exprs: &[Expr],
    ) -> Result<Vec<Place>, PlanError> {
        let columns = scope.columns().clone();
        let (projection, places) = Projection::bind(scope, exprs)?;
        if !projection.computed.is_empty() {
            self.preparations.push(Preparation { name, columns, work: Prepared::Projection(projection) });
        }
        Ok(places)
    }

    /// Adds the key group of each row: rows are exchanged by key.
    pub fn prepare_groups(&mut self, scope: &mut Scope) -> &Preparation {
        let slot = scope.add_slot(GROUP_KIND);
        self.group = Some(slot);
        let work = Prepared::Groups { keys: self.keys.clone(), slot };
        self.preparations.push(Preparation { name: "key groups", columns: scope.columns().clone(), work });
        self.preparations.last().expect("it was pushed just now")
    }

    /// The slots that the step itself reads.
    pub fn reads(&self) -> Vec<SlotId> {
        let places = self.keys.iter().chain(self.inputs.iter().flatten());
        let mut reads: Vec<SlotId> = places.map(|place| place.slot).collect();
        reads.extend_from_slice(&self.projection.reads);
        reads.extend(self.clock.map(|clock| clock.time));
        reads.extend(self.group);
        reads
    }

    /// The slots that a stateless step fills.
    pub fn all_fills(&self) -> Vec<SlotId> {
        let mut fills = self.projection.fills();
        fills.extend_from_slice(&self.fills);
        fills
    }

    /// Whether rows have a key.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field, Schema};
    use penstock_expr::BinaryOp;

    use super::*;

    fn scope() -> Scope {
        let field = |name| Field::new(name, DataType::Int64, false);
        Scope::new(&Arc::new(Schema::new(vec![field("a"), field("b")])), None)
    }

    fn sum() -> Expr {
        Expr::column("a").binary(BinaryOp::Add, Expr::column("b")).unwrap()
    }

    #[test]
    fn only_computed_expressions_take_slots() {
        let mut scope = scope();
        let (projection, places) = Projection::bind(&mut scope, &[Expr::column("b"), sum()]).unwrap();
        assert_eq!(places.iter().map(|place| place.slot).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((projection.fills(), projection.reads), (vec![2], vec![0, 1]));
    }

    #[test]
    fn columns_need_no_preparation_and_key_groups_do() {
        let mut scope = scope();
        let mut bound = Bound::of(&scope);
        bound.keys = bound.prepare(&mut scope, "window keys", &[Expr::column("a")]).unwrap();
        assert!(bound.preparations.is_empty());
        let groups = bound.prepare_groups(&mut scope);
        assert_eq!((groups.reads(), groups.fills()), (vec![0], vec![2]));
        assert_eq!((bound.group, bound.reads()), (Some(2), vec![0, 2]));
        assert!(bound.preparations.iter().all(|preparation| preparation.make().is_ok()));
    }
}
