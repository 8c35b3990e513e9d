//! A plan cut into stages, for whoever runs it on many machines: within a stage, each of them runs on its own.
//!
//! An operator with state needs all rows of a key in one place. Where rows are not yet spread so, the plan is cut before it:
//! what is in front becomes a stage of its own, and its rows are spread anew. Stateless operators stay where their rows
//! are. So a plan is cut as rarely as its keys allow.
//!
//! G1. A stage reads streams of the plan and rows of stages before it, each spread in a way that every one of its operators
//!     can do with: it may run on any part of them. Rows that two sides of an operator need by different keys come in
//!     once for each.
//! G2. The rows that leave all parts of a stage are those of one run over everything.
//! G3. Rows that cross a cut keep their event time. No row of a stage comes late, if rows are put in order of that time.
//! G4. Where rows are judged by the order in which they came, each carries the watermark just before it, as a column of its
//!     own, up to the first operator with state. There they are put in order of that, and none is judged by another one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use penstock_expr::Expr;
use penstock_expr::expr::Kind;
use penstock_types::PlanError;

use super::{EventTime, Graph, Node, Outputs, Plan, Step, StreamStep, Watermarks};

/// The column with the watermark before each row (G4).
const WATERMARK: &str = "__watermark";

/// The columns with keys that are computed, with a number behind it.
const COMPUTED_KEY: &str = "__key_";

/// How rows are spread over the parts of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// Anyhow.
    Anyhow,
    /// Rows with the same values of these columns are together.
    ByKey(Vec<String>),
    /// All of them are together. Operators without a key keep sums and not rows, so a stage like this may also run on
    /// any part of them, if all states are put together then.
    Together,
}

/// Where the rows of a stage come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A stream of the plan.
    Stream(String),
    /// An output of another stage: its number, and the name of the output.
    Stage(usize, String),
}

/// What a stage reads.
#[derive(Clone, Debug, PartialEq)]
pub struct StageInput {
    /// The name of the stream that it is in the plan of the stage.
    pub stream: String,
    /// Where its rows come from.
    pub origin: Origin,
    /// How they are to be spread.
    pub spread: Spread,
    /// The column that they are to be put in order by (G3), if any.
    pub time: Option<String>,
    /// By how many ticks the watermark stays behind the largest time.
    pub delay: i64,
    /// The column with the watermark before each row (G4), which is filled where a stream comes in.
    pub watermark: Option<String>,
    /// Their columns.
    pub schema: SchemaRef,
}

/// A plan that runs on any part of its input.
#[derive(Debug)]
pub struct Stage {
    /// What it reads.
    pub inputs: Vec<StageInput>,
    /// What it does: an output for each stage that reads it, and for each output of the plan that it makes.
    pub outputs: Outputs,
}

/// A plan in stages, each behind those that it reads.
#[derive(Debug)]
pub struct Stages {
    /// The stages.
    pub stages: Vec<Stage>,
    /// The stage and the output that each output of the plan comes from, in order.
    pub results: Vec<(usize, String)>,
}

/// A stage while it is made.
struct Draft {
    inputs: Vec<StageInput>,
    /// How rows are spread: for what it reads.
    spread: Spread,
    /// The nodes of the plan that are here, as they are in the plan of the stage.
    nodes: HashMap<usize, Arc<Node>>,
    /// What comes in here: once for each way in which its rows are spread.
    brought: Vec<Brought>,
    /// What leaves it.
    outputs: Vec<(String, usize, Option<Vec<Expr>>)>,
}

/// The rows of a node that is in another stage.
struct Brought {
    node: usize,
    /// What they are spread by, if it is a key.
    keys: Option<Vec<Expr>>,
    /// What they are in the plan of the stage.
    held: Arc<Node>,
}

/// Where the rows of a node are, and the columns that say where.
#[derive(Clone)]
struct Place {
    stage: usize,
    spread: Spread,
}

