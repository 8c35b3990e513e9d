//! A clock, a waker and a pipeline from a feed to a list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use penstock_memory::coordinator::CoordinatorOptions;
use penstock_memory::{
    ColumnKind, Coordinator, EdgeWriter, Exporter, Layout, LogOptions, MemoryKind, Physical, Run,
    SourceColumns,
};
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::table::Pending;
use penstock_tasks::account::Account;
use penstock_tasks::chain::Chain;
use penstock_tasks::clock::Clock;
use penstock_tasks::context::Context;
use penstock_tasks::error::RunError;
use penstock_tasks::feed::{Feed, Pushed, feed};
use penstock_tasks::inputs::Input;
use penstock_tasks::outlet::{FlushRequest, Judging, Outlet, Readers};
use penstock_tasks::readers::push::PushReader;
use penstock_tasks::sink::{Sink, SinkParts};
use penstock_tasks::source::Source;
use penstock_tasks::step::{Step, Task};
use penstock_tasks::task::OperatorTask;
use penstock_tasks::waker::Waker;
use penstock_tasks::writers::SinkWriter;

/// A clock that is moved by hand.
#[derive(Default)]
pub struct Hand(pub AtomicU64);

impl Clock for Hand {
    fn system_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        self.system_ns()
    }

    fn wall_us(&self) -> i64 {
        0
    }

    fn wall_us_at(&self, _system_ns: u64) -> i64 {
        0
    }
}

/// Remembers that it was woken.
#[derive(Default)]
pub struct Woken(AtomicBool);

impl Woken {
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Waker for Woken {
    fn ring(&self) {
        self.wake();
    }

    fn request_run(&self) {
        self.wake();
    }

    fn set_pending(&self, _pending: Box<dyn Pending>) {}
}

pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, false)]))
}

pub fn batch(values: std::ops::Range<i64>) -> RecordBatch {
    let column = Arc::new(Int64Array::from_iter_values(values)) as _;
    RecordBatch::try_new(schema(), vec![column]).unwrap()
}

/// The values of some batches.
pub fn values(batches: &[RecordBatch]) -> Vec<i64> {
    let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    batches.iter().flat_map(of).collect()
}

/// A feed, the task of a source, an edge, and the task of a sink.
pub struct Pipeline {
    pub feed: Option<Feed>,
    pub source: OperatorTask,
    pub sink: Sink,
    pub source_waker: Arc<Woken>,
    pub sink_waker: Arc<Woken>,
    pub context: Context,
    pub pending: Box<dyn Pending>,
}

/// A pipeline whose source cuts runs of so many rows.
pub fn pipeline(memory: &Coordinator, rows_per_run: usize, writer: Box<dyn SinkWriter>) -> Pipeline {
    let clock: Arc<dyn Clock> = Arc::new(Hand::default());
    let context = Context::new(Arc::clone(&clock), Arc::new(Account::default()), None, Arc::default());
    let (source_waker, sink_waker): (Arc<Woken>, Arc<Woken>) = Default::default();
    let (source_as, sink_as): (Arc<dyn Waker>, Arc<dyn Waker>) =
        (Arc::clone(&source_waker) as _, Arc::clone(&sink_waker) as _);

    let (feed, end) = feed(4, clock);
    end.handle().start();
    let columns = SourceColumns::new(schema(), vec![true]);
    let begin = Arc::new(AtomicBool::new(true));
    let mut source = Source::new(columns, (None, None), rows_per_run, Box::new(PushReader::new(end)), begin);
    source.connect(&source_as);
    let pending = source.pending();

    let wide = ColumnKind { physical: Physical::I64, nullable: false };
    let room = Arc::new(Wanted::new(Arc::clone(&source_as) as _));
    let options = LogOptions::default();
    let layout = Layout::new(vec![wide]);
    let mut edge =
        EdgeWriter::new(MemoryKind::Blocks, layout, &options, memory, Arc::clone(&room) as _).unwrap();
    let reader = edge.join(Arc::clone(&sink_as) as _).unwrap();
    let flush = Arc::new(FlushRequest::new(Arc::clone(&sink_as)));
    let readers = Readers { has_tasks: false, sinks: vec![Arc::clone(&flush)] };
    let outlet =
        Outlet::new((edge, Arc::clone(&room)), vec![0], Judging::AsItStands, readers, Arc::default());
    let mut run = Run::new();
    run.add_slot(Physical::I64);
    let chain = Chain { run, links: Vec::new(), rejected: Arc::default() };
    let inputs = vec![(Input::Source(Box::new(source)), 0)];
    let source = OperatorTask::new(inputs, vec![chain], None, outlet, None);

    let parts = SinkParts {
        output: 0,
        reader,
        stored: vec![Physical::I64],
        exporter: Exporter::charged(schema(), memory.result_account()),
        columns: 1,
        writer,
        room,
        flush,
        profile: Arc::default(),
    };
    let sink = Sink::new(parts, &sink_as);
    Pipeline { feed: Some(feed), source, sink, source_waker, sink_waker, context, pending }
}

impl Pipeline {
    pub fn push(&mut self, batch: RecordBatch) {
        let feed = self.feed.as_mut().expect("the input goes on");
        assert!(matches!(feed.push(batch, Duration::ZERO), Pushed::Taken));
    }

    /// Runs a task until it has nothing to do, and returns its last step.
    fn run(task: &mut dyn Task, context: &Context) -> Result<Step, RunError> {
        for _ in 0..10_000 {
            let step = task.step(context)?;
            if !matches!(step, Step::Worked(_)) {
                return Ok(step);
            }
        }
        panic!("the task goes on for ever");
    }

    pub fn run_source(&mut self) -> Result<Step, RunError> {
        Self::run(&mut self.source, &self.context)
    }

    pub fn run_sink(&mut self) -> Result<Step, RunError> {
        Self::run(&mut self.sink, &self.context)
    }
}

pub fn coordinator() -> Coordinator {
    Coordinator::new(CoordinatorOptions::default()).unwrap()
}
