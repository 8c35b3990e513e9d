//! Casts, as chains of maps.
//!
//! No step wraps or makes a value null: a value that the type cannot hold is an error. Digits that the type cannot
//! hold are cut off: towards zero for numbers and durations, towards the past for times.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use penstock_memory::Physical;
use penstock_types::{PlanError, TypeName};

use crate::compile::constant::constant;
use crate::compile::{Typed, label, physical};
use crate::conversion::Rounding;
use crate::expr::Expr;
use crate::label::Label;
use crate::literal::Literal;
use crate::map::Map;
use crate::node::CompiledNode;
use crate::typing::{
    finer, integer, is_binary, is_float, is_string, per_day, stored_range, unit_of, units_in, whole_range,
};
use crate::zone::Zone;

/// Compiles `input` cast to `to`.
pub(crate) fn cast(expr: &Expr, input: Typed, to: &DataType) -> Result<Typed, PlanError> {
    let Typed { node, data_type: from, nullable, literal } = input;
    let typed = |node| Ok(Typed { node, data_type: to.clone(), nullable, literal: None });
    let stored_alike = from == *to || is_string(&from) && is_string(to) || is_binary(&from) && is_binary(to);
    if stored_alike || from == DataType::Null {
        return typed(node);
    }
    if let Some(node) = literal.as_ref().filter(|value| is_exact(value)).and_then(|value| constant(value, to))
    {
        return typed(node);
    }
    let chain = CastChain { node, label: label(expr, to), now: from };
    typed(chain.to(expr, to)?)
}

/// Returns true if a constant of the target type equals a cast of the literal.
fn is_exact(literal: &Literal) -> bool {
    // A float literal beside a column is rounded to float32, but a cast checks it.
    !matches!(literal, Literal::Float(_) | Literal::Decimal { .. })
}

/// The maps so far, and the type of their result.
pub(crate) struct CastChain {
    pub(crate) node: CompiledNode,
    pub(crate) label: Arc<Label>,
    pub(crate) now: DataType,
}

impl CastChain {
    fn map(self, map: Map) -> Self {
        Self { node: CompiledNode::map(map, self.node), ..self }
    }

    fn checked(self, map: Map) -> Self {
        Self { node: CompiledNode::checked(map, self.node, &self.label, &self.now), ..self }
    }

    fn divided(self, factor: i128, rounding: Rounding, now: DataType) -> Self {
        Self { node: CompiledNode::map(Map::Divide { factor, rounding }, self.node), now, ..self }
    }

    /// Converts whole numbers between `from` to another storage, which holds `to`.
    fn narrow(self, from: (i128, i128), to: (i128, i128), storage: Physical, stored: Physical) -> Self {
        if from.0 < to.0 || from.1 > to.1 {
            self.checked(Map::Narrow { to: storage, low: to.0, high: to.1 })
        } else if storage == stored {
            self
        } else {
            self.map(Map::Widen(storage))
        }
    }

    /// Converts 64-bit counts to another unit.
    fn units(self, from: TimeUnit, to: TimeUnit, rounding: Rounding) -> Self {
        if from == to {
            self
        } else if finer(from, to) == to {
            self.checked(Map::Multiply { factor: units_in(from, to), limit: None })
        } else {
            self.divided(units_in(to, from), rounding, DataType::Int64)
        }
    }

    /// Rescales a decimal, to at most `precision` digits.
    fn rescale(self, from: i8, to: i8, precision: u8) -> Self {
        let limit = 10_i128.pow(precision.into());
        let places = i16::from(to) - i16::from(from);
        // A shift of more than 38 digits makes every value but 0 too large, or too small.
        let factor = 10_i128.checked_pow(places.unsigned_abs().into()).unwrap_or(i128::MAX);
        if places >= 0 {
            return self.checked(Map::Multiply { factor, limit: Some(limit) });
        }
        let now = DataType::Decimal128(38, to);
        let narrow = Map::Narrow { to: Physical::I128, low: 1 - limit, high: limit - 1 };
        self.divided(factor, Rounding::Truncate, now).checked(narrow)
    }

