//! Plans run to their end, on an engine of their own.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

use std::sync::Arc;

use arrow_array::RecordBatch;
use penstock_engine::{
    Chaining, Engine, EngineOptions, Mode, Output, Plan, PolicyKind, RunError, RunFailure, RunOptions,
};
use penstock_memory::MemoryKind;

/// Runs a plan in a certain way.
pub fn run_as(plan: &Plan, options: &EngineOptions, batches: &[RecordBatch]) -> Result<Output, RunError> {
    match Engine::run(plan, options.clone(), batches) {
        Ok(output) => Ok(output),
        Err(RunFailure::Start(error)) => panic!("{error}"),
        // The engine and the query are gone, and with them all other owners of the error.
        Err(RunFailure::Run(error)) => Err(Arc::try_unwrap(error).unwrap()),
    }
}

/// Runs a plan with one worker.
pub fn run_with(plan: &Plan, options: &RunOptions, batches: &[RecordBatch]) -> Result<Output, RunError> {
    run_as(
        plan,
        &EngineOptions { workers: Some(1), run: options.clone(), ..EngineOptions::default() },
        batches,
    )
}

/// Every policy, mode, memory and chaining, with two workers.
pub fn every_way() -> Vec<EngineOptions> {
    let mut ways = Vec::new();
    for (_, policy) in PolicyKind::NAMES {
        for (_, mode) in Mode::NAMES {
            for (_, memory) in MemoryKind::NAMES {
                for (_, chain) in Chaining::NAMES {
                    let run = RunOptions { memory, chain, ..RunOptions::default() };
                    ways.push(EngineOptions {
                        workers: Some(2),
                        policy,
                        mode,
                        run,
                        ..EngineOptions::default()
                    });
                }
            }
        }
    }
    ways
}
