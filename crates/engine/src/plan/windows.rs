//! Steps that bring rows together by time: windows, co-groups, joins, the first rows of a window.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use penstock_expr::Expr;
use penstock_operators::aggregates::{AccumulatorFactory, AggregateKind};
use penstock_operators::join::JoinKind;
use penstock_types::{PlanError, Span, Tick, TypeName};

use super::step::{CoGroupStep, JoinStep, TopKStep, WindowKind, WindowStep};
use super::{Aggregate, EventTime, Graph, Node, Plan, Step, check_unique, clock_ns, field_of};

/// Names of the bounds of a window in its results.
pub const WINDOW_BOUNDS: [&str; 2] = ["window_start", "window_end"];
/// Name of the column that says whether a result corrects an earlier one.
pub const CORRECTION: &str = "is_correction";
/// Name of the column that says which place a row has.
pub const RANK: &str = "rank";

const RENAME_KEYS: &str =
    "rename the key or the aggregate with .alias(\"...\"), or as a keyword: agg(name=...)";

/// Windows as they were written, before the unit of time is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of `WindowKind`")]
pub enum WindowSpan {
    Tumbling { size: Span, offset: Span },
    Sliding { size: Span, slide: Span, offset: Span },
    Session { gap: Span },
}

fn positive(span: Span, tick: Tick, what: &str) -> Result<i64, PlanError> {
    let ticks = span.ticks(tick)?;
    if ticks > 0 {
        return Ok(ticks);
    }
    Err(PlanError::Duration {
        text: tick.describe(i128::from(ticks)),
        reason: format!("{what} must be positive"),
    })
}

impl WindowSpan {
    fn in_ticks(self, tick: Tick) -> Result<WindowKind, PlanError> {
        const SIZE: &str = "the size of a window";
        Ok(match self {
            Self::Tumbling { size, offset } => {
                WindowKind::Tumbling { size: positive(size, tick, SIZE)?, offset: offset.ticks(tick)? }
            }
            Self::Sliding { size, slide, offset } => {
                let size = positive(size, tick, SIZE)?;
                let slide = positive(slide, tick, "the slide of a window")?;
                if slide > size {
                    return Err(PlanError::Duration {
                        text: tick.describe(i128::from(slide)),
                        reason: format!(
                            "the slide of a window is at most its size ({}), or rows between two windows would be in none",
                            tick.describe(i128::from(size))
                        ),
                    });
                }
                WindowKind::Sliding { size, slide, offset: offset.ticks(tick)? }
            }
            Self::Session { gap } => {
                WindowKind::Session { gap: positive(gap, tick, "the gap of a session")? }
            }
        })
    }
}

/// The columns that say which window a result is of.
fn bounds(data_type: &DataType) -> Vec<Field> {
    let bound_type =
        if matches!(Tick::of(data_type), Some(Tick::Plain)) { &DataType::Int64 } else { data_type };
    WINDOW_BOUNDS.iter().map(|name| Field::new(*name, bound_type.clone(), false)).collect()
}

impl Plan {
    /// The event time that a window goes by, or why there is none.
    fn event_time(&self) -> Result<&EventTime, PlanError> {
        self.root.time().ok_or_else(|| PlanError::MissingTime(self.why_no_time()))
    }

    /// The type of the time column.
    fn time_type(&self, time: &EventTime) -> &DataType {
        self.schema().field_with_name(&time.column).expect("the time column is in the schema").data_type()
    }

    /// Event time behind a window of this stream: the last tick of each window.
    fn time_behind(time: &EventTime) -> Option<EventTime> {
        Some(EventTime { column: WINDOW_BOUNDS[1].to_owned(), tick: time.tick, is_end: true })
    }

    fn key_fields(&self, by: &[Expr]) -> Result<Vec<Field>, PlanError> {
        by.iter().map(|expr| Ok(field_of(expr.output_name(), &self.check(expr)?))).collect()
    }

