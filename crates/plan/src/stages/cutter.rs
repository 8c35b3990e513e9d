//! Which operator runs in which stage.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_expr::Expr;
use penstock_types::PlanError;

use super::carried::{WATERMARK, declared, key_column, values, with_columns_of, with_keys, with_watermark};
use super::{Distribution, LATE, StageInput, StageOrigin, refused};
use crate::expression::passed;
use crate::step::{Graph, Node};
use crate::stream::StreamStep;

/// A stage while it is made.
pub(super) struct Cut {
    pub(super) inputs: Vec<StageInput>,
    /// How rows are spread: for what it reads.
    spread: Distribution,
    /// The nodes of the plan that are here, as they are in the plan of the stage.
    pub(super) nodes: HashMap<usize, Arc<Node>>,
    /// What comes in here: once for each way in which its rows are spread (STAGE-1).
    brought: Vec<Brought>,
    /// What leaves it: a name, the node, and the keys that its rows are spread by.
    pub(super) outputs: Vec<(String, usize, Option<Vec<Expr>>)>,
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
struct StagePlace {
    stage: usize,
    spread: Distribution,
}

/// Cuts a plan, node by node.
pub(super) struct StageCutter<'a> {
    graph: &'a Graph,
    /// Whether rows are judged by the order in which they came (STAGE-4).
    is_ordered: bool,
    /// Which nodes carry the watermark before each row.
    carries: Vec<bool>,
    pub(super) drafts: Vec<Cut>,
    places: Vec<StagePlace>,
    /// Stages whose rows were spread by these keys of these nodes.
    spread_by: HashMap<(Vec<usize>, Vec<Vec<Expr>>), usize>,
}

impl<'a> StageCutter<'a> {
    /// Cuts the plans of a graph.
    pub(super) fn cut(graph: &'a Graph, is_ordered: bool) -> Result<Self, PlanError> {
        let (carries, drafts, places, spread_by) = Default::default();
        let mut cutter = Self { graph, is_ordered, carries, drafts, places, spread_by };
        for number in 0..graph.nodes().len() {
            let place = cutter.place(number)?;
            cutter.places.push(place);
        }
        Ok(cutter)
    }

    /// Lets the rows of a node leave as a result. Returns the stage that they leave.
    pub(super) fn add_result(&mut self, node: usize, name: &str) -> usize {
        let stage = self.places[node].stage;
        self.drafts[stage].outputs.push((name.to_owned(), node, None));
        stage
    }

    fn new_stage(&mut self, spread: Distribution) -> usize {
        let (inputs, outputs, nodes, brought) = (Vec::new(), Vec::new(), HashMap::new(), Vec::new());
        let draft = Cut { inputs, spread, nodes, brought, outputs };
        self.drafts.push(draft);
        self.drafts.len() - 1
    }