    /// Converts times to local times of their zone; the result includes the number of their units per day.
    ///
    /// Where the zone is not UTC these are whole seconds: the last hours of nanoseconds may exceed 64 bits there.
    pub(crate) fn local(
        self,
        expr: &Expr,
        unit: TimeUnit,
        zone: Option<&str>,
    ) -> Result<(Self, i64), PlanError> {
        let per_second = units_in(TimeUnit::Second, unit);
        let zone = match zone {
            None => Zone::UTC,
            Some(name) => Zone::read(name)
                .ok_or_else(|| PlanError::mismatch(expr, format!("there is no time zone \"{name}\"")))?,
        };
        if zone == Zone::UTC {
            return Ok((self, 86_400 * per_second as i64));
        }
        let seconds = match &self.now {
            DataType::Timestamp(_, name) if unit != TimeUnit::Second => {
                let now = DataType::Timestamp(TimeUnit::Second, name.clone());
                self.divided(per_second, Rounding::Floor, now)
            }
            _ => self,
        };
        Ok((seconds.checked(Map::Local(zone)), 86_400))
    }

    /// Converts times to days, as `date32`.
    pub(crate) fn days(self, factor: i64) -> Self {
        let limits = (i32::MIN.into(), i32::MAX.into());
        let days = i128::from(i64::MAX / factor) + 1;
        self.divided(factor.into(), Rounding::Floor, DataType::Int64).narrow(
            (-days, days),
            limits,
            Physical::I32,
            Physical::I64,
        )
    }

    fn wide(self) -> Self {
        if physical(&self.now) == Physical::I64 { self } else { self.map(Map::Widen(Physical::I64)) }
    }

