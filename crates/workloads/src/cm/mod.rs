//! CM, cluster monitoring: the events of the tasks of a computing cluster, after Google's trace of 2011.
//!
//! A row is an event of a task. A few jobs have most of the events. The columns, none of them ever null, are those of
//! the trace, 64 bytes in a row:
//!
//! | column        | values                                                                             |
//! |---------------|------------------------------------------------------------------------------------|
//! | `timestamp`   | milliseconds; row r is at `floor(r * 1000 / rate)`, see [`CmOptions`] for steps and disorder     |
//! | `job`         | by Zipf's law                                                                        |
//! | `task`        | number of the task within its job: up to 4000, fewer in jobs with few events         |
//! | `machine`     | one of [`MACHINES`]; -1 for tasks without one: all that are submitted and most that are killed |
//! | `event_type`  | 0 submit, 1 schedule, 2 evict, 3 fail, 4 finish, 5 kill                              |
//! | `user`        | of the job, 0..512                                                                   |
//! | `category`    | of the job, 0..4, mostly 0                                                           |
//! | `priority`    | of the job, 0..11                                                                    |
//! | `cpu`, `ram`, `disk` | the request of each task of the job, as a share of the largest machine        |
//! | `constraints` | of the job, 0 or 1                                                                   |
//!
//! ```
//! use penstock_workloads::Generator;
//! use penstock_workloads::cm::{Cm, CmOptions};
//!
//! let cm = Cm::new(CmOptions { seed: 42, ..CmOptions::default() })?;
//! let whole = cm.generate(0..1_000)?;
//! let tail = cm.generate(600..1_000)?;
//! assert_eq!(whole.slice(600, 400), tail);
//! # Ok::<(), penstock_workloads::WorkloadError>(())
//! ```

mod jobs;
mod lanes;
mod options;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Float32Array, Int32Array, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

pub use options::CmOptions;

use crate::random::RandomLane;
use crate::shapes::{draws_of, is_among};
use crate::times::RowTimes;
use crate::zipf::Zipf;
use crate::{Buffers, Generator, WorkloadError};
use jobs::Job;

/// The largest [`CmOptions::jobs`].
pub const MAX_JOBS: u16 = 50_000;
/// Machines of the cluster.
pub const MACHINES: u32 = 12_500;
/// The `event_type` that CM2 keeps: a task has failed.
pub const FAIL: i32 = 3;

const SUBMIT: i32 = 0;
const KILL: i32 = 5;
/// The other event types, and their counts in 1000 events that are no failures.
const EVENTS: [(i32, usize); 5] = [(SUBMIT, 328), (1, 326), (2, 12), (4, 274), (KILL, 60)];
/// Of 1000 killed tasks, this many have a machine.
const KILLED_ON_MACHINE: u64 = 284;

/// Each machine id is drawn from this many numbers of its own.
const MACHINE_STEP: u64 = 499_999;
/// For tasks without a machine.
const NO_MACHINE: i64 = -1;

/// Returns the columns of the events.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let long = |name: &str| Field::new(name, DataType::Int64, false);
        let short = |name: &str| Field::new(name, DataType::Int32, false);
        let share = |name: &str| Field::new(name, DataType::Float32, false);
        Arc::new(Schema::new(vec![
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Millisecond, None), false),
            long("job"),
            long("task"),
            long("machine"),
            short("event_type"),
            short("user"),
            short("category"),
            short("priority"),
            share("cpu"),
            share("ram"),
            share("disk"),
            short("constraints"),
        ]))
    });
    SCHEMA.clone()
}

/// The events of one set of options. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Cm {
    options: CmOptions,
    model: Arc<ClusterModel>,
}

#[derive(Debug)]
struct ClusterModel {
    seed: u64,
    times: RowTimes,
    zipf: Zipf,
    /// By rank: the first is the busiest.
    jobs: Vec<Job>,
    fails: u64,
    /// One for each thousandth of the events that are no failures.
    events: Vec<i32>,
}

