//! Arrow data on its way in: anything that speaks the PyCapsule protocol.
//!
//! Whatever comes out of here may be dropped anywhere (see [`crate::release`]).

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader};

use crate::errors::{consumed_error, input_error};
use crate::{foreign, release};

/// The batches of an Arrow stream. To ask for the next one may take as long as its producer likes.
pub(crate) struct Reader(Box<dyn RecordBatchReader + Send>);

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|batch| batch.map(release::keep))
    }
}

/// One Arrow object.
pub(crate) enum Data {
    Batch(RecordBatch),
    Stream(Reader),
}

fn has(object: &Bound<'_, PyAny>, name: &str) -> bool {
    object.hasattr(name).unwrap_or(false)
}

/// The Arrow object that `data` is; `None` when it is none.
pub(crate) fn open(data: &Bound<'_, PyAny>) -> PyResult<Option<Data>> {
    if has(data, "__arrow_c_array__") {
        let capsules = foreign::call(&data.getattr("__arrow_c_array__")?)?;
        let (schema, array) = capsules.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>()?;
        let batch = PyRecordBatch::from_arrow_pycapsule(&schema, &array)?.into_inner();
        return Ok(Some(Data::Batch(release::keep(batch))));
    }
    if has(data, "__arrow_c_stream__") {
        let capsule = foreign::call(&data.getattr("__arrow_c_stream__")?)?;
        let reader = PyRecordBatchReader::from_arrow_pycapsule(capsule.cast::<PyCapsule>()?);
        let reader = reader.map_err(|error| {
            if error.to_string().contains("already released") { consumed_error(data.py()) } else { error }
        })?;
        return Ok(Some(Data::Stream(Reader(reader.into_reader()?))));
    }
    Ok(None)
}

/// The Arrow object that an item of an iterable is.
pub(crate) fn open_item(item: &Bound<'_, PyAny>) -> PyResult<Data> {
    open(item)?.ok_or_else(|| {
        let kind = item.get_type().name().map_or_else(|_| "something".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "the input yields {kind}, which is no Arrow data; yield objects with __arrow_c_array__ or __arrow_c_stream__, such as record batches or tables"
        ))
    })
}

/// All batches of one Arrow object.
pub(crate) fn read(py: Python<'_>, data: Data) -> PyResult<Vec<RecordBatch>> {
    match data {
        Data::Batch(batch) => Ok(vec![batch]),
        Data::Stream(reader) => {
            let batches = py.detach(|| reader.collect::<Result<Vec<_>, _>>());
            batches.map_err(|error| input_error(py, format!("the input stream failed: {error}")))
        }
    }
}

/// A whole Arrow object as one batch.
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
        let schema = reader.0.schema();
        let batches = reader.collect::<Result<Vec<_>, _>>()?;
        arrow_select::concat::concat_batches(&schema, &batches)
    };
    py.detach(read).map_err(|error| input_error(py, format!("{what} cannot be read: {error}")))
}
