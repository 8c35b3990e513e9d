//! One random lane for each drawn quantity. The numbers are part of the data set (WORKLOAD-3): never reuse or renumber
//! them.

pub(super) const JOB: u64 = 200;
pub(super) const JOB_ID: u64 = 201;
pub(super) const TASK: u64 = 202;
pub(super) const MACHINE: u64 = 203;
pub(super) const MACHINE_ID: u64 = 204;
pub(super) const IS_PLACED: u64 = 205;
pub(super) const FAILS: u64 = 206;
pub(super) const EVENT: u64 = 207;
pub(super) const USER: u64 = 208;
pub(super) const CATEGORY: u64 = 209;
pub(super) const PRIORITY: u64 = 210;
pub(super) const CPU: u64 = 211;
pub(super) const RAM: u64 = 212;
pub(super) const DISK: u64 = 213;
pub(super) const CONSTRAINTS: u64 = 214;
/// And the two after it.
pub(super) const TIMES: u64 = 215;
