//! Converts Python values to literals.

use penstock_expr::Literal;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// Returns true if `value` is an instance of `module.name`.
fn is_a(value: &Bound<'_, PyAny>, module: &str, name: &str) -> PyResult<bool> {
    value.is_instance(&value.py().import(module)?.getattr(name)?)
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let number: Option<i128> = value.str()?.to_str()?.parse().ok();
    number
        .filter(|number| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number))
        .map(Literal::Int)
        .ok_or_else(|| {
            PyOverflowError::new_err(format!(
                "{value} does not fit a 64-bit integer; use a float or a Decimal"
            ))
        })
}

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let parts = value.call_method0("as_tuple")?;
    let Ok(exponent) = parts.getattr("exponent")?.extract::<i32>() else {
        return Err(PyValueError::new_err(format!("{value} is not a finite decimal")));
    };
    let mut digits: i128 = 0;
    for digit in parts.getattr("digits")?.cast_into::<PyTuple>()?.iter() {
        let digit: i128 = digit.extract()?;
        digits = digits.checked_mul(10).and_then(|digits| digits.checked_add(digit)).unwrap_or(i128::MAX);
    }
    // 1E+3 has no digits after the point: write it out.
    let (digits, scale) = if exponent > 0 {
        (
            10_i128
                .checked_pow(exponent.unsigned_abs())
                .and_then(|power| digits.checked_mul(power))
                .unwrap_or(i128::MAX),
            0,
        )
    } else {
        (digits, exponent.unsigned_abs())
    };
    if digits >= 10_i128.pow(38) || scale > 38 {
        return Err(PyOverflowError::new_err(format!("{value} has more than 38 digits")));
    }
    let negative: i32 = parts.getattr("sign")?.extract()?;
    Ok(Literal::Decimal { value: if negative == 1 { -digits } else { digits }, scale: scale as i8 })
}

/// Converts a `timedelta` to microseconds.
pub(crate) fn micros(delta: &Bound<'_, PyAny>) -> PyResult<i64> {
    let part = |name: &str| -> PyResult<i128> { delta.getattr(name)?.extract() };
    let total = (part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?;
    i64::try_from(total)
        .map_err(|_| PyOverflowError::new_err(format!("{delta} does not fit 64 bits of microseconds")))
}

fn timestamp(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let module = value.py().import("datetime")?;
    let aware = !value.call_method0("utcoffset")?.is_none();
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let (value, zone) = if aware {
        (value.call_method1("astimezone", (&utc,))?, utc)
    } else {
        (value.clone(), value.py().None().into_bound(value.py()))
    };
    let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
    Ok(Literal::Timestamp { micros: micros(&value.sub(epoch)?)?, aware })
}

/// Converts a Python value to a literal.
pub(crate) fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    if value.is_none() {
        return Ok(Literal::Null);
    }
    // bool is an int, datetime is a date: the narrower class first.
    if value.is_instance_of::<PyBool>() {
        return Ok(Literal::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return integer(value);
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Literal::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Literal::String(value.extract()?));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Literal::Binary(bytes.as_bytes().to_vec()));
    }
    if is_a(value, "decimal", "Decimal")? {
        return decimal(value);
    }
    if is_a(value, "datetime", "datetime")? {
        return timestamp(value);
    }
    if is_a(value, "datetime", "date")? {
        let days: i32 = value.call_method0("toordinal")?.extract()?;
        return Ok(Literal::Date(days - 719_163)); // the ordinal of 1970-01-01
    }
    if is_a(value, "datetime", "timedelta")? {
        return Ok(Literal::Duration(micros(value)?));
    }
    // numpy scalars and the like speak Python's number protocol.
    if value.hasattr("__index__")? {
        return integer(&value.call_method0("__index__")?);
    }
    Err(PyTypeError::new_err(format!(
        "a literal is None, bool, int, float, str, bytes, Decimal, datetime, date or timedelta; this is {}",
        value.get_type().name()?
    )))
}
