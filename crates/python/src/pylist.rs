//! Converts rows to plain Python objects, without an Arrow library.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// Returns how many of a unit make a second.
fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Makes temporal objects. Values that Python's classes cannot hold stay whole numbers.
struct Temporal<'py> {
    datetime: Bound<'py, PyModule>,
}

impl<'py> Temporal<'py> {
    fn delta(&self, value: i64, unit: TimeUnit) -> PyResult<Bound<'py, PyAny>> {
        let arguments = PyDict::new(self.datetime.py());
        let name = match unit {
            TimeUnit::Second => "seconds",
            TimeUnit::Millisecond => "milliseconds",
            _ => "microseconds",
        };
        arguments.set_item(name, value)?;
        self.datetime.getattr("timedelta")?.call((), Some(&arguments))
    }

    fn duration(&self, value: i64, unit: TimeUnit) -> PyResult<Bound<'py, PyAny>> {
        let whole = || value.into_bound_py_any(self.datetime.py());
        if unit == TimeUnit::Nanosecond { whole() } else { self.delta(value, unit).or_else(|_| whole()) }
    }

    fn timestamp(&self, value: i64, unit: TimeUnit, zone: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.datetime.py();
        let made = || {
            let utc = self.datetime.getattr("timezone")?.getattr("utc")?;
            let epoch = self.datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
            let instant = epoch.add(self.delta(value, unit)?)?;
            match zone {
                None => {
                    let arguments = PyDict::new(py);
                    arguments.set_item("tzinfo", py.None())?;
                    instant.call_method("replace", (), Some(&arguments))
                }
                Some(name) => match py.import("zoneinfo")?.getattr("ZoneInfo")?.call1((name,)) {
                    Ok(zone) => instant.call_method1("astimezone", (zone,)),
                    Err(_) => Ok(instant), // a zone unknown here: the same instant in UTC
                },
            }
        };
        if unit == TimeUnit::Nanosecond {
            value.into_bound_py_any(py)
        } else {
            made().or_else(|_: PyErr| value.into_bound_py_any(py))
        }
    }

    fn date(&self, days: i64) -> PyResult<Bound<'py, PyAny>> {
        let date =
            self.datetime.getattr("date")?.call_method1("fromordinal", (days.saturating_add(719_163),));
        date.or_else(|_| days.into_bound_py_any(self.datetime.py()))
    }

    fn time(&self, value: i64, unit: TimeUnit) -> PyResult<Bound<'py, PyAny>> {
        let py = self.datetime.py();
        let made = || {
            let midnight = self.datetime.getattr("datetime")?.call1((1970, 1, 1))?;
            midnight.add(self.delta(value, unit)?)?.call_method0("time")
        };
        // Foreign data may hold invalid times: these are returned as numbers.
        if unit == TimeUnit::Nanosecond || !(0..86_400 * per_second(unit)).contains(&value) {
            value.into_bound_py_any(py)
        } else {
            made().or_else(|_: PyErr| value.into_bound_py_any(py))
        }
    }
}

fn value<'py>(
    py: Python<'py>,
    temporal: &Temporal<'py>,
    array: &dyn Array,
    row: usize,
) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($type:ty) => {
            array.as_primitive::<$type>().value(row).into_bound_py_any(py)
        };
    }
    // Temporal columns are read as the integers they are.
    let long = || i64::from_le_bytes(raw(array, row, 8).try_into().unwrap_or_default());
    let short = || i64::from(i32::from_le_bytes(raw(array, row, 4).try_into().unwrap_or_default()));
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Decimal128(_, scale) => {
            let digits = array.as_primitive::<Decimal128Type>().value(row);
            py.import("decimal")?.getattr("Decimal")?.call1((format!("{digits}E{}", -i16::from(*scale)),))
        }
        DataType::Timestamp(unit, zone) => temporal.timestamp(long(), *unit, zone.as_deref()),
        DataType::Duration(unit) => temporal.duration(long(), *unit),
        DataType::Time32(unit) => temporal.time(short(), *unit),
        DataType::Time64(unit) => temporal.time(long(), *unit),
        DataType::Date32 => temporal.date(i64::from(array.as_primitive::<Date32Type>().value(row))),
        DataType::Date64 => {
            temporal.date(array.as_primitive::<Date64Type>().value(row).div_euclid(86_400_000))
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into_bound_py_any(py),
        DataType::Utf8View => array.as_string_view().value(row).into_bound_py_any(py),
        DataType::Binary => Ok(PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any()),
        DataType::LargeBinary => Ok(PyBytes::new(py, array.as_binary::<i64>().value(row)).into_any()),
        DataType::BinaryView => Ok(PyBytes::new(py, array.as_binary_view().value(row)).into_any()),
        other => unreachable!("results have no columns of type {other}"),
    }
}

/// Returns the bytes of one value of a fixed-width column. Exported columns start at offset 0.
fn raw(array: &dyn Array, row: usize, width: usize) -> Vec<u8> {
    let data = array.to_data();
    let start = (data.offset() + row) * width;
    data.buffers()[0].as_slice()[start..start + width].to_vec()
}

/// Converts the first `limit` rows.
pub(crate) fn rows<'py>(
    py: Python<'py>,
    batches: &[RecordBatch],
    limit: usize,
) -> PyResult<Bound<'py, PyList>> {
    let temporal = Temporal { datetime: py.import("datetime")? };
    let list = PyList::empty(py);
    for batch in batches {
        for row in 0..batch.num_rows() {
            if list.len() >= limit {
                return Ok(list);
            }
            let entry = PyDict::new(py);
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                entry.set_item(field.name(), value(py, &temporal, column.as_ref(), row)?)?;
            }
            list.append(entry)?;
        }
    }
    Ok(list)
}