struct Cutter<'a> {
    graph: &'a Graph,
    /// Whether rows are judged by the order in which they came (G4).
    is_ordered: bool,
    /// Which nodes carry the watermark before each row.
    carries: Vec<bool>,
    drafts: Vec<Draft>,
    places: Vec<Place>,
    /// Stages whose rows were spread by these keys of these nodes.
    spread_by: HashMap<(Vec<usize>, Vec<Vec<Expr>>), usize>,
}

/// The keys of each input of an operator with state.
fn keys_of(step: &Step) -> Option<Vec<Vec<Expr>>> {
    let columns = |names: &[String]| names.iter().map(|name| Expr::column(name.clone())).collect();
    Some(match step {
        Step::Window(step) => vec![step.by.clone()],
        Step::TopK(step) => vec![step.by.clone()],
        Step::CoGroup(step) => step.by.to_vec(),
        Step::Join(step) => step.on.iter().map(|names| columns(names)).collect(),
        _ => return None,
    })
}

/// What a column is called behind a step that passes expressions on, if it is.
fn passed(exprs: &[Expr], column: &str) -> Option<String> {
    exprs.iter().find(|expr| expr.as_column() == Some(column)).map(Expr::output_name)
}

impl Spread {
    /// The same rows behind a step, where columns may have other names; `None` is the name of one that is gone.
    fn renamed(&self, name: impl Fn(&str) -> Option<String>) -> Self {
        let Self::ByKey(columns) = self else { return self.clone() };
        columns.iter().map(|column| name(column)).collect::<Option<_>>().map_or(Self::Anyhow, Self::ByKey)
    }

    /// Whether rows with the same keys are together.
    fn keeps_together(&self, keys: &[Expr]) -> bool {
        match self {
            Self::Anyhow => false,
            Self::ByKey(columns) => {
                !columns.is_empty() && columns.iter().all(|column| passed(keys, column).is_some())
            }
            Self::Together => true,
        }
    }
}

