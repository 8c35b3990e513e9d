//! An Arrow schema, read-only.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use penstock_types::{COMMON_TYPES, PlanError, TypeName, closest, describe_field, parse_type};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyMapping};
use pyo3_arrow::PySchema;
use pyo3_arrow::ffi::to_schema_pycapsule;

use crate::errors::plan_error;

/// Names and types of columns.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Schema {
    pub(crate) inner: SchemaRef,
}

fn from_mapping(py: Python<'_>, mapping: &Bound<'_, PyMapping>) -> PyResult<ArrowSchema> {
    let mut fields = Vec::new();
    for item in mapping.items()?.iter() {
        let (name, type_name): (String, String) = item.extract().map_err(|_| {
            PyTypeError::new_err(
                "a schema given as a mapping takes column names to type names, such as {\"x\": \"int64\"}",
            )
        })?;
        let data_type = parse_type(&type_name).ok_or_else(|| {
            let hint = closest(&type_name, COMMON_TYPES).map_or_else(
                || format!("; some types are: {}", COMMON_TYPES.join(", ")),
                |near| format!(" (did you mean \"{near}\"?)"),
            );
            plan_error(
                py,
                PlanError::Invalid(format!("column \"{name}\": there is no type \"{type_name}\"{hint}")),
            )
        })?;
        fields.push(Field::new(name, data_type, true));
    }
    Ok(ArrowSchema::new(fields))
}

#[pymethods]
impl Schema {
    #[new]
    fn new(py: Python<'_>, schema: &Bound<'_, PyAny>) -> PyResult<Self> {
        if schema.hasattr("__arrow_c_schema__")? {
            let inner = schema.extract::<PySchema>()?.into_inner();
            return Ok(Self { inner });
        }
        match schema.cast::<PyMapping>() {
            Ok(mapping) => Ok(Self { inner: Arc::new(from_mapping(py, mapping)?) }),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a schema is a pyarrow.Schema, anything else with __arrow_c_schema__, or a mapping of column names to type names; this is {}",
                schema.get_type().name()?
            ))),
        }
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
        self.__repr__().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        self.inner.fields().iter().map(|field| describe_field(field)).collect::<Vec<_>>().join("\n")
    }
}
