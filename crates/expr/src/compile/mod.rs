//! Compiles what a user wrote into what runs: resolves names to slots, settles types, inserts conversions.
//!
//! The rules, in short: integers meet in the wider type; a literal takes the type of the column beside it when it
//! fits; an integer with a float is a float; decimals meet at the finer scale, times and durations at the finer unit.
//! Any other combination is refused here, by name.
//!
//! - [`constant`]: literals; [`unify`]: where types meet
//! - [`binary`], [`cast`], [`call`]: operators, casts, functions

mod binary;
mod call;
mod cast;
mod constant;
mod unify;

use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use penstock_memory::{Physical, SlotId};
use penstock_types::{PlanError, TypeName};

use crate::compile::binary::{arithmetic, comparison, logic};
use crate::compile::call::call;
use crate::compile::cast::cast;
use crate::compile::constant::{constant, number};
use crate::compile::unify::unify;
use crate::expr::{BinaryOp, Expr, Kind, UnaryOp};
use crate::label::Label;
use crate::literal::Literal;
use crate::node::CompiledNode;
use crate::scaled::UNSCALED;
use crate::typing::{integer, is_float};

/// Maps the columns of a schema to the slots of a chain.
#[derive(Clone, Copy)]
pub struct ExprScope<'a> {
    /// The schema that names are looked up in.
    pub schema: &'a Schema,
    /// The slot of each of its columns.
    pub slots: &'a [SlotId],
}

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    pub(crate) root: CompiledNode,
    /// The type of its result.
    pub data_type: DataType,
    /// True if its result may contain nulls.
    pub nullable: bool,
    slots: Vec<SlotId>,
}

impl Expression {
    /// Returns the slots it reads.
    pub fn slots(&self) -> &[SlotId] {
        &self.slots
    }

    /// Returns the slot it is, if it computes nothing.
    pub fn as_slot(&self) -> Option<SlotId> {
        if let CompiledNode::Slot(slot) = self.root { Some(slot) } else { None }
    }

    /// Returns the storage of its values.
    pub fn physical(&self) -> Physical {
        Physical::of(&self.data_type).expect("types are checked when the plan is built")
    }
}

/// Checks `expr` against the columns in scope and compiles it.
pub fn compile(expr: &Expr, scope: ExprScope<'_>) -> Result<Expression, PlanError> {
    let typed = Compiler { scope }.typed(expr)?;
    if typed.data_type == DataType::Null {
        return Err(PlanError::mismatch(
            expr,
            "a null on its own has no type; compare or combine it with a column, or use is_null()",
        ));
    }
    let mut slots = Vec::new();
    typed.node.slots(&mut slots);
    Ok(Expression { root: typed.node, data_type: typed.data_type, nullable: typed.nullable, slots })
}

pub(crate) struct Typed {
    pub(crate) node: CompiledNode,
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
    pub(crate) literal: Option<Literal>,
}

impl Typed {
    /// Returns a null without a type yet.
    fn null() -> Self {
        Self {
            node: CompiledNode::Null,
            data_type: DataType::Null,
            nullable: true,
            literal: Some(Literal::Null),
        }
    }
}

struct Compiler<'a> {
    scope: ExprScope<'a>,
}

pub(crate) fn physical(data_type: &DataType) -> Physical {
    Physical::of(data_type).expect("expressions compute supported types only")
}

pub(crate) fn label(expr: &Expr, data_type: &DataType) -> Arc<Label> {
    Arc::new(Label { text: expr.to_string(), type_name: TypeName(data_type).to_string() })
}

