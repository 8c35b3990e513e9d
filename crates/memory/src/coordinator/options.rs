//! The options of the memory.

use crate::platform::Platform;

/// The budget where the machine does not report how much memory it has.
const DEFAULT_BUDGET_BYTES: usize = 2 << 30;
/// How far a writer may run ahead of its readers: as long as rows stay in the cache that cores share, a longer log
/// only adds delay. From `cargo bench -p penstock-benches --bench memory -- caps`: flat between 4 and 16 MiB.
const DEFAULT_LOG_CAP_BYTES: usize = 8 << 20;

/// The options of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinatorOptions {
    /// Bytes for all logs and all state together. Half of the machine's memory by default.
    pub budget_bytes: usize,
    /// Bytes that a single log may grow to.
    pub log_cap_bytes: usize,
    /// The way memory is obtained.
    pub platform: Platform,
}

impl Default for CoordinatorOptions {
    fn default() -> Self {
        let platform = Platform::native();
        Self {
            budget_bytes: platform.memory_bytes().map_or(DEFAULT_BUDGET_BYTES, |bytes| bytes / 2),
            log_cap_bytes: DEFAULT_LOG_CAP_BYTES,
            platform,
        }
    }
}