impl Cutter<'_> {
    fn new_stage(&mut self, spread: Spread) -> usize {
        let (inputs, outputs, nodes, brought) = (Vec::new(), Vec::new(), HashMap::new(), Vec::new());
        let draft = Draft { inputs, spread, nodes, brought, outputs };
        self.drafts.push(draft);
        self.drafts.len() - 1
    }

    /// Lets the rows of a node come into another stage, spread by these keys if there are any: what they are there.
    fn bring(&mut self, node: usize, keys: Option<&[Expr]>, to: usize) -> Arc<Node> {
        let is_same = |brought: &&Brought| {
            brought.node == node && brought.keys.as_deref().map(values) == keys.map(values)
        };
        if let Some(brought) = self.drafts[to].brought.iter().find(is_same) {
            return Arc::clone(&brought.held);
        }
        let from = self.places[node].stage;
        // With the watermarks that its rows carry.
        let held = Arc::clone(&self.drafts[from].nodes[&node]);
        // Rows that are spread in several ways come in under a name for each (G1).
        let output = match self.drafts[to].brought.iter().filter(|brought| brought.node == node).count() {
            0 => format!("to_{to}_{node}"),
            others => format!("to_{to}_{node}_{others}"),
        };
        let spread = match keys {
            Some(keys) => {
                Spread::ByKey(keys.iter().enumerate().map(|(number, key)| key_column(number, key)).collect())
            }
            None => self.drafts[to].spread.clone(),
        };
        let schema = with_keys(&held, keys);
        let has_state = spread != Spread::Anyhow;
        let watermark = self.carries[node].then(|| WATERMARK.to_owned());
        let judge = watermark.clone().filter(|_| has_state);
        let stream = declared(&output, Arc::clone(&schema), held.time(), judge);
        let keys = keys.map(<[Expr]>::to_vec);
        self.drafts[from].outputs.push((output.clone(), node, keys.clone()));
        let time = held.time().map(|time| time.column.clone());
        let (stream_name, origin) = (output.clone(), Origin::Stage(from, output));
        let input = StageInput { stream: stream_name, origin, spread, time, delay: 0, watermark, schema };
        self.drafts[to].inputs.push(input);
        // The columns that were added for the keys are gone again, and nobody behind state asks for watermarks.
        let kept = if has_state { &self.graph.nodes()[node] } else { &held };
        let held = with_columns_of(stream, kept);
        self.drafts[to].brought.push(Brought { node, keys, held: Arc::clone(&held) });
        held
    }

    /// Nodes that are in a stage.
    fn held(&self, nodes: &[usize], stage: usize) -> Vec<Arc<Node>> {
        nodes.iter().map(|node| Arc::clone(&self.drafts[stage].nodes[node])).collect()
    }

    /// Where an operator with these keys for each of its inputs runs, and what each of them is there.
    fn gather(&mut self, inputs: &[usize], keys: &[Vec<Expr>]) -> (usize, Vec<Arc<Node>>) {
        let first = self.places[inputs[0]].stage;
        let stays = inputs.iter().zip(keys).all(|(&input, keys)| {
            let place = &self.places[input];
            place.stage == first && place.spread.keeps_together(keys)
        });
        // The columns that keep rows together must be the same ones on all sides.
        if stays && self.are_alike(inputs, keys) {
            return (first, self.held(inputs, first));
        }
        let has_keys = keys.iter().all(|keys| !keys.is_empty());
        let spread_by = (inputs.to_vec(), keys.to_vec());
        let stage = match self.spread_by.get(&spread_by) {
            Some(&stage) => stage,
            None => {
                let spread = if has_keys { Spread::ByKey(Vec::new()) } else { Spread::Together };
                let stage = self.new_stage(spread);
                self.spread_by.insert(spread_by, stage);
                stage
            }
        };
        let sides = inputs.iter().zip(keys);
        let held = sides.map(|(&input, keys)| self.bring(input, has_keys.then_some(keys), stage)).collect();
        (stage, held)
    }

    /// Whether the rows of all inputs are spread by the same of their keys.
    fn are_alike(&self, inputs: &[usize], keys: &[Vec<Expr>]) -> bool {
        let spread_by = |(&input, keys): (&usize, &Vec<Expr>)| match &self.places[input].spread {
            Spread::ByKey(columns) => Some(
                columns
                    .iter()
                    .map(|column| keys.iter().position(|key| key.as_column() == Some(column)))
                    .collect::<Vec<_>>(),
            ),
            _ => None,
        };
        let mut all = inputs.iter().zip(keys).map(spread_by);
        let first = all.next();
        all.all(|other| Some(other) == first)
    }

    /// How rows are spread behind an operator with state.
    fn behind(&self, step: &Step, stage: usize, inputs: &[usize], keys: &[Vec<Expr>]) -> Spread {
        match &self.drafts[stage].spread {
            Spread::Together => Spread::Together,
            Spread::Anyhow => Spread::Anyhow,
            Spread::ByKey(_) => {
                // A stage that was made for this operator is spread by all of its keys.
                let place = &self.places[inputs[0]];
                let columns = if place.stage == stage { place.spread.clone() } else { Spread::Anyhow };
                let names = match columns {
                    Spread::ByKey(columns) => {
                        columns.iter().filter_map(|column| passed(&keys[0], column)).collect()
                    }
                    _ => keys[0].iter().map(Expr::output_name).collect(),
                };
                match step {
                    // Rows keep their columns, and computed keys are not among them.
                    Step::Join(_) | Step::Window(_) | Step::CoGroup(_) | Step::TopK(_) => {
                        Spread::ByKey(names)
                    }
                    _ => Spread::Anyhow,
                }
            }
        }
    }

    /// A stream is read by a stage of its own.
    fn place_stream(&mut self, number: usize, stream: &StreamStep) -> Place {
        let node = &self.graph.nodes()[number];
        let stage = self.new_stage(Spread::Anyhow);
        let name = node.step().stream_name().expect("a stream has a name").to_owned();
        let carries = self.is_ordered && stream.time.is_some();
        let mut stream = stream.clone();
        if let Some(time) = stream.time.as_ref().filter(|_| carries) {
            stream.schema = with_watermark(&stream.schema, &stream.schema, time);
        }
        self.drafts[stage].inputs.push(StageInput {
            stream: name.clone(),
            origin: Origin::Stream(name),
            spread: Spread::Anyhow,
            time: stream.time.clone(),
            delay: stream.delay,
            watermark: carries.then(|| WATERMARK.to_owned()),
            schema: Arc::clone(&stream.schema),
        });
        let schema = match &stream.time {
            Some(time) if carries => with_watermark(node.schema(), &stream.schema, time),
            _ => Arc::clone(node.schema()),
        };
        let placed = Node::new(Step::Stream(stream), Vec::new(), schema, node.time().cloned());
        self.drafts[stage].nodes.insert(number, placed);
        self.carries.push(carries);
        Place { stage, spread: Spread::Anyhow }
    }

    /// Notes whether rows behind a step carry watermarks as well.
    fn carry(&mut self, number: usize, has_state: bool) -> Result<(), PlanError> {
        let inputs = self.graph.inputs(number);
        let carried = inputs.iter().filter(|&&input| self.carries[input]).count();
        let has_time = self.graph.nodes()[number].time().is_some();
        debug_assert!(
            has_state || !has_time || carried == 0 || carried == inputs.len(),
            "rows of one event time come together"
        );
        // Rows without a time are never judged.
        let is_carried = carried > 0 && has_time && !has_state;
        if is_carried && matches!(self.graph.nodes()[number].step(), Step::Map(_)) {
            return Err(refused("a function makes new rows before the first window", LATE));
        }
        self.carries.push(is_carried);
        Ok(())
    }

    fn place(&mut self, number: usize) -> Result<Place, PlanError> {
        let node = Arc::clone(&self.graph.nodes()[number]);
        let inputs = self.graph.inputs(number).to_vec();
        let step = node.step();
        if let Step::Stream(stream) = step {
            return Ok(self.place_stream(number, stream));
        }
        self.carry(number, keys_of(step).is_some())?;
        let (stage, inputs, spread) = match keys_of(step) {
            Some(keys) => {
                let (stage, held) = self.gather(&inputs, &keys);
                (stage, held, self.behind(step, stage, &inputs, &keys))
            }
            None => {
                let first = self.places[inputs[0]].clone();
                if inputs.iter().all(|&input| self.places[input].stage == first.stage) {
                    let spread = match step {
                        Step::Filter(_) | Step::Lookup(_) => first.spread,
                        Step::Select(exprs) => first.spread.renamed(|column| passed(exprs, column)),
                        Step::WithColumns(exprs) => first.spread.renamed(|column| {
                            let replaced = exprs
                                .iter()
                                .any(|expr| expr.output_name() == column && expr.as_column() != Some(column));
                            (!replaced).then(|| column.to_owned())
                        }),
                        Step::Union => {
                            let alike = inputs.iter().all(|&input| self.places[input].spread == first.spread);
                            if alike { first.spread } else { Spread::Anyhow }
                        }
                        _ if first.spread == Spread::Together => Spread::Together,
                        _ => Spread::Anyhow,
                    };
                    (first.stage, self.held(&inputs, first.stage), spread)
                } else {
                    let stage = self.new_stage(Spread::Anyhow);
                    let held = inputs.iter().map(|&input| self.bring(input, None, stage)).collect();
                    (stage, held, Spread::Anyhow)
                }
            }
        };
        let (mut step, mut schema) = (step.clone(), Arc::clone(node.schema()));
        let mut inputs: Vec<Arc<Node>> = inputs;
        if self.carries[number] {
            schema = carried_on(&schema, inputs[0].schema());
            if let Step::Select(exprs) = &mut step {
                exprs.insert(0, Expr::column(WATERMARK));
            }
        } else {
            let before = self.graph.inputs(number).iter().map(|&input| &self.graph.nodes()[input]);
            inputs = inputs.into_iter().zip(before).map(|(held, node)| with_columns_of(held, node)).collect();
        }
        let rebuilt = Node::new(step, inputs, schema, node.time().cloned());
        self.drafts[stage].nodes.insert(number, rebuilt);
        Ok(Place { stage, spread })
    }
}

