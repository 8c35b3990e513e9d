//! What the handles of an engine, its queries and its threads share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use penstock_memory::Coordinator;

use super::registry::Registry;
use crate::executors::Executor;
use crate::options::EngineOptions;
use penstock_tasks::functions::FunctionToken;

/// The shared part of an engine.
pub(super) struct Core {
    pub(super) options: EngineOptions,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) coordinator: Coordinator,
    pub(super) registry: Registry,
    /// The right of its tasks to call into the interpreter.
    pub(super) functions: Arc<FunctionToken>,
    /// Its number, unique in the process.
    pub(super) number: u64,
    pub(super) next_id: AtomicU64,
    pub(super) stopped: AtomicBool,
    pub(super) started_ns: u64,
}
