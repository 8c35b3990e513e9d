//! The shapes: plans, and how they are asked to run.

use std::any::Any;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_graph::{Chaining, GraphRequest, SharedLog, Spreading, Strategy};
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_plan::{
    Aggregate, Arrival, BatchFunction, Function, Outputs, Plan, StreamOptions, WindowSpan, join_kind,
};
use penstock_types::{OutsideError, Span};

/// A plan, and how it is asked to run.
pub struct Shape {
    pub name: &'static str,
    pub outputs: Outputs,
    pub request: GraphRequest,
}

fn schema() -> Schema {
    let field = |name, data_type| Field::new(name, data_type, name == "v");
    Schema::new(vec![field("t", DataType::Int64), field("k", DataType::Utf8), field("v", DataType::Int64)])
}

fn events(name: &str) -> Plan {
    Plan::named_stream(Some(name), &schema(), Some("t"), Span::Ticks(0)).unwrap()
}

fn col(name: &str) -> Expr {
    Expr::column(name)
}

fn doubled() -> Expr {
    col("v").binary(BinaryOp::Add, col("v")).unwrap().alias("twice").unwrap()
}

fn above(plan: &Plan, column: &str, than: i128) -> Plan {
    let than = Expr::literal(Literal::Int(than));
    plan.filter(col(column).binary(BinaryOp::Greater, than).unwrap()).unwrap()
}

fn tumbling(size: i64) -> WindowSpan {
    WindowSpan::Tumbling { size: Span::Ticks(size), offset: Span::Ticks(0) }
}

fn aggregate(kind: AggregateKind, input: Option<&str>) -> Aggregate {
    Aggregate { kind, input: input.map(col), name: None }
}

fn counted(plan: &Plan, size: i64) -> Plan {
    let aggregates = vec![aggregate(AggregateKind::Count, None)];
    plan.window(tumbling(size), vec![col("k")], aggregates, Span::Ticks(0), None).unwrap()
}

fn joined(left: &Plan, right: &Plan) -> Plan {
    let on = [vec!["k".to_owned()], vec!["k".to_owned()]];
    left.join(right, tumbling(10), on, join_kind("inner").unwrap(), "_right").unwrap()
}

fn cogrouped(left: &Plan, right: &Plan) -> Plan {
    let sum =
        |name: &str| Aggregate { name: Some(name.to_owned()), ..aggregate(AggregateKind::Sum, Some("v")) };
    let by = [vec![col("k")], vec![col("k")]];
    left.cogroup(right, tumbling(10), by, [vec![sum("left")], vec![sum("right")]]).unwrap()
}

fn looked_up(plan: &Plan) -> Plan {
    let keys = Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef;
    let groups = Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
    let table = RecordBatch::try_from_iter([("k", keys), ("group", groups)]).unwrap();
    plan.lookup(&table, vec!["k".to_owned()], LookupKind::Left).unwrap()
}

struct Identity;

impl BatchFunction for Identity {
    fn name(&self) -> &str {
        "identity"
    }

    fn call(&self, batch: RecordBatch) -> Result<RecordBatch, OutsideError> {
        Ok(batch)
    }

