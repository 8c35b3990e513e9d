//! A table of one column per kind of type, and evaluations over it.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use penstock_expr::{
    BinaryOp, Expr, ExprScope, Expression, Literal, Rejected, ScalarFunction, UnaryOp, compile,
};
use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{Column, ColumnBuf, Physical, Run, Values};
use penstock_types::{ComputeError, PlanError};

use crate::naive::{self, Failure, Named, Value};

pub fn col(name: &str) -> Expr {
    Expr::column(name)
}

pub fn int(value: i128) -> Expr {
    Expr::literal(Literal::Int(value))
}

pub fn text(value: &str) -> Expr {
    Expr::literal(Literal::String(value.to_owned()))
}

pub fn call(function: ScalarFunction, inputs: &[Expr]) -> Expr {
    Expr::call(function, inputs.to_vec()).unwrap()
}

/// Makes a column as a run holds it. Values under a null are nonsense, as they may be.
pub fn stored(column: &Named) -> ColumnBuf {
    let mut into = ColumnBuf::new(Physical::of(&column.data_type).unwrap());
    macro_rules! fill {
        ($($kind:ident $type:ty: $variant:ident $nonsense:expr),*) => {
            match into.physical() {
                $(Physical::$kind => into.refill::<$type>().extend(column.rows.iter().map(|value| match value {
                    Some(Value::$variant(value)) => *value as $type,
                    _ => $nonsense,
                })),)*
                Physical::View => {
                    let (views, buffers) = into.refill_views();
                    let mut payload = Vec::new();
                    for value in &column.rows {
                        views.push(match value {
                            Some(Value::Bytes(bytes)) => make_view(bytes, 0, payload.len() as u32),
                            _ => u128::MAX,
                        });
                        if let Some(Value::Bytes(bytes)) = value {
                            payload.extend_from_slice(bytes);
                        }
                    }
                    buffers.push(arrow_buffer::Buffer::from_vec(payload).into());
                }
                other => unreachable!("no column of the test is stored as {other:?}"),
            }
        };
    }
    fill!(I8 i8: Int i8::MIN, I32 i32: Int i32::MIN, I64 i64: Int i64::MIN, U8 u8: Int 0, U64 u64: Int 0,
        I128 i128: Int i128::MIN, F32 f32: Float f32::NAN, F64 f64: Float f64::NAN);
    if column.data_type == DataType::Boolean {
        // Even under a null a bool is 0 or 1.
        into.refill::<u8>().extend(column.rows.iter().map(|value| u8::from(*value != Some(Value::Int(0)))));
    }
    if column.rows.contains(&None) {
        into.refill_mask().extend(column.rows.iter().map(|value| u8::from(value.is_some())));
    }
    into
}

pub fn read(column: Column<'_>) -> Vec<Option<Value>> {
    macro_rules! each {
        ($values:expr, $wrap:expr) => {{
            let wrap = $wrap;
            $values
                .iter()
                .enumerate()
                .map(|(row, &value)| column.is_valid(row).then(|| wrap(value)))
                .collect()
        }};
    }
    match column.values {
        Values::I8(values) => each!(values, |value: i8| Value::Int(value.into())),
        Values::I16(values) => each!(values, |value: i16| Value::Int(value.into())),
        Values::I32(values) => each!(values, |value: i32| Value::Int(value.into())),
        Values::I64(values) => each!(values, |value: i64| Value::Int(value.into())),
        Values::U8(values) => each!(values, |value: u8| Value::Int(value.into())),
        Values::U16(values) => each!(values, |value: u16| Value::Int(value.into())),
        Values::U32(values) => each!(values, |value: u32| Value::Int(value.into())),
        Values::U64(values) => each!(values, |value: u64| Value::Int(value.into())),
        Values::I128(values) => each!(values, Value::Int),
        Values::F32(values) => each!(values, |value: f32| Value::Float(value.into())),
        Values::F64(values) => each!(values, Value::Float),
        Values::View(views, buffers) => {
            each!(views, |view| with_bytes(view, buffers, |bytes| Value::Bytes(bytes.to_vec())))
        }
    }
}