    /// Lets the rows of a node come into another stage, spread by these keys if there are any: what they are there.
    fn bring(&mut self, node: usize, keys: Option<&[Expr]>, to: usize) -> Result<Arc<Node>, PlanError> {
        let is_same = |brought: &&Brought| {
            brought.node == node && brought.keys.as_deref().map(values) == keys.map(values)
        };
        if let Some(brought) = self.drafts[to].brought.iter().find(is_same) {
            return Ok(Arc::clone(&brought.held));
        }
        let from = self.places[node].stage;
        // With the watermarks that its rows carry.
        let held = Arc::clone(&self.drafts[from].nodes[&node]);
        // Rows that are spread in several ways come in under a name for each (STAGE-1).
        let output = match self.drafts[to].brought.iter().filter(|brought| brought.node == node).count() {
            0 => format!("to_{to}_{node}"),
            others => format!("to_{to}_{node}_{others}"),
        };
        let spread = match keys {
            Some(keys) => Distribution::ByKey(
                keys.iter().enumerate().map(|(number, key)| key_column(number, key)).collect(),
            ),
            None => self.drafts[to].spread.clone(),
        };
        let schema = with_keys(&held, keys)?;
        let has_state = spread != Distribution::Unpartitioned;
        let watermark = self.carries[node].then(|| WATERMARK.to_owned());
        let judge = watermark.clone().filter(|_| has_state);
        let stream = declared(&output, &schema, held.time(), judge)?;
        let keys = keys.map(<[Expr]>::to_vec);
        self.drafts[from].outputs.push((output.clone(), node, keys.clone()));
        let time = held.time().map(|time| time.column.clone());
        let (stream_name, origin) = (output.clone(), StageOrigin::Stage(from, output));
        let input = StageInput { stream: stream_name, origin, spread, time, delay: 0, watermark, schema };
        self.drafts[to].inputs.push(input);
        // The columns that were added for the keys are gone again, and after state no one asks for watermarks.
        let kept = if has_state { &self.graph.nodes()[node] } else { &held };
        let held = with_columns_of(&stream, kept)?;
        self.drafts[to].brought.push(Brought { node, keys, held: Arc::clone(&held) });
        Ok(held)
    }

    /// Nodes that are in a stage.
    fn held(&self, nodes: &[usize], stage: usize) -> Vec<Arc<Node>> {
        nodes.iter().map(|node| Arc::clone(&self.drafts[stage].nodes[node])).collect()
    }

    /// Where an operator with these keys for each of its inputs runs, and what each of them is there.
    fn gather(&mut self, inputs: &[usize], keys: &[Vec<Expr>]) -> Result<(usize, Vec<Arc<Node>>), PlanError> {
        let first = self.places[inputs[0]].stage;
        let stays = inputs.iter().zip(keys).all(|(&input, keys)| {
            let place = &self.places[input];
            place.stage == first && place.spread.keeps_together(keys)
        });
        // The columns that keep rows together must be the same ones on all sides.
        if stays && self.are_alike(inputs, keys) {
            return Ok((first, self.held(inputs, first)));
        }
        let has_keys = keys.iter().all(|keys| !keys.is_empty());
        let spread_by = (inputs.to_vec(), keys.to_vec());
        let stage = match self.spread_by.get(&spread_by) {
            Some(&stage) => stage,
            None => {
                let spread = if has_keys { Distribution::ByKey(Vec::new()) } else { Distribution::Together };
                let stage = self.new_stage(spread);
                self.spread_by.insert(spread_by, stage);
                stage
            }
        };
        let sides = inputs.iter().zip(keys);
        let held = sides.map(|(&input, keys)| self.bring(input, has_keys.then_some(keys), stage));
        Ok((stage, held.collect::<Result<_, _>>()?))
    }

