//! The serialised form of an expression: a flat list in postfix order.
//!
//! A list does not nest, so neither the depth limit of a JSON reader nor the stack of whoever reads
//! hostile text sets a bound; the bound is E1, checked while the tree is put together again.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::expr::{BinaryOp, Expr, Kind, UnaryOp};
use crate::literal::Literal;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Token {
    Column(String),
    Literal(Literal),
    Binary(String),
    Unary(String),
    Alias(String),
}

fn write(expr: &Expr, tokens: &mut Vec<Token>) {
    match expr.kind() {
        Kind::Column(name) => tokens.push(Token::Column(name.clone())),
        Kind::Literal(value) => tokens.push(Token::Literal(value.clone())),
        Kind::Binary(op, left, right) => {
            write(left, tokens);
            write(right, tokens);
            tokens.push(Token::Binary(op.symbol().to_owned()));
        }
        Kind::Unary(op, input) => {
            write(input, tokens);
            tokens.push(Token::Unary(op.symbol().to_owned()));
        }
        Kind::Alias(input, name) => {
            write(input, tokens);
            tokens.push(Token::Alias(name.clone()));
        }
    }
}

fn read(tokens: Vec<Token>) -> Result<Expr, String> {
    let mut stack: Vec<Expr> = Vec::new();
    for token in tokens {
        let mut pop = || stack.pop().ok_or("an operator has too few operands");
        let expr = match token {
            Token::Column(name) => Ok(Expr::column(name)),
            Token::Literal(value) => Ok(Expr::literal(value)),
            Token::Binary(symbol) => {
                let op = BinaryOp::from_symbol(&symbol).ok_or(format!("unknown operator {symbol:?}"))?;
                let right = pop()?;
                pop()?.binary(op, right)
            }
            Token::Unary(symbol) => {
                let op = UnaryOp::from_symbol(&symbol).ok_or(format!("unknown operator {symbol:?}"))?;
                pop()?.unary(op)
            }
            Token::Alias(name) => pop()?.alias(name),
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
