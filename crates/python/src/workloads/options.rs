//! Reads the options of a workload: each by its name, in any order, with defaults for the rest.

use std::fmt;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyMapping};

use super::{choose, unknown};

/// The options that were given for one workload.
pub(super) struct Given<'py> {
    workload: String,
    pub(super) seed: u64,
    values: Vec<(String, Bound<'py, PyAny>)>,
    /// The values that options had before they were set.
    pub(super) defaults: Vec<(&'static str, Py<PyAny>)>,
    py: Python<'py>,
}

impl<'py> Given<'py> {
    pub(super) fn new(workload: &str, seed: u64, options: &Bound<'py, PyMapping>) -> PyResult<Self> {
        let mut values = Vec::new();
        for item in options.items()?.iter() {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let name: String = name
                .extract()
                .map_err(|_| PyTypeError::new_err(format!("options have names, and {name} is none")))?;
            values.push((name, value));
        }
        Ok(Self { workload: workload.to_owned(), seed, values, defaults: Vec::new(), py: options.py() })
    }

    /// Sets the given options among `settings`, which are all that exist.
    pub(super) fn set(&mut self, settings: &mut [(&'static str, &mut dyn OptionSetting)]) -> PyResult<()> {
        for (name, setting) in settings.iter() {
            self.defaults.push((*name, setting.value(self.py)?));
        }
        let places: Vec<(&'static str, usize)> =
            settings.iter().enumerate().map(|(place, (name, _))| (*name, place)).collect();
        for (name, value) in &self.values {
            let place = choose(&format!("an option of {}", self.workload), name, &places).map_err(unknown)?;
            settings[place].1.set(name, value)?;
        }
        Ok(())
    }
}

/// Reads the options of a workload's module. All fields have to be named here; where users know
/// one by another name, that follows the field. Options that are no fields come last, as variables.
macro_rules! read_options {
    ($given:ident, $module:ident::$options:ident { $($field:ident $(: $name:ident)?),* } $(, $more:ident)*) => {{
        let mut options = $module::$options { seed: $given.seed, ..$module::$options::default() };
        let $module::$options { seed: _, $($field $(: $name)?),* } = &mut options;
        $given.set(&mut [
            $(read_options!(@setting $field $($name)?),)*
            $((stringify!($more), &mut $more),)*
        ])?;
        options
    }};
    (@setting $field:ident) => { (stringify!($field), $field) };
    (@setting $field:ident $name:ident) => { (stringify!($name), $name) };
}
pub(super) use read_options;

/// An option of one type.
pub(super) trait OptionSetting {
    fn set(&mut self, option: &str, value: &Bound<'_, PyAny>) -> PyResult<()>;

    fn value(&self, py: Python<'_>) -> PyResult<Py<PyAny>>;
}

/// Reads the whole number that an argument or an option is set to.
pub(super) fn number(option: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    read(option, value, "a whole number", format_args!("between 0 and {}", u64::MAX))
}

/// Reads a number. One that its type cannot hold is out of bounds like one that a workload refuses; `fitting` says
/// what fits. A bool is no number here, although Python takes it for one.
fn read<'py, T: for<'a> FromPyObject<'a, 'py>>(
    option: &str,
    value: &Bound<'py, PyAny>,
    kind: &str,
    fitting: fmt::Arguments<'_>,
) -> PyResult<T> {
    if value.is_instance_of::<PyBool>() {
        return Err(wrong_type(option, kind, value));
    }
    value.extract::<T>().map_err(|error| {
        if error.into().is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(format!("{option} must be {fitting}, got {value}"))
        } else {
            wrong_type(option, kind, value)
        }
    })
}

fn wrong_type(option: &str, kind: &str, value: &Bound<'_, PyAny>) -> PyErr {
    match value.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!("{option} must be {kind}, not {name}: {value}")),
        Err(error) => error,
    }
}

macro_rules! whole_setting {
    ($($type:ty),*) => {$(
        impl OptionSetting for $type {
            fn set(&mut self, option: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
                let (least, most) = (<$type>::MIN, <$type>::MAX);
                *self = read(option, value, "a whole number", format_args!("between {least} and {most}"))?;
                Ok(())
            }

            fn value(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                Ok(self.into_pyobject(py)?.into_any().unbind())
            }
        }
    )*};
}
whole_setting!(u16, u64, i64);

impl OptionSetting for f64 {
    fn set(&mut self, option: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        *self = read(option, value, "a number", format_args!("a finite number"))?;
        Ok(())
    }

    fn value(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.into_pyobject(py)?.into_any().unbind())
    }
}

impl OptionSetting for bool {
    fn set(&mut self, option: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        *self = value.extract().map_err(|_| wrong_type(option, "True or False", value))?;
        Ok(())
    }

    fn value(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(PyBool::new(py, *self).to_owned().into_any().unbind())
    }
}
