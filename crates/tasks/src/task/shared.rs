//! The task of a shared source: a stream that queries join and leave.

use super::OperatorTask;
use crate::context::Context;
use crate::error::RunError;
use crate::shared::Joins;
use crate::step::{Numbers, Step, Task};

/// The task of a shared source.
pub struct SharedTask {
    task: OperatorTask,
    joins: Joins,
}

impl SharedTask {
    /// Lets queries join what `task` writes.
    pub fn new(task: OperatorTask, joins: Joins) -> Self {
        Self { task, joins }
    }
}

impl Task for SharedTask {
    fn step(&mut self, context: &Context) -> Result<Step, RunError> {
        let Self { task, joins } = self;
        if joins.are_waiting() {
            joins.admit(task.has_ended, |wake| task.join(wake));
        }
        let step = task.step(context)?;
        if step == Step::Blocked && !task.is_waiting_for_memory() && !task.is_waiting_for_letters() {
            return Ok(joins.wait(context.clock().system_ns()));
        }
        joins.go_on(context.clock());
        Ok(step)
    }

    fn numbers(&self, now_ns: u64) -> Numbers {
        self.task.numbers(now_ns)
    }

    fn trim(&mut self) {
        self.task.trim();
    }
}