impl Compiler<'_> {
    fn typed(&self, expr: &Expr) -> Result<Typed, PlanError> {
        match expr.kind() {
            Kind::Column(name) => {
                let fields = self.scope.schema.fields();
                let Some((index, field)) = fields.find(name) else {
                    return Err(PlanError::unknown_column(
                        name,
                        fields.iter().map(|field| field.name().as_str()),
                    ));
                };
                Ok(Typed {
                    node: CompiledNode::Slot(self.scope.slots[index]),
                    data_type: field.data_type().clone(),
                    nullable: field.is_nullable(),
                    literal: None,
                })
            }
            Kind::Literal(literal) => {
                let data_type = literal.data_type();
                if let DataType::Decimal128(precision, scale) = data_type
                    && (precision > 38 || scale.unsigned_abs() > 38)
                {
                    return Err(PlanError::mismatch(expr, "a decimal has at most 38 digits"));
                }
                let node = if *literal == Literal::Null {
                    CompiledNode::Null
                } else {
                    constant(literal, &data_type).ok_or_else(|| {
                        PlanError::mismatch(expr, "the value does not fit any type the engine computes with")
                    })?
                };
                let nullable = *literal == Literal::Null;
                Ok(Typed { node, data_type, nullable, literal: Some(literal.clone()) })
            }
            Kind::Alias(input, _) => self.typed(input),
            Kind::Unary(op, input) => self.unary(expr, *op, input),
            Kind::Cast(input, to) => cast(expr, self.typed(input)?, to),
            Kind::When(branches, otherwise) => self.when(expr, branches, otherwise.as_ref()),
            Kind::Call(function, inputs) => {
                let inputs = inputs.iter().map(|input| self.typed(input)).collect::<Result<_, _>>()?;
                call(expr, *function, inputs)
            }
            Kind::Binary(op, left, right) => {
                let (left, right) = self.meet(self.typed(left)?, self.typed(right)?);
                match op {
                    BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => logic(expr, *op, left, right),
                    BinaryOp::Add
                    | BinaryOp::Subtract
                    | BinaryOp::Multiply
                    | BinaryOp::Divide
                    | BinaryOp::FloorDivide
                    | BinaryOp::Modulo => arithmetic(expr, *op, left, right),
                    _ => comparison(expr, *op, left, right),
                }
            }
        }
    }

    /// Converts a literal to the type of the other side when its value is of that type.
    fn meet(&self, left: Typed, right: Typed) -> (Typed, Typed) {
        let adapt = |side: Typed, other: &DataType| {
            let Some(literal) = &side.literal else { return side };
            match Physical::of(other).and_then(|_| constant(literal, other)) {
                Some(node) => Typed { node, data_type: other.clone(), ..side },
                None => side,
            }
        };
        let (left_type, right_type) = (left.data_type.clone(), right.data_type.clone());
        if right.literal.is_some() {
            let right = adapt(right, &left_type);
            let left = if left.literal == Some(Literal::Null) { adapt(left, &right.data_type) } else { left };
            return (left, right);
        }
        (adapt(left, &right_type), right)
    }

    fn when(
        &self,
        expr: &Expr,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<Typed, PlanError> {
        let mut conditions = Vec::with_capacity(branches.len());
        let mut values = Vec::with_capacity(branches.len() + 1);
        for (condition, value) in branches {
            let typed = self.typed(condition)?;
            if !matches!(typed.data_type, DataType::Boolean | DataType::Null) {
                let reason =
                    format!("when() needs a bool, but {condition} is {}", TypeName(&typed.data_type));
                return Err(PlanError::mismatch(expr, reason));
            }
            conditions.push(typed.node);
            values.push(self.typed(value)?);
        }
        values.push(otherwise.map_or_else(|| Ok(Typed::null()), |value| self.typed(value))?);
        let (values, data_type) = unify(expr, values)?;
        let nullable = values.iter().any(|value| value.nullable);
        if data_type == DataType::Null {
            return Ok(Typed::null());
        }
        let mut values: Vec<CompiledNode> = values.into_iter().map(|value| value.node).collect();
        let otherwise = Box::new(values.pop().expect("the default value was pushed last"));
        let branches = conditions.into_iter().zip(values).collect();
        let node = CompiledNode::When { on: physical(&data_type), branches, otherwise };
        Ok(Typed { node, data_type, nullable, literal: None })
    }

    fn unary(&self, expr: &Expr, op: UnaryOp, input: &Expr) -> Result<Typed, PlanError> {
        let input = self.typed(input)?;
        let wrong = |wanted: &str| {
            PlanError::mismatch(expr, format!("the operand is {}, but {wanted}", TypeName(&input.data_type)))
        };
        match op {
            UnaryOp::IsNull | UnaryOp::IsNotNull => Ok(Typed {
                node: CompiledNode::IsNull {
                    input: Box::new(input.node),
                    wanted: u8::from(op == UnaryOp::IsNull),
                },
                data_type: DataType::Boolean,
                nullable: false,
                literal: None,
            }),
            UnaryOp::Not if input.data_type == DataType::Boolean => Ok(Typed {
                node: CompiledNode::Not(Box::new(input.node)),
                data_type: DataType::Boolean,
                nullable: input.nullable,
                literal: None,
            }),
            UnaryOp::Not => Err(wrong("~ needs a bool; compare first, as in ~(col(\"x\") > 0)")),
            UnaryOp::Negate => {
                let data_type = input.data_type.clone();
                let signed = integer(&data_type).is_some_and(|(signed, _)| signed);
                let float = is_float(&data_type);
                if !(signed || float || matches!(data_type, DataType::Decimal128(..) | DataType::Duration(_)))
                {
                    return Err(wrong("- needs a signed number or a duration"));
                }
                // 0 - x is checked like every subtraction; floats are multiplied, so that -(0.0) is -0.0.
                let (op, left) = if float {
                    (BinaryOp::Multiply, constant::float(-1.0, &data_type))
                } else {
                    (BinaryOp::Subtract, number(0, &data_type))
                };
                let label = label(expr, &data_type);
                Ok(Typed {
                    node: CompiledNode::Arithmetic {
                        op,
                        on: physical(&data_type),
                        left: Box::new(left),
                        right: Box::new(input.node),
                        scale: UNSCALED,
                        label,
                    },
                    data_type,
                    nullable: input.nullable,
                    literal: None,
                })
            }
        }
    }
}
