//! Python functions that the engine calls with batches.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use penstock_engine::OutsideError;
use penstock_engine::plan::{BatchFunction, Function as Inner, Step, WatermarkFunction, Watermarks};
use pyo3::prelude::*;

use crate::arrow::one_batch;
use crate::batch::Batch;
use crate::errors::function_gone;
use crate::foreign;
use crate::raised::Raised;
use crate::slot::Slot;

/// Returns the slots of the functions that belong to these steps alone (SLOT-1).
pub(crate) fn own_slots(visit_own: impl FnOnce(&mut dyn FnMut(&dyn Step))) -> Vec<Arc<Slot>> {
    let mut slots = Vec::new();
    visit_own(&mut |step| {
        if let Some(function) = step.function()
            && Arc::strong_count(&function.0) == 1
        {
            let function = function.0.as_any().downcast_ref::<PyFunction>();
            slots.extend(function.map(|function| Arc::clone(&function.function)));
        }
        if let Some(stream) = step.as_stream()
            && let Some(Watermarks::Function(function)) = &stream.watermark
            && Arc::strong_count(function) == 1
        {
            let function = function.as_any().downcast_ref::<PyWatermarks>();
            slots.extend(function.map(|function| Arc::clone(&function.function)));
        }
    });
    slots
}

/// A Python function that a plan holds, or a query that calls it.
pub(crate) struct PyFunction {
    name: String,
    declares_all: bool,
    function: Arc<Slot>,
}

impl PyFunction {
    /// Wraps a function, under the name that messages use.
    pub(crate) fn wrap(name: String, function: &Bound<'_, PyAny>) -> Inner {
        let declares_all = function.getattr("declares_all").is_ok_and(|all| all.is_truthy().unwrap_or(false));
        Inner(Arc::new(Self { name, declares_all, function: Slot::shared(function) }))
    }

    /// Copies the function for one query, which shows it to the collector. The plan keeps its own.
    pub(crate) fn for_query(py: Python<'_>, function: &Inner) -> Option<(Inner, Arc<Slot>)> {
        let function = function.0.as_any().downcast_ref::<Self>()?;
        let (name, declares_all) = (function.name.clone(), function.declares_all);
        let slot = Slot::shared(&function.function.get(py)?);
        let own = Self { name, declares_all, function: Arc::clone(&slot) };
        Some((Inner(Arc::new(own)), slot))
    }

    /// Returns the Python object of a function of a plan, with its name.
    pub(crate) fn unwrap<'py>(py: Python<'py>, function: &Inner) -> Option<(String, Bound<'py, PyAny>)> {
        let function = function.0.as_any().downcast_ref::<Self>()?;
        Some((function.name.clone(), function.function.get(py)?))
    }
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// A Python function that returns watermarks, held by a plan or by a query that calls it.
pub(crate) struct PyWatermarks {
    name: String,
    identity: u64,
    function: Arc<Slot>,
}

impl PyWatermarks {
    /// Wraps a function, under the name that messages use.
    pub(crate) fn wrap(name: String, function: &Bound<'_, PyAny>) -> Watermarks {
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        Watermarks::Function(Arc::new(Self { name, identity, function: Slot::shared(function) }))
    }

    /// Copies the function for one query or shared source, which shows it to the collector. The plan keeps its own.
    pub(crate) fn for_query(py: Python<'_>, watermarks: &Watermarks) -> Option<(Watermarks, Arc<Slot>)> {
        let Watermarks::Function(function) = watermarks else { return None };
        let function = function.as_any().downcast_ref::<Self>()?;
        let slot = Slot::shared(&function.function.get(py)?);
        let own =
            Self { name: function.name.clone(), identity: function.identity, function: Arc::clone(&slot) };
        Some((Watermarks::Function(Arc::new(own)), slot))
    }
}

impl WatermarkFunction for PyWatermarks {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, batch: &RecordBatch) -> Result<Option<i64>, OutsideError> {
        let called = Python::try_attach(|py| {
            let call = || {
                let function = self.function.get(py).ok_or_else(|| function_gone(py))?;
                let batch = Bound::new(py, Batch::new(batch.clone()))?;
                foreign::call_with(&function, &batch)?.extract::<Option<i64>>()
            };
            call().map_err(|error| Box::new(Raised::new(py, error)) as OutsideError)
        });
        called.unwrap_or_else(|| Err("the interpreter has ended".into()))
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl BatchFunction for PyFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn declares_all(&self) -> bool {
        self.declares_all
    }

    fn call(&self, batch: RecordBatch) -> Result<RecordBatch, OutsideError> {
        let called = Python::try_attach(|py| {
            let call = || {
                let function = self.function.get(py).ok_or_else(|| function_gone(py))?;
                let batch = Bound::new(py, Batch::new(batch))?;
                let back = foreign::call_with(&function, &batch)?;
                one_batch(&back, "what the function gives back")
            };
            call().map_err(|error| Box::new(Raised::new(py, error)) as OutsideError)
        });
        called.unwrap_or_else(|| Err("the interpreter has ended".into()))
    }

    fn describe(&self, error: &OutsideError) -> String {
        let Some(raised) = error.downcast_ref::<Raised>() else { return error.to_string() };
        Python::try_attach(|py| raised.value(py)?.repr().map(|text| text.to_string()).ok())
            .flatten()
            .unwrap_or_else(|| error.to_string())
    }

    fn blame(&self, error: OutsideError, row: &RecordBatch) -> OutsideError {
        if let Some(raised) = error.downcast_ref::<Raised>() {
            Python::try_attach(|py| {
                let rows = crate::pylist::rows(py, std::slice::from_ref(row), 1).ok()?;
                let note = format!("penstock: {} failed for the row {}", self.name, rows.get_item(0).ok()?);
                raised.value(py)?.call_method1("add_note", (note,)).ok().map(|_| ())
            });
        }
        error
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