    /// Whether the rows of all inputs are spread by the same of their keys.
    fn are_alike(&self, inputs: &[usize], keys: &[Vec<Expr>]) -> bool {
        let spread_by = |(&input, keys): (&usize, &Vec<Expr>)| match &self.places[input].spread {
            Distribution::ByKey(columns) => Some(
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

    /// Returns how rows are spread that leave an operator with state.
    fn behind(&self, stage: usize, inputs: &[usize], keys: &[Vec<Expr>]) -> Distribution {
        let Distribution::ByKey(_) = &self.drafts[stage].spread else {
            return self.drafts[stage].spread.clone();
        };
        // A stage that was made for this operator is spread by all of its keys.
        let place = &self.places[inputs[0]];
        let columns = if place.stage == stage { place.spread.clone() } else { Distribution::Unpartitioned };
        Distribution::ByKey(match columns {
            Distribution::ByKey(columns) => {
                columns.iter().filter_map(|column| passed(&keys[0], column)).collect()
            }
            _ => keys[0].iter().map(Expr::output_name).collect(),
        })
    }

    /// Gives a stream a stage of its own.
    fn place_stream(&mut self, number: usize, stream: &StreamStep) -> Result<StagePlace, PlanError> {
        let node = &self.graph.nodes()[number];
        let stage = self.new_stage(Distribution::Unpartitioned);
        let name = stream.data_name().to_owned();
        let carries = self.is_ordered && stream.time.is_some();
        let placed = match &stream.time {
            Some(time) if carries => Node::new(Arc::new(with_watermark(stream, time)), Vec::new())?,
            _ => Arc::clone(node),
        };
        let read = placed.step().as_stream().expect("it is a stream still");
        self.drafts[stage].inputs.push(StageInput {
            stream: name.clone(),
            origin: StageOrigin::Stream(name),
            spread: Distribution::Unpartitioned,
            time: stream.time.clone(),
            delay: stream.delay,
            watermark: carries.then(|| WATERMARK.to_owned()),
            schema: Arc::clone(&read.schema),
        });
        self.drafts[stage].nodes.insert(number, placed);
        self.carries.push(carries);
        Ok(StagePlace { stage, spread: Distribution::Unpartitioned })
    }

    /// Notes whether the rows that leave a step carry watermarks as well.
    fn carry(&mut self, number: usize, has_state: bool) {
        let inputs = self.graph.inputs(number);
        let carried = inputs.iter().filter(|&&input| self.carries[input]).count();
        let has_time = self.graph.nodes()[number].time().is_some();
        debug_assert!(
            has_state || !has_time || carried == 0 || carried == inputs.len(),
            "rows of one event time come together"
        );
        // Rows without a time are never judged.
        let is_carried = carried > 0 && has_time && !has_state;
        self.carries.push(is_carried);
    }

    /// Decides in which stage a node runs, and puts its step there.
    fn place(&mut self, number: usize) -> Result<StagePlace, PlanError> {
        let node = Arc::clone(&self.graph.nodes()[number]);
        let inputs = self.graph.inputs(number).to_vec();
        if let Some(stream) = node.step().as_stream() {
            return self.place_stream(number, stream);
        }
        let keys = node.step().keys();
        self.carry(number, keys.is_some());
        let mut step = Arc::clone(node.shared_step());
        if self.carries[number] {
            step = step
                .carrying(WATERMARK)
                .ok_or_else(|| refused("a function makes new rows before the first window", LATE))?;
        }
        let (stage, mut held, spread) = match keys {
            Some(keys) => {
                let (stage, held) = self.gather(&inputs, &keys)?;
                (stage, held, self.behind(stage, &inputs, &keys))
            }
            None => self.stay(&node, &inputs)?,
        };
        if !self.carries[number] {
            let before = inputs.iter().map(|&input| &self.graph.nodes()[input]);
            let held_as = held.iter().zip(before).map(|(held, node)| with_columns_of(held, node));
            held = held_as.collect::<Result<_, _>>()?;
        }
        self.drafts[stage].nodes.insert(number, Node::new(step, held)?);
        Ok(StagePlace { stage, spread })
    }

    /// Keeps a stateless step where its rows are; in a stage of its own, if they are in several.
    fn stay(
        &mut self,
        node: &Node,
        inputs: &[usize],
    ) -> Result<(usize, Vec<Arc<Node>>, Distribution), PlanError> {
        let first = self.places[inputs[0]].clone();
        if inputs.iter().all(|&input| self.places[input].stage == first.stage) {
            let alike = inputs.iter().all(|&input| self.places[input].spread == first.spread);
            let spread = first.spread.renamed(|column| node.step().passes(column));
            let spread = if alike { spread } else { Distribution::Unpartitioned };
            return Ok((first.stage, self.held(inputs, first.stage), spread));
        }
        let stage = self.new_stage(Distribution::Unpartitioned);
        let held = inputs.iter().map(|&input| self.bring(input, None, stage)).collect::<Result<_, _>>()?;
        Ok((stage, held, Distribution::Unpartitioned))
    }
}