    fn to(self, expr: &Expr, to: &DataType) -> Result<CompiledNode, PlanError> {
        use DataType::{
            Boolean, Date32, Date64, Decimal128, Duration, Float32, Float64, Time32, Time64, Timestamp,
        };
        let from = &self.now.clone();
        let refused = |hint: &str| {
            let (from, to) = (TypeName(from), TypeName(to));
            Err(PlanError::mismatch(expr, format!("{from} cannot be cast to {to}{hint}")))
        };
        let is_whole = |data_type: &DataType| integer(data_type).is_some() || *data_type == Boolean;
        // Any integer is a count, and bools are the numbers 0 and 1.
        let counts = |one: &DataType, other: &DataType| {
            integer(one).is_some() && (unit_of(other).is_some() || is_whole(other))
        };
        let (stored, storage) = (physical(from), physical(to));
        let chain = match (from, to) {
            (Duration(_), to) if is_string(to) => return refused("; cast it to int64 first"),
            (from, to) if is_binary(from) && is_string(to) => self.checked(Map::CheckText),
            (from, to) if is_string(from) && is_binary(to) => self,
            (from, _) if is_binary(from) => return refused(""),
            (_, to) if is_binary(to) => return refused(""),
            (from, to) if is_string(from) => {
                if matches!(to, Duration(_)) {
                    return refused("");
                }
                let zone = match to {
                    Timestamp(_, Some(name)) => match Zone::read(name) {
                        Some(zone) => Some(zone),
                        None => return refused(": the time zone is not known"),
                    },
                    _ => None,
                };
                self.checked(Map::Parse { to: to.clone(), zone })
            }
            (Timestamp(unit, zone), to) if is_string(to) => {
                let zone = match zone.as_deref().map(Zone::read) {
                    Some(None) => return refused(": the time zone is not known"),
                    zone => zone.flatten(),
                };
                self.map(Map::Format { from: Timestamp(*unit, None), zone })
            }
            (from @ (Time32(_) | Time64(_)), to) if is_string(to) => {
                self.checked(Map::Format { from: from.clone(), zone: None })
            }
            (from, to) if is_string(to) => self.map(Map::Format { from: from.clone(), zone: None }),
            (from, Boolean) if is_whole(from) || is_float(from) || matches!(from, Decimal128(..)) => {
                self.map(Map::ToBool)
            }
            (from, to) if is_whole(from) && is_float(to) => self.map(Map::Widen(storage)),
            (Float32, Float64) => self.map(Map::Widen(storage)),
            (Float64, Float32) => self.checked(Map::Shrink),
            (Decimal128(_, scale), Float64) => self.map(Map::DecimalToFloat(*scale)),
            (Decimal128(_, scale), Float32) => self.map(Map::DecimalToFloat(*scale)).checked(Map::Shrink),
            (from, Decimal128(precision, scale)) if is_whole(from) => {
                self.map(Map::Widen(Physical::I128)).rescale(0, *scale, *precision)
            }
            (Decimal128(_, own), Decimal128(precision, scale)) => self.rescale(*own, *scale, *precision),
            (Float32 | Float64, Decimal128(precision, scale)) => {
                let chain = if *from == Float32 { self.map(Map::Widen(Physical::F64)) } else { self };
                chain.checked(Map::FloatToDecimal { scale: *scale, limit: 10_i128.pow((*precision).into()) })
            }
            (Decimal128(_, scale), to) if integer(to).is_some() => {
                let limits = whole_range(to).expect("an integer has limits");
                self.rescale(*scale, 0, 38).narrow((i128::MIN, i128::MAX), limits, storage, Physical::I128)
            }
            (Float32 | Float64, to) if integer(to).is_some() => {
                let (low, high) = whole_range(to).expect("an integer has limits");
                self.checked(Map::Narrow { to: storage, low, high })
            }
            (Timestamp(own, zone), Timestamp(unit, other)) => {
                if zone.is_some() != other.is_some() {
                    return refused(
                        "; one has a time zone and the other has none. Cast it to int64 first to take the count as it is, in UTC",
                    );
                }
                self.units(*own, *unit, Rounding::Floor)
            }
            (Timestamp(unit, zone), Date32) => {
                let (local, per_day) = self.local(expr, *unit, zone.as_deref())?;
                local.days(per_day)
            }
            (Timestamp(unit, zone), Date64) => {
                let (local, per_day) = self.local(expr, *unit, zone.as_deref())?;
                local
                    .divided(per_day.into(), Rounding::Floor, DataType::Int64)
                    .checked(Map::Multiply { factor: 86_400_000, limit: None })
            }
            (Date32 | Date64, Timestamp(_, Some(_))) => {
                return refused("; a day begins at another time in every zone");
            }
            (Date32, Timestamp(..) | Date64) => {
                let factor = per_day(to).expect("times count parts of days").into();
                self.wide().checked(Map::Multiply { factor, limit: None })
            }
            (Date64, Timestamp(unit, None)) => self.units(TimeUnit::Millisecond, *unit, Rounding::Floor),
            (Date64, Date32) => self.days(86_400_000),
            (Duration(own), Duration(unit)) => self.units(*own, *unit, Rounding::Truncate),
            (Time32(own) | Time64(own), Time32(unit) | Time64(unit)) => {
                let limits = whole_range(&Time64(*unit)).expect("times of day have limits");
                let any = (i64::MIN.into(), i64::MAX.into());
                self.wide().units(*own, *unit, Rounding::Floor).narrow(any, limits, storage, Physical::I64)
            }
            (from, to) if unit_of(from).is_some() && unit_of(to).is_some() => return refused(""),
            // A count of units, or of days.
            (from, to) => match (stored_range(from), whole_range(to)) {
                (Some(own), Some(limits)) if counts(from, to) || counts(to, from) => {
                    let chain = self.narrow(own, limits, storage, stored);
                    // A date64 is a whole number of days.
                    if *to == Date64 { chain.checked(Map::Floor(86_400_000)) } else { chain }
                }
                _ => return refused(""),
            },
        };
        Ok(chain.node)
    }
}