    fn blame(&self, error: OutsideError, _row: &RecordBatch) -> OutsideError {
        error
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn mapped(plan: &Plan) -> Plan {
    plan.map_batches(Function(Arc::new(Identity)), plan.schema()).unwrap()
}

fn shape(name: &'static str, plan: &Plan) -> Shape {
    Shape { name, outputs: Outputs::from(plan), request: GraphRequest::default() }
}

fn several(name: &'static str, plans: Vec<(&str, Plan)>) -> Shape {
    let plans = plans.into_iter().map(|(name, plan)| (name.to_owned(), plan)).collect();
    Shape { name, outputs: Outputs::new(plans).unwrap(), request: GraphRequest::default() }
}

impl Shape {
    fn unchained(mut self) -> Self {
        self.request.chaining = Chaining::Off;
        self
    }

    fn on(mut self, parallelism: usize, strategy: Strategy) -> Self {
        self.request.spreading = Spreading { parallelism, strategy };
        self
    }

    fn keeping_rejected(mut self) -> Self {
        self.request.keeps_rejected = true;
        self
    }

    /// Reads its streams from the log of a shared source, which has one column more.
    fn shared(mut self) -> Self {
        let mut fields = vec![Arc::new(Field::new("extra", DataType::Int64, true))];
        fields.extend(schema().fields().iter().cloned());
        let log = SharedLog { source: 7, schema: Arc::new(Schema::new(fields)), has_wide_time: false };
        let streams =
            self.outputs.graph().nodes().iter().filter(|node| node.step().as_stream().is_some()).count();
        self.request.shared = vec![Some(log); streams];
        self
    }
}

fn one_stream() -> Vec<Shape> {
    let stream = events("a");
    let narrow = above(&stream, "v", 1).select(vec![col("t"), doubled()]).unwrap();
    let first = stream.top_k(tumbling(10), vec![col("k")], 3, col("v"), true).unwrap();
    let session = WindowSpan::Session { gap: Span::Ticks(5) };
    let count = || vec![aggregate(AggregateKind::Count, None)];
    let sessions = stream.window(session, vec![col("k")], count(), Span::Ticks(0), None).unwrap();
    let computed = stream.window(
        tumbling(10),
        vec![doubled()],
        vec![aggregate(AggregateKind::Max, Some("v"))],
        Span::Ticks(0),
        None,
    );
    let total = stream.tumbling(Span::Ticks(10), vec![], count()).unwrap();
    let over = above(&counted(&stream, 10), "count", 1);
    let over = over
        .window(
            tumbling(100),
            vec![col("k")],
            vec![Aggregate { name: Some("n".to_owned()), ..aggregate(AggregateKind::Count, None) }],
            Span::Ticks(0),
            None,
        )
        .unwrap();
    let arrival =
        StreamOptions { time: Some("now"), arrival: Some(Arrival::Ingestion), ..StreamOptions::default() };
    let arriving = Plan::declare(&schema(), arrival).unwrap();
    vec![
        shape("a_stream", &stream),
        shape("stages_chained", &narrow),
        shape("stages_unchained", &narrow).unchained(),
        shape("stages_that_keep_rejected_rows", &narrow).keeping_rejected(),
        shape("a_window", &counted(&stream, 10)),
        shape("a_window_unchained", &counted(&above(&stream, "v", 1), 10)).unchained(),
        shape("a_window_merged", &counted(&above(&stream, "v", 1), 10)).on(2, Strategy::Auto),
        shape("a_window_exchanged", &counted(&above(&stream, "v", 1), 10)).on(2, Strategy::Exchange),
        shape("a_window_by_a_computed_key_exchanged", &computed.unwrap()).on(2, Strategy::Exchange),
        shape("a_window_of_arrival", &counted(&arriving, 10)),
        shape("a_total_merged", &total).on(2, Strategy::Auto),
        shape("sessions_exchanged", &sessions).on(2, Strategy::Auto),
        shape("top_k_merged", &first).on(2, Strategy::Merge),
        shape("a_window_over_a_window", &over),
        shape("a_window_over_a_window_on_workers", &over).on(2, Strategy::Auto),
        shape("a_lookup_merged", &counted(&above(&looked_up(&stream), "group", 1), 10))
            .on(2, Strategy::Merge),
        shape("a_function", &counted(&mapped(&above(&stream, "v", 1)), 10)),
        shape("a_shared_source", &counted(&stream, 10)).shared(),
        shape("a_shared_source_unchained", &counted(&above(&stream, "v", 1), 10)).shared().unchained(),
        shape("a_shared_source_on_workers", &counted(&stream, 10)).shared().on(2, Strategy::Auto),
    ]
}

fn branching() -> Vec<Shape> {
    let (stream, other) = (events("a"), events("b"));
    let common = above(&stream, "v", 1);
    let diamond = Plan::union(&[above(&stream, "v", 1), above(&stream, "v", 2)]).unwrap();
    let windows = counted(&stream, 10);
    let late = windows.late().unwrap();
    let both = || vec![("windows", windows.clone()), ("late", late.clone())];
    vec![
        shape("a_union", &counted(&Plan::union(&[stream.clone(), other.clone()]).unwrap(), 10)),
        shape("a_union_on_workers", &counted(&Plan::union(&[stream.clone(), other.clone()]).unwrap(), 10))
            .on(2, Strategy::Auto),
        shape("a_diamond", &diamond),
        shape("a_diamond_unchained", &diamond).unchained(),
        shape("a_join", &joined(&stream, &other)),
        shape("a_join_exchanged", &joined(&above(&stream, "v", 1), &other)).on(3, Strategy::Auto),
        shape("a_join_with_itself", &joined(&stream, &stream)),
        shape("a_cogroup", &cogrouped(&stream, &other)),
        several("several_outputs", vec![("rows", common.clone()), ("windows", counted(&common, 10))]),
        several("a_split", vec![("low", above(&stream, "v", 1)), ("high", above(&stream, "v", 9))]),
        several("late_rows", both()),
        several("late_rows_exchanged", both()).on(2, Strategy::Auto),
        several("late_rows_unchained", both()).unchained(),
        // A run over a part of the input takes one worker: state is kept operator by operator.
        several("a_part", vec![("windows", counted(&common, 10)), ("joined", joined(&common, &other))]),
    ]
}

/// All of them.
pub fn shapes() -> Vec<Shape> {
    one_stream().into_iter().chain(branching()).collect()
}