impl Cm {
    /// Creates the data set that `options` describe.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: CmOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let seed = options.seed;
        let model = ClusterModel {
            seed,
            times: RowTimes::new(seed, lanes::TIMES, 0, options.pace()),
            zipf: Zipf::new(options.jobs, options.zipf),
            jobs: (0..options.jobs.into()).map(|rank| Job::new(seed, rank)).collect(),
            fails: draws_of(options.fail_share),
            events: EVENTS.into_iter().flat_map(|(event, n)| std::iter::repeat_n(event, n)).collect(),
        };
        Ok(Self { options, model: Arc::new(model) })
    }

    /// Returns the options of this data set.
    pub fn options(&self) -> &CmOptions {
        &self.options
    }
}

impl Generator for Cm {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.model.times.check_rows(rows)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let model = &*self.model;
        let jobs = model.jobs(rows.clone());
        let events = model.event_type(rows.clone(), buffers);
        let task = model.task(&jobs, rows.clone(), buffers);
        let machine = model.machine(&events, rows.clone(), buffers);
        let long = |numbers: Vec<i64>| Arc::new(Int64Array::from(numbers)) as ArrayRef;
        let short = |of: fn(&Job) -> i32, buffers: &mut Buffers| {
            Arc::new(Int32Array::from(buffers.filled(jobs.iter().map(|job| of(job))))) as ArrayRef
        };
        let share = |of: fn(&Job) -> f32, buffers: &mut Buffers| {
            Arc::new(Float32Array::from(buffers.filled(jobs.iter().map(|job| of(job))))) as ArrayRef
        };
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::from(model.times.column(rows, buffers))),
            long(buffers.filled(jobs.iter().map(|job| job.id))),
            long(task),
            long(machine),
            Arc::new(Int32Array::from(events)),
            short(|job| job.user, buffers),
            short(|job| job.category, buffers),
            short(|job| job.priority, buffers),
            share(|job| job.cpu, buffers),
            share(|job| job.ram, buffers),
            share(|job| job.disk, buffers),
            short(|job| job.constraints, buffers),
        ];
        RecordBatch::try_new(schema(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}

impl ClusterModel {
    fn jobs(&self, rows: Range<u64>) -> Vec<&Job> {
        let lane = self.lane(lanes::JOB);
        rows.map(|row| &self.jobs[self.zipf.pick(lane.bits(row)) as usize]).collect()
    }

    fn task(&self, jobs: &[&Job], rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.lane(lanes::TASK);
        buffers.filled(jobs.iter().zip(rows).map(|(job, row)| lane.below(row, job.tasks) as i64))
    }

    fn event_type(&self, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i32> {
        let (fails, event) = (self.lane(lanes::FAILS), self.lane(lanes::EVENT));
        buffers.filled(rows.map(|row| {
            let other = self.events[event.below(row, 1_000) as usize];
            if is_among(fails.bits(row), self.fails) { FAIL } else { other }
        }))
    }

    fn machine(&self, events: &[i32], rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let (machine, id) = (self.lane(lanes::MACHINE), self.lane(lanes::MACHINE_ID));
        let is_placed = self.lane(lanes::IS_PLACED);
        let id_of = |(&event, row): (&i32, u64)| {
            let is_placed = match event {
                SUBMIT => false,
                KILL => is_placed.below(row, 1_000) < KILLED_ON_MACHINE,
                _ => true,
            };
            let machine = machine.below(row, MACHINES.into());
            let id = 1 + machine * MACHINE_STEP + id.below(machine, MACHINE_STEP);
            if is_placed { id as i64 } else { NO_MACHINE }
        };
        buffers.filled(events.iter().zip(rows).map(id_of))
    }

    fn lane(&self, lane: u64) -> RandomLane {
        RandomLane::new(self.seed, lane)
    }
}
