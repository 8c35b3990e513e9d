//! What a lane hands to the merging task.

use penstock_memory::Signal;
use penstock_operators::Stateful;
use penstock_queue::log::Work;

use super::way::Carried;
use crate::charge::Charged;

/// A part of the state of a lane.
pub enum Handover {
    /// What a watermark closes, of rows that arrived by then.
    State {
        /// The state.
        state: Box<dyn Stateful>,
        /// The watermark.
        watermark: i64,
        /// When the rows arrived that the watermark was read off.
        arrived_ns: u64,
        /// Its charge.
        charged: Charged,
    },
    /// A signal of the source.
    Signal(Signal),
    /// Everything that is left.
    End {
        /// The state.
        state: Box<dyn Stateful>,
        /// When the last watermark arrived.
        arrived_ns: u64,
        /// Its charge.
        charged: Charged,
    },
}

impl Handover {
    fn state(&self) -> Option<&dyn Stateful> {
        match self {
            Self::State { state, .. } | Self::End { state, .. } => Some(&**state),
            Self::Signal(_) => None,
        }
    }

    /// Returns its charge, if it has state.
    pub fn charged(&self) -> Option<&Charged> {
        match self {
            Self::State { charged, .. } | Self::End { charged, .. } => Some(charged),
            Self::Signal(_) => None,
        }
    }
}

impl Carried for Handover {
    /// Counts as many rows as it has keys, and a signal: the merging task looks at each in any case.
    fn work(&self) -> Work {
        Work { rows: self.state().map_or(0, |state| state.keys().max(1) as u64), signals: 1 }
    }

    fn arrived_ns(&self) -> u64 {
        match self {
            Self::State { arrived_ns, .. } | Self::End { arrived_ns, .. } => *arrived_ns,
            Self::Signal(_) => 0,
        }
    }
}
