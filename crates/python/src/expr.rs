//! Expressions and aggregates.

use penstock_border::guarded;
use penstock_engine::Aggregate as PlanAggregate;
use penstock_expr::{BinaryOp, Expr as Tree, ScalarFunction, UnaryOp, read_type};
use penstock_operators::aggregates::AggregateKind;
use penstock_types::closest;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::plan_error;
use crate::literal::literal;

/// An expression over columns.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Expr {
    pub(crate) tree: Tree,
}

#[guarded]
#[pymethods]
impl Expr {
    #[staticmethod]
    fn column(name: String) -> Self {
        Self { tree: Tree::column(name) }
    }

    #[staticmethod]
    #[pyo3(name = "literal")]
    fn from_value(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { tree: Tree::literal(literal(value)?) })
    }

    fn binary(&self, py: Python<'_>, op: &str, other: &Self) -> PyResult<Self> {
        let op = BinaryOp::from_symbol(op)
            .ok_or_else(|| PyValueError::new_err(format!("unknown operator {op}")))?;
        let tree = self.tree.clone().binary(op, other.tree.clone()).map_err(|error| plan_error(py, error))?;
        Ok(Self { tree })
    }

    fn unary(&self, py: Python<'_>, op: &str) -> PyResult<Self> {
        let op = UnaryOp::from_symbol(op)
            .ok_or_else(|| PyValueError::new_err(format!("unknown operator {op}")))?;
        Ok(Self { tree: self.tree.clone().unary(op).map_err(|error| plan_error(py, error))? })
    }

    fn alias(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        Ok(Self { tree: self.tree.clone().alias(name).map_err(|error| plan_error(py, error))? })
    }

    fn cast(&self, py: Python<'_>, type_name: &str) -> PyResult<Self> {
        let tree = read_type(type_name).and_then(|data_type| self.tree.clone().cast(data_type));
        Ok(Self { tree: tree.map_err(|error| plan_error(py, error))? })
    }

    /// Returns the value of the first condition that holds, or `otherwise`.
    #[staticmethod]
    #[pyo3(signature = (branches, otherwise))]
    fn when(
        py: Python<'_>,
        branches: Vec<(Py<Self>, Py<Self>)>,
        otherwise: Option<Py<Self>>,
    ) -> PyResult<Self> {
        let tree = |expr: &Py<Self>| expr.get().tree.clone();
        let branches = branches.iter().map(|(condition, value)| (tree(condition), tree(value))).collect();
        let made = Tree::when(branches, otherwise.as_ref().map(tree));
        Ok(Self { tree: made.map_err(|error| plan_error(py, error))? })
    }

    /// Calls the function of that name.
    #[staticmethod]
    fn call(py: Python<'_>, name: &str, inputs: Vec<Py<Self>>) -> PyResult<Self> {
        let inputs = inputs.iter().map(|input| input.get().tree.clone()).collect();
        let made = ScalarFunction::from_name(name).and_then(|function| Tree::call(function, inputs));
        Ok(Self { tree: made.map_err(|error| plan_error(py, error))? })
    }

    fn output_name(&self) -> String {
        self.tree.output_name()
    }

    fn __repr__(&self) -> String {
        self.tree.to_string()
    }
}

/// An aggregate to compute per key and window.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Aggregate {
    pub(crate) inner: PlanAggregate,
}

#[guarded]
#[pymethods]
impl Aggregate {
    #[new]
    #[pyo3(signature = (kind, input, name))]
    fn new(kind: &str, input: Option<&Bound<'_, Expr>>, name: Option<String>) -> PyResult<Self> {
        let known = AggregateKind::from_name(kind).ok_or_else(|| {
            let hint = closest(kind, AggregateKind::names()).map(|near| format!("; did you mean {near}?"));
            PyValueError::new_err(format!("there is no aggregate {kind}{}", hint.unwrap_or_default()))
        })?;
        let input = input.map(|input| input.get().tree.clone());
        Ok(Self { inner: PlanAggregate { kind: known, input, name } })
    }

    fn alias(&self, name: String) -> Self {
        Self { inner: PlanAggregate { name: Some(name), ..self.inner.clone() } }
    }

    fn output_name(&self) -> String {
        self.inner.output_name()
    }

    fn __repr__(&self) -> String {
        self.inner.to_string()
    }
}
