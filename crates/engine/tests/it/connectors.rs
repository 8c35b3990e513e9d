//! A reader and a writer that the engine does not know: nothing lists the kinds of inputs and outputs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_engine::plan::WatermarkFunction;
use penstock_engine::{Input, Plan, RunError, Sink};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_memory::Parcel;
use penstock_queue::log::Work;
use penstock_scheduler::table::Pending;
use penstock_tasks::account::SourceCounts;
use penstock_tasks::context::Context;
use penstock_tasks::readers::{Arrived, Polled, PolledBatch, Position, SeekError, SourceReader};
use penstock_tasks::waker::Waker;
use penstock_tasks::writers::SinkWriter;
use penstock_types::{OutsideError, Span};

use crate::running::every_way;

fn schema() -> Schema {
    Schema::new(vec![Field::new("x", DataType::Int64, false)])
}

/// Gives out the numbers below an end, and waits once after each batch.
struct Numbers {
    next: u64,
    end: u64,
    waits: bool,
    left: Arc<AtomicU64>,
    waker: Option<Arc<dyn Waker>>,
}

struct Left(Arc<AtomicU64>);

impl Pending for Left {
    fn work(&self) -> Work {
        Work { rows: self.0.load(Ordering::Relaxed), signals: 1 }
    }

    fn arrived_ns(&self) -> Option<u64> {
        None
    }
}

impl SourceReader for Numbers {
    fn connect(&mut self, waker: &Arc<dyn Waker>, _counts: &Arc<SourceCounts>) {
        self.waker = Some(Arc::clone(waker));
    }

    fn watermark_by(&mut self, _function: Option<&Arc<dyn WatermarkFunction>>) -> Result<(), OutsideError> {
        Ok(())
    }

    fn poll(&mut self, context: &Context) -> Result<Polled, RunError> {
        if self.next == self.end {
            return Ok(Polled::Ended);
        }
        self.waits = !self.waits;
        if self.waits {
            self.waker.as_ref().unwrap().ring();
            return Ok(Polled::Pending);
        }
        let until = self.end.min(self.next + 7);
        let numbers = Int64Array::from_iter_values((self.next..until).map(|number| number as i64));
        self.next = until;
        Ok(Polled::Batch(PolledBatch {
            rows: RecordBatch::try_from_iter([("x", Arc::new(numbers) as _)]).unwrap(),
            position: Position(until),
            arrived_ns: context.clock().system_ns(),
            arrived_us: context.clock().wall_us(),
            offset: 0,
            watermark: None,
        }))
    }

    fn take(&mut self, _rows: usize) -> Arrived {
        Arrived { first_ns: 0, last_ns: 0 }
    }

    fn acknowledge(&mut self, rows: u64) {
        self.left.fetch_sub(rows, Ordering::Relaxed);
    }

    fn seek(&mut self, position: Position) -> Result<(), SeekError> {
        if position.0 > self.end {
            return Err(SeekError::BehindEnd { position, rows: self.end });
        }
        self.next = position.0;
        Ok(())
    }

    fn pending(&self) -> Box<dyn Pending> {
        Box::new(Left(Arc::clone(&self.left)))
    }
}

/// Adds numbers up, and remembers that it was flushed.
#[derive(Clone, Default)]
struct Sum(Arc<Mutex<(i64, bool)>>);

impl SinkWriter for Sum {
    fn write(&mut self, parcel: Parcel) -> Result<Option<Parcel>, RunError> {
        let numbers = parcel.batch().column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
        self.0.lock().unwrap().0 += numbers;
        Ok(None)
    }

    fn flush(&mut self) -> Result<bool, RunError> {
        self.0.lock().unwrap().1 = true;
        Ok(true)
    }
}

#[test]
fn a_query_reads_and_writes_by_what_it_is_given() {
    let plan = Plan::stream(&schema(), None, Span::Ticks(0)).unwrap();
    let large = Expr::column("x").binary(BinaryOp::Greater, Expr::literal(Literal::Int(49))).unwrap();
    let plan = plan.filter(large).unwrap();
    for options in every_way() {
        let engine = penstock_engine::Engine::start(options).unwrap();
        let (left, sum) = (Arc::new(AtomicU64::new(100)), Sum::default());
        let mut numbers = Numbers { next: 0, end: 100, waits: false, left: Arc::clone(&left), waker: None };
        numbers.seek(Position(3)).unwrap();
        left.store(97, Ordering::Relaxed);
        let query = engine.submit(&plan, Input::reader(numbers), Sink::writer(sum.clone()), None).unwrap();
        assert!(query.wait(std::time::Duration::from_secs(30)));
        assert!(query.error().is_none(), "{:?}", query.error());
        assert_eq!(*sum.0.lock().unwrap(), ((50..100).sum(), true));
        assert_eq!((query.metrics().rows.rows_in, left.load(Ordering::Relaxed)), (97, 0));
    }
}
