//! Expressions as users write them.
//!
//! EXPR-1. No tree is deeper than [`MAX_DEPTH`] or has more than [`MAX_NODES`] nodes, counted as often as they occur:
//!     the constructors refuse larger ones, so that all other code may walk a tree by recursion.

use std::sync::Arc;

use arrow_schema::DataType;
use penstock_types::PlanError;

use crate::function::ScalarFunction;
use crate::literal::Literal;

/// Deepest nesting of an expression.
pub const MAX_DEPTH: u16 = 128;
/// Most nodes of an expression. Clones share their nodes, so a few lines of code could build more than any machine
/// could walk.
pub const MAX_NODES: u32 = 1 << 16;

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the names of the operators")]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Xor,
}

const BINARY: [(BinaryOp, &str); 15] = [
    (BinaryOp::Add, "+"),
    (BinaryOp::Subtract, "-"),
    (BinaryOp::Multiply, "*"),
    (BinaryOp::Divide, "/"),
    (BinaryOp::FloorDivide, "//"),
    (BinaryOp::Modulo, "%"),
    (BinaryOp::Equal, "=="),
    (BinaryOp::NotEqual, "!="),
    (BinaryOp::Less, "<"),
    (BinaryOp::LessEqual, "<="),
    (BinaryOp::Greater, ">"),
    (BinaryOp::GreaterEqual, ">="),
    (BinaryOp::And, "&"),
    (BinaryOp::Or, "|"),
    (BinaryOp::Xor, "^"),
];

impl BinaryOp {
    /// Returns the operator as it is written in Python.
    pub fn symbol(self) -> &'static str {
        BINARY
            .iter()
            .find(|(op, _)| *op == self)
            .map(|(_, symbol)| *symbol)
            .expect("every operator is in the table")
    }

    /// Returns the operator written like that.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        BINARY.iter().find(|(_, known)| *known == symbol).map(|(op, _)| *op)
    }
}

/// An operator on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the names of the operators")]
pub enum UnaryOp {
    Negate,
    Not,
    IsNull,
    IsNotNull,
}

const UNARY: [(UnaryOp, &str); 4] = [
    (UnaryOp::Negate, "-"),
    (UnaryOp::Not, "~"),
    (UnaryOp::IsNull, "is_null"),
    (UnaryOp::IsNotNull, "is_not_null"),
];

impl UnaryOp {
    /// Returns the operator's name.
    pub fn symbol(self) -> &'static str {
        UNARY
            .iter()
            .find(|(op, _)| *op == self)
            .map(|(_, symbol)| *symbol)
            .expect("every operator is in the table")
    }

    /// Returns the operator of that name.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        UNARY.iter().find(|(_, known)| *known == symbol).map(|(op, _)| *op)
    }
}

/// The root of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A column, by name.
    Column(String),
    /// A value.
    Literal(Literal),
    /// An operator between two expressions.
    Binary(BinaryOp, Expr, Expr),
    /// An operator on one expression.
    Unary(UnaryOp, Expr),
    /// An expression with another name.
    Alias(Expr, String),
    /// An expression cast to another type.
    Cast(Expr, DataType),
    /// The value of the first condition that holds; otherwise the last, or null.
    When(Vec<(Expr, Expr)>, Option<Expr>),
    /// A function of as many expressions as it takes.
    Call(ScalarFunction, Vec<Expr>),
}

/// An immutable expression; clones share the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    kind: Arc<Kind>,
    depth: u16,
    nodes: u32,
}

impl Expr {
    fn new(kind: Kind, below: u16, nodes: u32) -> Result<Self, PlanError> {
        if below >= MAX_DEPTH || nodes >= MAX_NODES {
            return Err(PlanError::Invalid(format!(
                "an expression is nested more than {MAX_DEPTH} deep, or has more than {MAX_NODES} parts; compute parts of it with with_columns() first, or pass several predicates to filter() in turn"
            )));
        }
        Ok(Self { kind: Arc::new(kind), depth: below + 1, nodes: nodes + 1 })
    }

    fn leaf(kind: Kind) -> Self {
        Self { kind: Arc::new(kind), depth: 1, nodes: 1 }
    }

    /// Makes the column of that name.
    pub fn column(name: impl Into<String>) -> Self {
        Self::leaf(Kind::Column(name.into()))
    }

    /// Makes a value.
    pub fn literal(value: Literal) -> Self {
        Self::leaf(Kind::Literal(value))
    }

    /// Makes `self op other`.
    pub fn binary(self, op: BinaryOp, other: Self) -> Result<Self, PlanError> {
        let (depth, nodes) = (self.depth.max(other.depth), self.nodes.saturating_add(other.nodes));
        Self::new(Kind::Binary(op, self, other), depth, nodes)
    }

    /// Makes `op self`.
    pub fn unary(self, op: UnaryOp) -> Result<Self, PlanError> {
        let (depth, nodes) = (self.depth, self.nodes);
        Self::new(Kind::Unary(op, self), depth, nodes)
    }

    /// Gives the expression another name.
    pub fn alias(self, name: impl Into<String>) -> Result<Self, PlanError> {
        let (depth, nodes) = (self.depth, self.nodes);
        Self::new(Kind::Alias(self, name.into()), depth, nodes)
    }

    /// Casts the values to another type.
    pub fn cast(self, data_type: DataType) -> Result<Self, PlanError> {
        let (depth, nodes) = (self.depth, self.nodes);
        Self::new(Kind::Cast(self, data_type), depth, nodes)
    }

    /// Makes the value of the first pair whose condition holds; `otherwise`, or null, where none does.
    pub fn when(branches: Vec<(Self, Self)>, otherwise: Option<Self>) -> Result<Self, PlanError> {
        if branches.is_empty() {
            return Err(PlanError::Invalid("when() needs a condition and a value".to_owned()));
        }
        let parts = branches.iter().flat_map(|(condition, value)| [condition, value]).chain(&otherwise);
        let (depth, nodes) = Self::below(parts);
        Self::new(Kind::When(branches, otherwise), depth, nodes)
    }

    /// Makes `function` of these expressions.
    pub fn call(function: ScalarFunction, inputs: Vec<Self>) -> Result<Self, PlanError> {
        let arity = function.arity();
        if !arity.contains(&inputs.len()) {
            return Err(PlanError::Invalid(format!(
                "{} takes {}{} expressions, not {}",
                function.name(),
                if arity.start() == arity.end() { "" } else { "at least " },
                arity.start(),
                inputs.len()
            )));
        }
        let (depth, nodes) = Self::below(&inputs);
        Self::new(Kind::Call(function, inputs), depth, nodes)
    }

    /// Returns the depth and the number of nodes of the operands of a node.
    fn below<'a>(parts: impl IntoIterator<Item = &'a Self>) -> (u16, u32) {
        parts.into_iter().fold((0, 0), |(depth, nodes): (u16, u32), part| {
            (depth.max(part.depth), nodes.saturating_add(part.nodes))
        })
    }

    /// Returns the root.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns the name of the result column: the alias, the column's own name, or the expression as it prints.
    pub fn output_name(&self) -> String {
        match self.kind() {
            Kind::Alias(_, name) | Kind::Column(name) => name.clone(),
            _ => self.to_string(),
        }
    }

    /// Returns the name of the column, if the expression is only a column, aliased or not.
    pub fn as_column(&self) -> Option<&str> {
        match self.kind() {
            Kind::Column(name) => Some(name),
            Kind::Alias(inner, _) => inner.as_column(),
            _ => None,
        }
    }
}