    /// Checks the window part of a step: the windows, and the keys.
    pub fn check_window(
        &self,
        window: WindowSpan,
        by: &[Expr],
    ) -> Result<(WindowKind, Vec<Field>), PlanError> {
        let time = self.event_time()?;
        Ok((window.in_ticks(time.tick)?, self.key_fields(by)?))
    }

    /// The columns of the aggregates.
    fn aggregate_fields(&self, aggregates: &[Aggregate], is_alone: bool) -> Result<Vec<Field>, PlanError> {
        let mut fields = Vec::new();
        for aggregate in aggregates {
            let input = aggregate.input.as_ref().map(|expr| self.check(expr)).transpose()?;
            let data_type = input.as_ref().map(|input| input.data_type.clone());
            let factory = AccumulatorFactory::new(aggregate.kind, data_type, aggregate.to_string())?;
            let nullable = match aggregate.kind {
                AggregateKind::Count | AggregateKind::CountDistinct => false,
                // Of one value there is none.
                AggregateKind::Var | AggregateKind::Std => true,
                _ => !is_alone || input.is_none_or(|input| input.nullable),
            };
            fields.push(Field::new(aggregate.output_name(), factory.output().clone(), nullable));
        }
        Ok(fields)
    }

    /// Aggregates per key and window. For `allowed_lateness` after its end, a window still takes rows in, and corrects
    /// its result.
    pub fn window(
        &self,
        window: WindowSpan,
        by: Vec<Expr>,
        aggregates: Vec<Aggregate>,
        allowed_lateness: Span,
        close_after: Option<Span>,
    ) -> Result<Self, PlanError> {
        let (window, keys) = self.check_window(window, &by)?;
        let time = self.event_time()?;
        if aggregates.is_empty() && by.is_empty() {
            return Err(PlanError::Invalid(
                "agg() needs at least one aggregate, such as count(), or the window a key".to_owned(),
            ));
        }
        let lateness = allowed_lateness.ticks(time.tick)?;
        if lateness < 0 {
            return Err(PlanError::Duration {
                text: lateness.to_string(),
                reason: "the allowed lateness cannot be negative".to_owned(),
            });
        }
        if lateness > 0 && matches!(window, WindowKind::Session { .. }) {
            return Err(PlanError::Invalid(
                "a session takes no allowed_lateness: a late row could join sessions that were given out; use a larger delay".to_owned(),
            ));
        }
        self.check_order(window, &aggregates)?;
        let mut fields = bounds(self.time_type(time));
        fields.extend(keys);
        fields.extend(self.aggregate_fields(&aggregates, true)?);
        if lateness > 0 {
            fields.push(Field::new(CORRECTION, DataType::Boolean, false));
        }
        check_unique(fields.iter().map(|field| field.name().as_str()), RENAME_KEYS)?;
        // A correction comes when the windows behind have long closed: it would count twice there, or not at all.
        let behind = if lateness > 0 { None } else { Self::time_behind(time) };
        let close_after_ns = close_after.map(|span| clock_ns(span, "close_after")).transpose()?;
        let step = WindowStep { window, by, aggregates, allowed_lateness: lateness, close_after_ns };
        Ok(self.then(Step::Window(step), fields, behind))
    }

    /// Aggregates per key in tumbling windows.
    pub fn tumbling(&self, size: Span, by: Vec<Expr>, aggregates: Vec<Aggregate>) -> Result<Self, PlanError> {
        let window = WindowSpan::Tumbling { size, offset: Span::Ticks(0) };
        self.window(window, by, aggregates, Span::Ticks(0), None)
    }

