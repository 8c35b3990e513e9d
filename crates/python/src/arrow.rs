//! Imports Arrow data: any object that implements the PyCapsule protocol.
//!
//! Imported batches may be dropped on any thread (see [`crate::release`]).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use penstock_memory::Physical;
use penstock_memory::batch::{decoded, valid_column};
use penstock_types::TypeName;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::ArrayReader;
use pyo3_arrow::{PyArray, PyArrayReader};

use crate::border::caught;
use crate::errors::{consumed_error, input_error};
use crate::{foreign, release};

/// The batches of an Arrow stream. Its producer may take any time for the next one.
pub(crate) struct ArrowReader {
    arrays: Box<dyn ArrayReader + Send>,
    schema: SchemaRef,
}

impl Iterator for ArrowReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = || {
            let array = self.arrays.next()?;
            Some(array.and_then(|array| rows(&array, &self.schema)).map(release::keep))
        };
        caught(next).unwrap_or_else(|text| Some(Err(ArrowError::CDataInterface(text))))
    }
}

/// One Arrow object.
pub(crate) enum Data {
    Batch(RecordBatch),
    Stream(ArrowReader),
}

fn has(object: &Bound<'_, PyAny>, name: &str) -> bool {
    object.hasattr(name).unwrap_or(false)
}

/// Runs an import of foreign data. Data that breaks the rules of Arrow makes the import panic: that is an error here.
pub(crate) fn imported<T>(py: Python<'_>, import: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let text = match caught(import) {
        Ok(Ok(imported)) => return Ok(imported),
        Ok(Err(error)) => error.value(py).to_string(),
        Err(panic) => panic,
    };
    Err(input_error(py, format!("this cannot be read as Arrow data: {text}")))
}

/// Returns the columns of an array of structs, or of a stream of them.
fn columns(data: &Bound<'_, PyAny>, field: &Field) -> PyResult<SchemaRef> {
    match field.data_type() {
        DataType::Struct(fields) => {
            Ok(Arc::new(Schema::new_with_metadata(fields.clone(), field.metadata().clone())))
        }
        other => {
            let kind = data.get_type().name().map_or_else(|_| String::new(), |name| format!(" {name}"));
            let message = format!(
                "this{kind} is one column, of {}, and not rows: give a table, a record batch or an array of structs, for example pyarrow.table({{\"price\": ...}})",
                TypeName(other)
            );
            Err(input_error(data.py(), message))
        }
    }
}

/// Returns the rows of an array of structs.
fn rows(array: &ArrayRef, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let rows = array.as_struct();
    if let Some(row) = rows.nulls().and_then(|nulls| nulls.iter().position(|valid| !valid)) {
        return Err(ArrowError::InvalidArgumentError(format!(
            "row {row} is null as a whole, and a row has columns: drop it, or fill it in"
        )));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), rows.columns().to_vec(), &options)
}

/// Opens `data` as an Arrow object; `None` when it is none.
pub(crate) fn open(data: &Bound<'_, PyAny>) -> PyResult<Option<Data>> {
    let py = data.py();
    if has(data, "__arrow_c_array__") {
        let capsules = foreign::call(&data.getattr("__arrow_c_array__")?)?;
        let (schema, array) = capsules.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>()?;
        let (array, field) = imported(py, || PyArray::from_arrow_pycapsule(&schema, &array))?.into_inner();
        let rows = rows(&array, &columns(data, &field)?);
        let rows = rows.map_err(|error| input_error(py, format!("this cannot be read as rows: {error}")))?;
        return Ok(Some(Data::Batch(release::keep(rows))));
    }
    if has(data, "__arrow_c_stream__") {
        let capsule = foreign::call(&data.getattr("__arrow_c_stream__")?)?;
        let capsule = capsule.cast::<PyCapsule>()?;
        if !foreign::holds_stream(capsule)? {
            return Err(consumed_error(py));
        }
        let reader = imported(py, || PyArrayReader::from_arrow_pycapsule(capsule))?;
        let schema = columns(data, &*reader.field_ref()?)?;
        return Ok(Some(Data::Stream(ArrowReader { arrays: reader.into_reader()?, schema })));
    }
    Ok(None)
}

/// Opens an item of an iterable as an Arrow object.
pub(crate) fn open_item(item: &Bound<'_, PyAny>) -> PyResult<Data> {
    open(item)?.ok_or_else(|| {
        let kind = item.get_type().name().map_or_else(|_| "something".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "the input yields {kind}, which is no Arrow data; yield objects with __arrow_c_array__ or __arrow_c_stream__, such as record batches or tables"
        ))
    })
}

/// Reads all batches of one Arrow object.
pub(crate) fn read(py: Python<'_>, data: Data) -> PyResult<Vec<RecordBatch>> {
    match data {
        Data::Batch(batch) => Ok(vec![batch]),
        Data::Stream(reader) => {
            let batches = py.detach(|| reader.collect::<Result<Vec<_>, _>>());
            batches.map_err(|error| input_error(py, format!("the input stream failed: {error}")))
        }
    }
}

/// Reads a whole Arrow object as one batch.
pub(crate) fn one_batch(data: &Bound<'_, PyAny>, what: &str) -> PyResult<RecordBatch> {
    let py = data.py();
    let reader = match open(data)? {
        Some(Data::Batch(batch)) => return Ok(batch),
        Some(Data::Stream(reader)) => reader,
        None => {
            return Err(PyTypeError::new_err(format!(
                "{what} is anything with __arrow_c_stream__ or __arrow_c_array__, such as a pyarrow.Table or a DataFrame; this is {}",
                data.get_type().name()?
            )));
        }
    };
    let read = || {
        let schema = Arc::clone(&reader.schema);
        let mut batches = reader.collect::<Result<Vec<_>, _>>()?;
        if batches.len() == 1 {
            return Ok(batches.remove(0));
        }
        let batches = batches.iter().map(valid).collect::<Result<Vec<_>, _>>()?;
        arrow_select::concat::concat_batches(&schema, &batches)
    };
    let read = py.detach(|| caught(read)).unwrap_or_else(|panic| Err(ArrowError::CDataInterface(panic)));
    read.map_err(|error| input_error(py, format!("{what} cannot be read: {error}")))
}

/// Checks that a batch keeps the rules of Arrow: others can be neither copied nor read.
pub(crate) fn valid(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let check = |column: &ArrayRef| {
        // Types that the engine passes on without reading them.
        if Physical::of(decoded(column.data_type())).is_none() {
            column.to_data().validate_full()?;
        }
        valid_column(column)
    };
    let columns = batch.columns().iter().map(check).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}