/// Columns in a run, ready for expressions.
pub struct Table {
    pub schema: Schema,
    pub slots: Vec<usize>,
    pub run: Run,
}

impl Table {
    pub fn new(columns: &[Named]) -> Self {
        let fields = columns
            .iter()
            .map(|column| Field::new(&column.name, column.data_type.clone(), column.rows.contains(&None)));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let mut run = Run::new();
        // Slots are not the numbers of the columns.
        run.add_slot(Physical::I64);
        let slots: Vec<usize> =
            columns.iter().map(|column| run.add_slot(Physical::of(&column.data_type).unwrap())).collect();
        run.begin_owned(columns[0].rows.len());
        for (column, &slot) in columns.iter().zip(&slots) {
            run.put(slot, stored(column));
        }
        Self { schema, slots, run }
    }

    pub fn compile(&self, expr: &Expr) -> Result<Expression, PlanError> {
        compile(expr, ExprScope { schema: &self.schema, slots: &self.slots })
    }

    /// Evaluates an expression that may reject rows.
    pub fn evaluate_lenient(&mut self, expr: &Expr, rejected: &mut Vec<Rejected>) -> Vec<Option<Value>> {
        let compiled = self.compile(expr).unwrap();
        let column = compiled.evaluate_lenient(&mut self.run, rejected);
        let rows = read(column.as_column());
        self.run.give_back(column);
        rows
    }

    pub fn evaluate(&mut self, expr: &Expr) -> Result<Vec<Option<Value>>, ComputeError> {
        let compiled = self.compile(expr).unwrap();
        let column = compiled.evaluate(&mut self.run)?;
        let rows = read(column.as_column());
        self.run.give_back(column);
        Ok(rows)
    }

    /// Compiles and evaluates, and compares everything with the model.
    pub fn check(&mut self, expr: &Expr, columns: &[Named]) {
        let expected = naive::evaluate(expr, columns);
        let compiled = match (self.compile(expr), &expected) {
            (Ok(compiled), Ok(_)) => compiled,
            (Err(PlanError::TypeMismatch { .. }), Err(_)) => return,
            (Ok(compiled), Err(_)) => panic!("{expr} should be a mismatch and is {:?}", compiled.data_type),
            (Err(error), _) => panic!("{expr}: {error}"),
        };
        let expected = expected.unwrap();
        match (&compiled.data_type, &expected.data_type) {
            // The language promises the scale; a precision is right when it holds every value.
            (DataType::Decimal128(_, scale), DataType::Decimal128(_, wanted)) => {
                assert_eq!(scale, wanted, "{expr}")
            }
            (given, wanted) => assert_eq!(given, wanted, "{expr}"),
        }
        match (compiled.evaluate(&mut self.run), expected.rows) {
            (Ok(column), Ok(rows)) => {
                let given = read(column.as_column());
                assert_eq!(given, rows, "{expr}");
                assert!(compiled.nullable || !given.contains(&None), "{expr} is null but not nullable");
                if let DataType::Decimal128(precision, _) = compiled.data_type {
                    let limit = 10_u128.pow(precision.into());
                    for value in given.iter().flatten() {
                        let Value::Int(digits) = value else { unreachable!() };
                        assert!(digits.unsigned_abs() < limit, "{expr}: {digits} as {}", compiled.data_type);
                    }
                }
                self.run.give_back(column);
                if compiled.data_type == DataType::Boolean {
                    let holds = |row: &u32| given[*row as usize] == Some(Value::Int(1));
                    let mut selected = Vec::new();
                    compiled.select(&mut self.run, &mut selected).unwrap();
                    assert_eq!(selected, (0..given.len() as u32).filter(holds).collect::<Vec<_>>(), "{expr}");
                }
            }
            (Err(error), Err(failure)) => match failure {
                Failure::Overflow => {
                    assert!(matches!(error, ComputeError::Overflow { .. }), "{expr}: {error}")
                }
                Failure::DivisionByZero => {
                    assert!(matches!(error, ComputeError::DivisionByZero { .. }), "{expr}: {error}");
                }
            },
            (Ok(_), Err(failure)) => panic!("{expr} should fail: {failure:?}"),
            (Err(error), Ok(rows)) => panic!("{expr}: {error}; expected {rows:?}"),
        }
    }
}

