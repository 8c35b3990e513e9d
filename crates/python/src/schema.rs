//! Arrow schemas, read-only.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use penstock_border::guarded;
use penstock_types::{PlanError, TypeName, describe_field, parse_type, suggest_type};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::to_schema_pycapsule;
use pyo3_arrow::{PyDataType, PySchema};

use crate::arrow::imported;
use crate::errors::plan_error;
use crate::foreign;

/// Names and types of columns.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Schema {
    pub(crate) inner: SchemaRef,
}

/// Reads a type, by its name or as an Arrow type of any library.
fn read_type(py: Python<'_>, column: &str, given: &Bound<'_, PyAny>) -> PyResult<DataType> {
    if let Ok(name) = given.extract::<String>() {
        return parse_type(&name).ok_or_else(|| {
            let hint = suggest_type(&name);
            let message = format!("column \"{column}\": there is no type \"{name}\"{hint}");
            plan_error(py, PlanError::Invalid(message))
        });
    }
    if !given.hasattr("__arrow_c_schema__")? {
        return Err(PyTypeError::new_err(format!(
            "column \"{column}\" has a type name such as \"int64\", or an Arrow type, not {}",
            given.get_type().name()?
        )));
    }
    let capsule = foreign::call(&given.getattr("__arrow_c_schema__")?)?;
    let capsule = capsule.cast::<PyCapsule>()?;
    Ok(imported(py, || PyDataType::from_arrow_pycapsule(capsule))?.into_inner())
}

impl Schema {
    /// Formats all columns, one per line.
    fn text(&self) -> String {
        self.inner.fields().iter().map(|field| describe_field(field)).collect::<Vec<_>>().join("\n")
    }
}

#[guarded]
#[pymethods]
impl Schema {
    /// Imports any Arrow schema.
    #[new]
    fn new(py: Python<'_>, schema: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = foreign::call(&schema.getattr("__arrow_c_schema__")?)?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let read = imported(py, || PySchema::from_arrow_pycapsule(capsule))?;
        Ok(Self { inner: read.into_inner() })
    }

    /// Makes a schema of columns with their types, by name or as Arrow types, and whether they may hold nulls.
    #[staticmethod]
    fn of_fields(py: Python<'_>, fields: Vec<(String, Bound<'_, PyAny>, bool)>) -> PyResult<Self> {
        let fields = fields
            .iter()
            .map(|(name, given, nullable)| Ok(Field::new(name, read_type(py, name, given)?, *nullable)));
        let fields = fields.collect::<PyResult<Vec<_>>>()?;
        Ok(Self { inner: Arc::new(ArrowSchema::new(fields)) })
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[getter]
    fn types(&self) -> Vec<String> {
        self.inner.fields().iter().map(|field| TypeName(field.data_type()).to_string()).collect()
    }

    #[getter]
    fn nullable(&self) -> Vec<bool> {
        self.inner.fields().iter().map(|field| field.is_nullable()).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.inner.as_ref())?)
    }

    fn __len__(&self) -> usize {
        self.inner.fields().len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.inner.fields() == other.get().inner.fields())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.text().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        self.text()
    }
}
