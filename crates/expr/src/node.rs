//! The steps of a compiled expression.

use std::sync::Arc;

use arrow_schema::DataType;
use penstock_memory::{ColumnBuf, Physical, SlotId};

use crate::expr::BinaryOp;
use crate::label::{Label, MapLabel};
use crate::map::Map;
use crate::matching::Match;
use crate::scaled::Scale;

/// One step of a compiled expression.
#[derive(Debug)]
pub(crate) enum CompiledNode {
    Slot(SlotId),
    /// A column of one row, used for all rows.
    Constant(ColumnBuf),
    Null,
    Arithmetic {
        op: BinaryOp,
        on: Physical,
        left: Box<CompiledNode>,
        right: Box<CompiledNode>,
        scale: Scale,
        label: Arc<Label>,
    },
    Compare {
        op: BinaryOp,
        on: Physical,
        left: Box<CompiledNode>,
        right: Box<CompiledNode>,
        scale: Scale,
    },
    Logic {
        op: BinaryOp,
        left: Box<CompiledNode>,
        right: Box<CompiledNode>,
    },
    Not(Box<CompiledNode>),
    IsNull {
        input: Box<CompiledNode>,
        wanted: u8,
    },
    /// A function of each value, null where the value is. Only maps that may fail have a label.
    Map {
        map: Map,
        input: Box<CompiledNode>,
        given: Option<MapLabel>,
    },
    /// Searches texts for others.
    Match {
        op: Match,
        left: Box<CompiledNode>,
        right: Box<CompiledNode>,
    },
    When {
        on: Physical,
        branches: Vec<(CompiledNode, CompiledNode)>,
        otherwise: Box<CompiledNode>,
    },
    /// The first value that is not null.
    Coalesce {
        on: Physical,
        inputs: Vec<CompiledNode>,
    },
}

impl CompiledNode {
    /// Makes a map that cannot fail.
    pub(crate) fn map(map: Map, input: Self) -> Self {
        Self::Map { map, input: Box::new(input), given: None }
    }

    /// Makes a map that may fail, over values of type `from`.
    pub(crate) fn checked(map: Map, input: Self, label: &Arc<Label>, from: &DataType) -> Self {
        let given = Some(MapLabel { label: Arc::clone(label), from: from.clone() });
        Self::Map { map, input: Box::new(input), given }
    }

    /// Adds the slots that are read, each once.
    pub(crate) fn slots(&self, slots: &mut Vec<SlotId>) {
        match self {
            Self::Slot(slot) => {
                if !slots.contains(slot) {
                    slots.push(*slot);
                }
            }
            Self::Constant(_) | Self::Null => {}
            Self::Arithmetic { left, right, .. }
            | Self::Compare { left, right, .. }
            | Self::Logic { left, right, .. }
            | Self::Match { left, right, .. } => {
                left.slots(slots);
                right.slots(slots);
            }
            Self::Not(input) | Self::IsNull { input, .. } | Self::Map { input, .. } => input.slots(slots),
            Self::When { branches, otherwise, .. } => {
                for (condition, value) in branches {
                    condition.slots(slots);
                    value.slots(slots);
                }
                otherwise.slots(slots);
            }
            Self::Coalesce { inputs, .. } => inputs.iter().for_each(|input| input.slots(slots)),
        }
    }
}
