//! The specification of a windowed aggregation.

use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf, Physical, Run, SlotId};
use penstock_progress::Windows;

use crate::aggregates::AccumulatorFactory;

/// The slots of one input.
#[derive(Clone, Debug)]
pub struct WindowPort {
    /// Event time, 64 bits wide.
    pub time: SlotId,
    /// The watermark just before each row; empty in runs that cannot hold a late row.
    pub watermark: SlotId,
    /// The keys.
    pub keys: Vec<SlotId>,
    /// The aggregates that this input feeds, and the slot of each; `None` counts rows.
    pub inputs: Vec<(usize, Option<SlotId>)>,
}

/// A windowed aggregation.
#[derive(Clone, Debug)]
pub struct WindowSpec {
    /// The windows.
    pub windows: Windows,
    /// Ticks for which an emitted window may still be corrected. 0 for sessions.
    pub allowed_lateness: i64,
    /// The inputs. Each aggregate belongs to one of them.
    pub ports: Vec<WindowPort>,
    /// The storage of the keys, on all ports.
    pub keys: Vec<Physical>,
    /// The types of the keys.
    pub key_types: Vec<DataType>,
    /// The aggregates, in the order of the result columns.
    pub factories: Vec<AccumulatorFactory>,
    /// The storage of a window's bounds in the results: 64 bits, or 32 for days.
    pub bounds: Physical,
    /// True if result rows carry an event time of their own.
    pub emits_time: bool,
}

/// A specification, and data derived from it.
pub(super) struct ResolvedSpec {
    pub(super) spec: WindowSpec,
    /// Per port: the slots that are read in every run.
    pub(super) reads: Vec<Vec<SlotId>>,
    /// Per port: true if an aggregate needs the time of rows.
    pub(super) timed: Vec<bool>,
}

impl ResolvedSpec {
    pub(super) fn new(spec: WindowSpec) -> Self {
        debug_assert!(spec.allowed_lateness >= 0);
        debug_assert!(
            spec.allowed_lateness == 0 || matches!(spec.windows, Windows::Aligned(_)),
            "the plan refuses corrections of sessions"
        );
        debug_assert_eq!(spec.keys.len(), spec.key_types.len());
        debug_assert_eq!(
            spec.ports.iter().map(|port| port.inputs.len()).sum::<usize>(),
            spec.factories.len(),
            "each aggregate belongs to one port"
        );
        let timed: Vec<bool> = spec
            .ports
            .iter()
            .map(|port| port.inputs.iter().any(|(aggregate, _)| spec.factories[*aggregate].needs_time()))
            .collect();
        let reads = spec.ports.iter().zip(&timed).map(|(port, timed)| {
            let mut reads = port.keys.clone();
            reads.extend(port.inputs.iter().filter_map(|(_, slot)| *slot));
            reads.extend(timed.then_some(port.time));
            reads.sort_unstable();
            reads.dedup();
            reads
        });
        Self { reads: reads.collect(), timed, spec }
    }

    pub(super) fn corrects(&self) -> bool {
        self.spec.allowed_lateness > 0
    }

    /// Returns the columns of a run whose slots were made ready.
    pub(super) fn rows<'a>(&self, port: usize, run: &'a Run) -> PortRows<'a> {
        self.rows_with(port, run.len(), |slot| run.column(slot))
    }

    /// Copies some rows of a run whose slots were made ready.
    pub(super) fn gather(&self, port: usize, run: &Run, rows: &[u32]) -> Gathered {
        let columns = self.reads[port].iter().map(|&slot| {
            let column = run.column(slot);
            let mut gathered = ColumnBuf::new(column.values.physical());
            gathered.gather(column, rows);
            (slot, gathered)
        });
        Gathered { columns: columns.collect(), rows: rows.len() }
    }

    /// Returns the columns of copied rows.
    pub(super) fn gathered<'a>(&self, port: usize, gathered: &'a Gathered) -> PortRows<'a> {
        self.rows_with(port, gathered.rows, |slot| {
            let found = gathered.columns.binary_search_by_key(&slot, |(slot, _)| *slot);
            gathered.columns[found.expect("every slot that is read was gathered")].1.as_column()
        })
    }

    fn rows_with<'a>(&self, port: usize, len: usize, column: impl Fn(SlotId) -> Column<'a>) -> PortRows<'a> {
        let columns = &self.spec.ports[port];
        PortRows {
            keys: columns.keys.iter().map(|&slot| column(slot)).collect(),
            inputs: columns.inputs.iter().map(|&(aggregate, slot)| (aggregate, slot.map(&column))).collect(),
            times: self.timed[port].then(|| column(columns.time).fixed()),
            len,
        }
    }
}

/// Rows of one port, as an aggregation reads them.
pub(super) struct PortRows<'a> {
    pub(super) keys: Vec<Column<'a>>,
    pub(super) inputs: Vec<(usize, Option<Column<'a>>)>,
    pub(super) times: Option<&'a [i64]>,
    pub(super) len: usize,
}

/// Columns by their slots, in order.
pub(super) struct Gathered {
    columns: Vec<(SlotId, ColumnBuf)>,
    rows: usize,
}