/// What the column with a key is called on its way to another stage.
fn key_column(number: usize, key: &Expr) -> String {
    key.as_column().map_or_else(|| format!("{COMPUTED_KEY}{number}"), str::to_owned)
}

/// Keys as rows are spread by them: what they are called does not matter.
fn values(keys: &[Expr]) -> Vec<&Expr> {
    fn value(key: &Expr) -> &Expr {
        match key.kind() {
            Kind::Alias(inner, _) => value(inner),
            _ => key,
        }
    }
    keys.iter().map(value).collect()
}

/// The keys that are no columns, with the names that they have on their way.
fn computed(keys: &[Expr]) -> Vec<Expr> {
    let keys = keys.iter().enumerate().filter(|(_, key)| key.as_column().is_none());
    let named = |(number, key): (usize, &Expr)| {
        key.clone().alias(key_column(number, key)).expect("a key that was checked takes a name")
    };
    keys.map(named).collect()
}

/// The columns of a node, and those of its computed keys.
fn with_keys(node: &Arc<Node>, keys: Option<&[Expr]>) -> SchemaRef {
    match keys.map(computed) {
        Some(computed) if !computed.is_empty() => {
            let plan = Plan { root: Arc::clone(node) };
            let plan = plan.with_columns(computed).expect("the keys were checked when the plan was built");
            Arc::clone(plan.schema())
        }
        _ => Arc::clone(node.schema()),
    }
}

