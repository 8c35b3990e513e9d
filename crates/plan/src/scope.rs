//! Which columns are in scope at a place of a strand, and the slots that hold them.
//!
//! SCOPE-1. Slots are numbered through a strand, and each is filled once: a column keeps its slot in every task that runs
//!     a part of the strand.
//! SCOPE-2. A step reads slots that were filled before it, never one that it fills: so whatever is read at a place is
//!     filled there.

use arrow_schema::{DataType, SchemaRef};
use penstock_expr::{Expr, ExprScope, Expression, compile};
use penstock_memory::{ColumnKind, Physical, Run, SlotId};
use penstock_types::PlanError;

use crate::time::EventTime;

/// How times and watermarks are stored.
pub const TIME_KIND: ColumnKind = ColumnKind { physical: Physical::I64, nullable: false };
/// How key groups are stored.
pub const GROUP_KIND: ColumnKind = ColumnKind { physical: Physical::U8, nullable: false };

/// The slots of event time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSlots {
    /// The time of each row, 64 bits wide.
    pub time: SlotId,
    /// The watermark just before each row, in runs that may hold a late one.
    pub watermark: SlotId,
}

/// A column: its slot, and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The slot that holds it.
    pub slot: SlotId,
    /// Its type.
    pub data_type: DataType,
}

impl Place {
    /// How its values are stored.
    pub fn physical(&self) -> Physical {
        physical(&self.data_type)
    }
}

/// The columns that a step sees, and the slot of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The columns.
    pub schema: SchemaRef,
    /// The slot of each of them.
    pub slots: Vec<SlotId>,
}

impl Columns {
    /// Compiles an expression over these columns.
    pub fn compile(&self, expr: &Expr) -> Result<Expression, PlanError> {
        compile(expr, ExprScope { schema: &self.schema, slots: &self.slots })
    }

    /// Returns where a column is; panics unless it is there.
    pub(crate) fn place(&self, column: usize) -> Place {
        Place { slot: self.slots[column], data_type: self.schema.field(column).data_type().clone() }
    }

    /// Returns where the columns of these names are.
    pub(crate) fn named(&self, names: &[String]) -> Vec<Place> {
        let place = |name: &String| {
            let (column, _) = self.schema.fields().find(name).expect("PLAN-1: keys are checked");
            self.place(column)
        };
        names.iter().map(place).collect()
    }
}

/// The columns in scope and the slots of a strand, while steps are bound to it one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    kinds: Vec<ColumnKind>,
    columns: Columns,
    clock: Option<ClockSlots>,
    /// Number of columns at the beginning of the strand: they fill the first slots.
    begin_columns: usize,
}

/// How a column of a checked type is stored.
pub fn kind(data_type: &DataType, nullable: bool) -> ColumnKind {
    ColumnKind::of(data_type, nullable).expect("types are checked when the plan is built")
}

/// How values of a checked type are stored.
pub fn physical(data_type: &DataType) -> Physical {
    kind(data_type, false).physical
}

impl Scope {
    /// The scope at the beginning of a strand: the first slots hold the columns of `schema`, whose rows have that event
    /// time.
    pub fn new(schema: &SchemaRef, time: Option<&EventTime>) -> Self {
        let kinds: Vec<ColumnKind> =
            schema.fields().iter().map(|field| kind(field.data_type(), field.is_nullable())).collect();
        let begin_columns = kinds.len();
        let columns = Columns { schema: SchemaRef::clone(schema), slots: (0..begin_columns).collect() };
        let mut scope = Self { kinds, columns, clock: None, begin_columns };
        scope.clock = time.map(|time| {
            let (column, field) = schema.fields().find(&time.column).expect("PLAN-1: the time is there");
            let is_itself = !time.is_end && physical(field.data_type()) == Physical::I64;
            let slot = if is_itself { column } else { scope.add_slot(TIME_KIND) };
            ClockSlots { time: slot, watermark: scope.add_slot(TIME_KIND) }
        });
        scope
    }

    /// Adds a slot that nothing fills yet.
    pub fn add_slot(&mut self, kind: ColumnKind) -> SlotId {
        self.kinds.push(kind);
        self.kinds.len() - 1
    }

    /// The columns in scope.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The slots of the columns in scope.
    pub fn slots(&self) -> &[SlotId] {
        &self.columns.slots
    }

    /// The slots of event time, where it is known.
    pub fn clock(&self) -> Option<ClockSlots> {
        self.clock
    }

    /// Number of columns at the beginning of the strand.
    pub fn begin_columns(&self) -> usize {
        self.begin_columns
    }

    /// How the columns in these slots are stored.
    pub fn kinds_of(&self, slots: &[SlotId]) -> Vec<ColumnKind> {
        slots.iter().map(|&slot| self.kinds[slot]).collect()
    }

    /// Makes a run with the slots of this scope.
    pub fn run(&self) -> Run {
        let mut run = Run::new();
        for kind in &self.kinds {
            run.add_slot(kind.physical);
        }
        run
    }

    /// Whether the columns in scope are those at the beginning of the strand, in the same order.
    pub fn is_as_begun(&self) -> bool {
        self.columns.slots.len() == self.begin_columns
            && self.columns.slots.iter().copied().eq(0..self.begin_columns)
    }

    /// Bytes of a row of the columns in scope.
    pub fn row_bytes(&self) -> usize {
        self.columns.slots.iter().map(|&slot| self.kinds[slot].physical.width()).sum()
    }

    /// Compiles an expression over the columns in scope.
    pub fn compile(&self, expr: &Expr) -> Result<Expression, PlanError> {
        self.columns.compile(expr)
    }

    /// Replaces the slots of the columns in scope: a step has renamed, dropped or added some.
    pub(crate) fn set_slots(&mut self, slots: Vec<SlotId>) {
        self.columns.slots = slots;
    }

    /// Names the columns in scope behind a step.
    pub(crate) fn enter(&mut self, schema: &SchemaRef) {
        debug_assert_eq!(schema.fields().len(), self.columns.slots.len(), "each column has a slot");
        self.columns.schema = SchemaRef::clone(schema);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{Field, Schema, TimeUnit};
    use penstock_types::Tick;

    use super::*;

    fn scope(time: DataType, is_end: bool) -> Scope {
        let fields = vec![Field::new("k", DataType::Int32, true), Field::new("t", time, false)];
        let time = EventTime { column: "t".to_owned(), tick: Tick::Plain, is_end };
        Scope::new(&Arc::new(Schema::new(fields)), Some(&time))
    }

    #[test]
    fn a_wide_time_column_is_its_own_clock() {
        let wide = scope(DataType::Timestamp(TimeUnit::Millisecond, None), false);
        assert_eq!(wide.clock(), Some(ClockSlots { time: 1, watermark: 2 }));
        assert_eq!(scope(DataType::Int32, false).clock(), Some(ClockSlots { time: 2, watermark: 3 }));
        assert_eq!(scope(DataType::Int64, true).clock(), Some(ClockSlots { time: 2, watermark: 3 }));
    }

    #[test]
    fn the_beginning_is_recognised_until_a_column_moves() {
        let mut scope = scope(DataType::Int64, false);
        assert!(scope.is_as_begun());
        assert_eq!(scope.row_bytes(), 12);
        scope.set_slots(vec![1, 0]);
        assert!(!scope.is_as_begun());
        assert_eq!(scope.columns().named(&["k".to_owned()])[0].slot, 1);
    }
}
