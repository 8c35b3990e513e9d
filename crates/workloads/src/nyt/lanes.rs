//! One random lane for each drawn quantity. The numbers are part of the data set (WORKLOAD-3): never reuse or renumber
//! them.

pub(super) const TAXI: u64 = 100;
pub(super) const TAXI_HIGH: u64 = 101;
pub(super) const TAXI_LOW: u64 = 102;
pub(super) const VENDOR: u64 = 103;
pub(super) const DRIVER: u64 = 104;
pub(super) const DRIVER_HIGH: u64 = 105;
pub(super) const DRIVER_LOW: u64 = 106;
pub(super) const DISTANCE: u64 = 107;
pub(super) const SPEED: u64 = 108;
pub(super) const CENTRE: u64 = 109;
pub(super) const EAST: u64 = 110;
pub(super) const NORTH: u64 = 111;
pub(super) const IS_HOT: u64 = 112;
pub(super) const DETOUR: u64 = 113;
pub(super) const DIRECTION: u64 = 114;
pub(super) const END_IS_KNOWN: u64 = 115;
pub(super) const PAYMENT: u64 = 116;
pub(super) const SURCHARGE: u64 = 117;
pub(super) const TIP: u64 = 118;
pub(super) const TOLL: u64 = 119;
/// And the two after it.
pub(super) const TIMES: u64 = 120;