/// A stream of rows that come from another stage.
fn declared(name: &str, schema: SchemaRef, time: Option<&EventTime>, judge: Option<String>) -> Arc<Node> {
    let step = StreamStep {
        name: Some(name.to_owned()),
        schema: Arc::clone(&schema),
        time: time.map(|time| time.column.clone()),
        is_end: time.is_some_and(|time| time.is_end),
        delay: 0,
        arrival: None,
        watermark: judge.map(Watermarks::Before),
        idle_after_ns: None,
        max_ahead: None,
    };
    Node::new(Step::Stream(step), Vec::new(), schema, time.cloned())
}

/// Columns, behind that with the watermark before each row. It is of the type of the time column, and null as long as
/// there is no watermark.
fn with_watermark(columns: &Schema, stream: &Schema, time: &str) -> SchemaRef {
    let time = stream.field_with_name(time).expect("the time column was checked when the plan was built");
    behind(&Field::new(WATERMARK, time.data_type().clone(), true), columns)
}

/// Columns, behind the watermark that the rows had before a step.
fn carried_on(columns: &Schema, before: &Schema) -> SchemaRef {
    behind(before.field_with_name(WATERMARK).expect("rows before the step carry it"), columns)
}

/// Steps add columns at the end: so this one stays where it is.
fn behind(first: &Field, columns: &Schema) -> SchemaRef {
    let fields = columns.fields().iter().map(|field| field.as_ref().clone());
    Arc::new(Schema::new(std::iter::once(first.clone()).chain(fields).collect::<Vec<_>>()))
}

/// The stream with the columns of the node that it stands for.
fn with_columns_of(stream: Arc<Node>, node: &Arc<Node>) -> Arc<Node> {
    if stream.schema().fields().len() == node.schema().fields().len() {
        return stream;
    }
    let columns = node.schema().fields().iter().map(|field| Expr::column(field.name().clone())).collect();
    Node::new(Step::Select(columns), vec![stream], Arc::clone(node.schema()), node.time().cloned())
}

