//! The serialised form of an expression: a flat list in postfix order.
//!
//! A list does not nest, so hostile text can exceed neither the depth limit of a JSON reader nor the stack; the bound
//! is EXPR-1, checked while the tree is rebuilt.

use penstock_types::TypeName;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cast_type::read_type;
use crate::expr::{BinaryOp, Expr, Kind, UnaryOp};
use crate::function::ScalarFunction;
use crate::literal::Literal;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PostfixToken {
    Column(String),
    Literal(Literal),
    Binary(String),
    Unary(String),
    Alias(String),
    Cast(String),
    /// The number of pairs of a condition and a value, and whether a default follows.
    When {
        branches: usize,
        otherwise: bool,
    },
    Function {
        name: String,
        inputs: usize,
    },
}

fn write(expr: &Expr, tokens: &mut Vec<PostfixToken>) {
    match expr.kind() {
        Kind::Column(name) => tokens.push(PostfixToken::Column(name.clone())),
        Kind::Literal(value) => tokens.push(PostfixToken::Literal(value.clone())),
        Kind::Binary(op, left, right) => {
            write(left, tokens);
            write(right, tokens);
            tokens.push(PostfixToken::Binary(op.symbol().to_owned()));
        }
        Kind::Unary(op, input) => {
            write(input, tokens);
            tokens.push(PostfixToken::Unary(op.symbol().to_owned()));
        }
        Kind::Alias(input, name) => {
            write(input, tokens);
            tokens.push(PostfixToken::Alias(name.clone()));
        }
        Kind::Cast(input, data_type) => {
            write(input, tokens);
            tokens.push(PostfixToken::Cast(TypeName(data_type).to_string()));
        }
        Kind::When(branches, otherwise) => {
            for (condition, value) in branches {
                write(condition, tokens);
                write(value, tokens);
            }
            if let Some(otherwise) = otherwise {
                write(otherwise, tokens);
            }
            tokens.push(PostfixToken::When { branches: branches.len(), otherwise: otherwise.is_some() });
        }
        Kind::Call(function, inputs) => {
            for input in inputs {
                write(input, tokens);
            }
            tokens.push(PostfixToken::Function { name: function.name().to_owned(), inputs: inputs.len() });
        }
    }
}

fn read(tokens: Vec<PostfixToken>) -> Result<Expr, String> {
    let mut stack: Vec<Expr> = Vec::new();
    for token in tokens {
        let mut take = |count: usize| {
            let rest = stack.len().checked_sub(count).ok_or("an operator has too few operands")?;
            Ok::<_, String>(stack.split_off(rest).into_iter())
        };
        let one = |mut taken: std::vec::IntoIter<Expr>| taken.next().expect("exactly that many were taken");
        let expr = match token {
            PostfixToken::Column(name) => Ok(Expr::column(name)),
            PostfixToken::Literal(value) => Ok(Expr::literal(value)),
            PostfixToken::Binary(symbol) => {
                let op = BinaryOp::from_symbol(&symbol).ok_or(format!("unknown operator {symbol:?}"))?;
                let right = one(take(1)?);
                one(take(1)?).binary(op, right)
            }
            PostfixToken::Unary(symbol) => {
                let op = UnaryOp::from_symbol(&symbol).ok_or(format!("unknown operator {symbol:?}"))?;
                one(take(1)?).unary(op)
            }
            PostfixToken::Alias(name) => one(take(1)?).alias(name),
            PostfixToken::Cast(name) => match read_type(&name) {
                Ok(data_type) => one(take(1)?).cast(data_type),
                Err(error) => Err(error),
            },
            PostfixToken::When { branches, otherwise } => {
                let otherwise = if otherwise { take(1)?.next() } else { None };
                let parts = take(branches.saturating_mul(2))?.collect::<Vec<_>>();
                let pairs = parts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
                Expr::when(pairs.collect(), otherwise)
            }
            PostfixToken::Function { name, inputs } => match ScalarFunction::from_name(&name) {
                Ok(function) => Expr::call(function, take(inputs)?.collect()),
                Err(error) => Err(error),
            },
        };
        stack.push(expr.map_err(|error| error.to_string())?);
    }
    let expr = stack.pop().ok_or("an expression is empty")?;
    if stack.is_empty() { Ok(expr) } else { Err("an expression has operands without an operator".to_owned()) }
}

impl Serialize for Expr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tokens = Vec::new();
        write(self, &mut tokens);
        tokens.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Vec::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