pub fn timestamp(unit: TimeUnit, zone: Option<&str>) -> DataType {
    DataType::Timestamp(unit, zone.map(Into::into))
}

/// Returns the columns of the table, by name and type.
pub fn types() -> Vec<(&'static str, DataType)> {
    use DataType::{
        Binary, Boolean, Date32, Date64, Decimal128, Duration, Float32, Float64, Int8, Int64, UInt8, UInt64,
        Utf8, Utf8View,
    };
    vec![
        ("i8", Int8),
        ("i64", Int64),
        ("u8", UInt8),
        ("u64", UInt64),
        ("f32", Float32),
        ("f64", Float64),
        ("money", Decimal128(10, 2)),
        ("exact", Decimal128(38, 6)),
        ("text", Utf8),
        ("view", Utf8View),
        ("bytes", Binary),
        ("flag", Boolean),
        ("other_flag", Boolean),
        ("seconds", timestamp(TimeUnit::Second, None)),
        ("millis", timestamp(TimeUnit::Millisecond, None)),
        ("zoned", timestamp(TimeUnit::Millisecond, Some("Europe/Berlin"))),
        ("span_ms", Duration(TimeUnit::Millisecond)),
        ("span_us", Duration(TimeUnit::Microsecond)),
        ("day", Date32),
        ("day64", Date64),
    ]
}

pub fn literals() -> Vec<Literal> {
    vec![
        Literal::Null,
        Literal::Bool(true),
        Literal::Bool(false),
        Literal::Int(0),
        Literal::Int(-1),
        Literal::Int(7),
        Literal::Int(200),
        Literal::Int(i64::MIN.into()),
        Literal::Int(u64::MAX.into()),
        Literal::Float(2.5),
        Literal::Float(-0.0),
        Literal::Float(f64::NAN),
        Literal::Decimal { value: 125, scale: 2 },
        Literal::Decimal { value: -5, scale: 4 },
        Literal::Decimal { value: 0, scale: 0 },
        Literal::String(String::new()),
        Literal::String("a text too long for a view".to_owned()),
        Literal::Binary(b"ab".to_vec()),
        Literal::Timestamp { micros: 1_500_000, aware: false },
        Literal::Timestamp { micros: 3_000_000, aware: true },
        Literal::Duration(2_000),
        Literal::Duration(1),
        Literal::Date(1),
    ]
}

pub const BINARY: [BinaryOp; 15] = [
    BinaryOp::Add,
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
    BinaryOp::FloorDivide,
    BinaryOp::Modulo,
    BinaryOp::Equal,
    BinaryOp::NotEqual,
    BinaryOp::Less,
    BinaryOp::LessEqual,
    BinaryOp::Greater,
    BinaryOp::GreaterEqual,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
];
pub const UNARY: [UnaryOp; 4] = [UnaryOp::Negate, UnaryOp::Not, UnaryOp::IsNull, UnaryOp::IsNotNull];

pub fn one_row(columns: Vec<(&str, DataType, i128)>) -> Table {
    let columns = columns.into_iter().map(|(name, data_type, value)| Named {
        name: name.to_owned(),
        data_type,
        rows: vec![Some(Value::Int(value))],
    });
    Table::new(&columns.collect::<Vec<_>>())
}