impl Outputs {
    /// Cuts the plans into stages. Where rows are ordered, which of them come late is judged by the order in which they
    /// came (G4); otherwise none does.
    ///
    /// # Errors
    /// A plan whose answer depends on where its rows come together: by the clock, or with functions that say how far event
    /// time has come. A plan of which cannot be told what came late, if rows are ordered.
    pub fn stages(&self, is_ordered: bool) -> Result<Stages, PlanError> {
        let graph = self.graph();
        for node in graph.nodes() {
            check(node.step())?;
            check_names(node.schema())?;
        }
        let (carries, drafts, places) = (Vec::new(), Vec::new(), Vec::new());
        let spread_by = HashMap::new();
        let mut cutter = Cutter { graph: &graph, is_ordered, carries, drafts, places, spread_by };
        for number in 0..graph.nodes().len() {
            let place = cutter.place(number)?;
            cutter.places.push(place);
        }
        let mut results = Vec::new();
        for ((name, _), &root) in self.plans().iter().zip(graph.roots()) {
            let stage = cutter.places[root].stage;
            cutter.drafts[stage].outputs.push((name.clone(), root, None));
            results.push((stage, name.clone()));
        }
        let stages = cutter.drafts.into_iter().map(|draft| {
            let outputs = draft.outputs.iter().map(|(name, node, keys)| {
                // Those who asked for a result did not ask for watermarks.
                let is_result = results.iter().any(|(_, result)| result == name);
                let root = Arc::clone(&draft.nodes[node]);
                let root = if is_result { with_columns_of(root, &graph.nodes()[*node]) } else { root };
                let plan = Plan { root };
                let computed = keys.as_deref().map(computed).unwrap_or_default();
                let plan = if computed.is_empty() { plan } else { plan.with_columns(computed)? };
                Ok((name.clone(), plan))
            });
            let outputs = outputs.collect::<Result<Vec<_>, PlanError>>()?;
            Ok(Stage { inputs: draft.inputs, outputs: Self::new(outputs)? })
        });
        Ok(Stages { stages: stages.collect::<Result<_, PlanError>>()?, results })
    }
}

const LATE: &str = "on several machines it cannot be told which of them come late; leave order_by= out";
const OTHERS: &str = "on several machines at a time the answer would be another each time";

fn refused(what: &str, why: &str) -> PlanError {
    PlanError::Invalid(format!("{what}: {why}"))
}

/// Refuses columns that would meet those which rows have only between two stages.
fn check_names(schema: &Schema) -> Result<(), PlanError> {
    let taken = |name: &str| name == WATERMARK || name.starts_with(COMPUTED_KEY);
    match schema.fields().iter().find(|field| taken(field.name())) {
        Some(field) => Err(PlanError::Invalid(format!(
            "column {:?}: on several machines this name is needed for what goes along with the rows; rename it",
            field.name()
        ))),
        None => Ok(()),
    }
}

/// Refuses what would give another answer on several machines.
fn check(step: &Step) -> Result<(), PlanError> {
    let what = match step {
        Step::Stream(stream) if stream.arrival.is_some() => "the time of a row is when it arrives",
        Step::Stream(stream) if stream.watermark.is_some() => {
            "watermarks are taken from the data, in the order in which it comes"
        }
        Step::Stream(stream) if stream.max_ahead.is_some() => {
            "how far ahead a time is goes by the order in which rows come"
        }
        Step::Stream(stream) if stream.idle_after_ns.is_some() => {
            "a silent stream is left alone by the clock"
        }
        Step::Window(window) if window.close_after_ns.is_some() => "windows close by the clock",
        Step::Late => "late rows are an output",
        _ => return Ok(()),
    };
    Err(refused(what, OTHERS))
}