    /// The rows that came too late for the window at the end of the plan.
    pub fn late(&self) -> Result<Self, PlanError> {
        let mut node = &self.root;
        while !node.step().is_stateful() {
            match (node.step(), node.inputs()) {
                (Step::Filter(_) | Step::Select(_) | Step::WithColumns(_) | Step::Lookup(_), [input]) => {
                    node = input
                }
                _ => {
                    return Err(PlanError::Invalid(
                        "split_late() belongs behind a window: only there a row can be late".to_owned(),
                    ));
                }
            }
        }
        let [input] = node.inputs() else {
            return Err(PlanError::Invalid(format!(
                "split_late() belongs behind a window of one stream; a {} has two, whose rows differ",
                node.step().name()
            )));
        };
        let schema = Arc::clone(input.schema());
        Ok(Self { root: Node::new(Step::Late, vec![Arc::clone(node)], schema, None) })
    }

    /// Checks what two streams have in common: event time and keys.
    fn check_pair(&self, other: &Self, what: &str, keys: [&[Field]; 2]) -> Result<(), PlanError> {
        Graph::of([&self.root, &other.root])?;
        let (time, others) = (self.event_time()?, other.event_time()?);
        if self.time_type(time) != other.time_type(others) {
            return Err(PlanError::mismatch(
                what,
                format!(
                    "the two streams have times of different types: {} and {}; cast one of them",
                    TypeName(self.time_type(time)),
                    TypeName(other.time_type(others))
                ),
            ));
        }
        if keys[0].len() != keys[1].len() {
            return Err(PlanError::Invalid(format!(
                "a {what} compares keys one by one, and there are {} on the left and {} on the right",
                keys[0].len(),
                keys[1].len()
            )));
        }
        for (left, right) in keys[0].iter().zip(keys[1]) {
            if left.data_type() != right.data_type() {
                return Err(PlanError::mismatch(
                    format!("key \"{}\"", left.name()),
                    format!(
                        "it is {} on the left and {} on the right; cast one of them",
                        TypeName(left.data_type()),
                        TypeName(right.data_type())
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Aggregates of this stream and of another per key and window.
    pub fn cogroup(
        &self,
        other: &Self,
        window: WindowSpan,
        by: [Vec<Expr>; 2],
        aggregates: [Vec<Aggregate>; 2],
    ) -> Result<Self, PlanError> {
        let time = self.event_time()?;
        if by[0].is_empty() && aggregates.iter().all(Vec::is_empty) {
            return Err(PlanError::Invalid(
                "cogroup() needs a key, or agg() at least one aggregate, such as count()".to_owned(),
            ));
        }
        let (window, keys) = self.check_window(window, &by[0])?;
        let other_keys = other.key_fields(&by[1])?;
        self.check_pair(other, "cogroup", [&keys, &other_keys])?;
        self.check_order(window, &aggregates[0])?;
        other.check_order(window, &aggregates[1])?;
        let mut fields = bounds(self.time_type(time));
        fields.extend(
            keys.iter()
                .zip(&other_keys)
                .map(|(left, right)| left.clone().with_nullable(left.is_nullable() || right.is_nullable())),
        );
        fields.extend(self.aggregate_fields(&aggregates[0], false)?);
        fields.extend(other.aggregate_fields(&aggregates[1], false)?);
        check_unique(fields.iter().map(|field| field.name().as_str()), RENAME_KEYS)?;
        let step = Step::CoGroup(CoGroupStep { window, by, aggregates });
        Ok(self.with(other, step, fields, Self::time_behind(time)))
    }

    fn with(&self, other: &Self, step: Step, fields: Vec<Field>, time: Option<EventTime>) -> Self {
        let inputs = vec![Arc::clone(&self.root), Arc::clone(&other.root)];
        Self { root: Node::new(step, inputs, Arc::new(Schema::new(fields)), time) }
    }

    fn named_fields(&self, names: &[String]) -> Result<Vec<Field>, PlanError> {
        let field = |name: &String| {
            let fields = self.schema().fields();
            let found = fields.find(name).map(|(_, field)| field.as_ref().clone());
            found.ok_or_else(|| {
                PlanError::unknown_column(name, fields.iter().map(|field| field.name().as_str()))
            })
        };
        names.iter().map(field).collect()
    }

    /// The columns of a stream that go into the result of a join: neither keys nor bounds of windows.
    pub(crate) fn joined_columns<'a>(schema: &'a Schema, on: &[String]) -> Vec<(usize, &'a Field)> {
        let is_kept = |name: &String| !on.contains(name) && !WINDOW_BOUNDS.contains(&name.as_str());
        let fields = schema.fields().iter().enumerate();
        fields
            .filter(|(_, field)| is_kept(field.name()))
            .map(|(number, field)| (number, field.as_ref()))
            .collect()
    }

    /// Pairs each row with the rows of another stream that have the same key in the same window.
    pub fn join(
        &self,
        other: &Self,
        window: WindowSpan,
        on: [Vec<String>; 2],
        kind: JoinKind,
        suffix: &str,
    ) -> Result<Self, PlanError> {
        let time = self.event_time()?;
        let (window, _) = self.check_window(window, &[])?;
        if window.aligned().is_none() {
            return Err(PlanError::Invalid(
                "a join takes tumbling or sliding windows, not sessions".to_owned(),
            ));
        }
        if on[0].is_empty() {
            return Err(PlanError::Invalid("a join needs at least one key column: on=\"...\"".to_owned()));
        }
        let (keys, other_keys) = (self.named_fields(&on[0])?, other.named_fields(&on[1])?);
        self.check_pair(other, "join", [&keys, &other_keys])?;
        let mut fields = bounds(self.time_type(time));
        let keeps_all = matches!(kind, JoinKind::Full | JoinKind::Right);
        fields.extend(keys.iter().zip(&other_keys).map(|(left, right)| {
            let nullable = left.is_nullable() || (keeps_all && right.is_nullable());
            left.clone().with_nullable(nullable)
        }));
        let optional = [keeps_all, matches!(kind, JoinKind::Full | JoinKind::Left)];
        for (_, field) in Self::joined_columns(self.schema(), &on[0]) {
            fields.push(field.clone().with_nullable(field.is_nullable() || optional[0]));
        }
        for (_, field) in Self::joined_columns(other.schema(), &on[1]) {
            let taken = fields.iter().any(|other| other.name() == field.name());
            let name = if taken { format!("{}{suffix}", field.name()) } else { field.name().clone() };
            fields.push(Field::new(name, field.data_type().clone(), field.is_nullable() || optional[1]));
        }
        check_unique(
            fields.iter().map(|field| field.name().as_str()),
            "choose another suffix=, or rename a column before the join",
        )?;
        let step = Step::Join(JoinStep { window, kind, on, suffix: suffix.to_owned() });
        Ok(self.with(other, step, fields, Self::time_behind(time)))
    }

    /// The first `k` rows by some column, per key and window.
    pub fn top_k(
        &self,
        window: WindowSpan,
        by: Vec<Expr>,
        k: usize,
        order: Expr,
        largest: bool,
    ) -> Result<Self, PlanError> {
        let (window, keys) = self.check_window(window, &by)?;
        let time = self.event_time()?;
        if window.aligned().is_none() {
            return Err(PlanError::Invalid(
                "top_k() takes tumbling or sliding windows, not sessions".to_owned(),
            ));
        }
        if k == 0 {
            return Err(PlanError::Invalid(
                "top_k() needs at least one place to fill: k=1 or more".to_owned(),
            ));
        }
        self.check(&order)?;
        let mut fields = bounds(self.time_type(time));
        let key_names: Vec<String> = keys.iter().map(|key| key.name().clone()).collect();
        fields.extend(keys);
        fields.push(Field::new(RANK, DataType::Int64, false));
        fields.extend(
            Self::joined_columns(self.schema(), &key_names).into_iter().map(|(_, field)| field.clone()),
        );
        check_unique(fields.iter().map(|field| field.name().as_str()), "rename a column before top_k()")?;
        let step = Step::TopK(TopKStep { window, by, k, order, largest });
        Ok(self.then(step, fields, Self::time_behind(time)))
    }
}
