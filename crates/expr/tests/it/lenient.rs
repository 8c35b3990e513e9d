//! Lenient evaluation against strict evaluation of each row by itself.

use crate::naive;
use crate::table;

use arrow_schema::{DataType, TimeUnit};
use naive::{Named, Value};
use penstock_expr::{BinaryOp, Expr, Literal, Rejected, ScalarFunction, read_type};
use penstock_types::ComputeError;
use proptest::prelude::*;
use table::{BINARY, Table, call, col, int, text, timestamp};

fn cast(expr: Expr, name: &str) -> Expr {
    expr.cast(read_type(name).unwrap()).unwrap()
}

/// Draws columns in which about every third value breaks something.
fn any_columns() -> impl Strategy<Value = Vec<Named>> {
    let ints = |limit: i128| {
        prop_oneof![3 => -3_i128..4, 1 => Just(limit), 1 => Just(-limit - 1)].prop_map(Value::Int).boxed()
    };
    let floats = prop::sample::select(vec![0.0, 1.5, -200.75, 1e30, f64::NAN, f64::INFINITY, -0.25]);
    let texts = prop::sample::select(vec![
        "1",
        "-7",
        "300",
        "",
        "x",
        "1.5",
        "2024-02-30",
        "1999-12-31",
        "a text too long for a view",
    ]);
    let money = prop_oneof![3 => -500_i128..500, 1 => Just(9_999_999_999_i128)].prop_map(Value::Int);
    let types = [
        ("i8", DataType::Int8, ints(127)),
        ("i64", DataType::Int64, ints(i64::MAX.into())),
        ("f64", DataType::Float64, floats.prop_map(Value::Float).boxed()),
        ("money", DataType::Decimal128(10, 2), money.boxed()),
        ("text", DataType::Utf8, texts.prop_map(|text| Value::Bytes(text.into())).boxed()),
        ("time", timestamp(TimeUnit::Second, Some("Europe/Berlin")), ints(i64::MAX.into())),
        ("flag", DataType::Boolean, any::<bool>().prop_map(|value| Value::Int(value.into())).boxed()),
    ];
    prop::sample::select(vec![1.0, 0.8]).prop_flat_map(move |present| {
        let columns = types.iter().map(|(name, data_type, value)| {
            let cell = if present < 1.0 {
                prop::option::weighted(present, value.clone()).boxed()
            } else {
                value.clone().prop_map(Some).boxed()
            };
            let (name, data_type) = ((*name).to_owned(), data_type.clone());
            prop::collection::vec(cell, 9).prop_map(move |rows| Named {
                name: name.clone(),
                data_type: data_type.clone(),
                rows,
            })
        });
        columns.collect::<Vec<_>>()
    })
}

fn any_number() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["i8", "i64", "f64", "money"]).prop_map(col),
        1 => (-3_i128..4).prop_map(int),
        1 => Just(Expr::literal(Literal::Null)),
        1 => prop::sample::select(vec!["int8", "float64", "decimal128(4, 1)"]).prop_map(|to| cast(col("text"), to)),
        1 => prop::sample::select(vec![ScalarFunction::Year, ScalarFunction::Hour])
            .prop_map(|part| call(part, &[cast(col("text"), "timestamp[s]")])),
        1 => Just(call(ScalarFunction::Month, &[col("time")])),
        1 => Just(call(ScalarFunction::Length, &[call(ScalarFunction::Upper, &[col("text")])])),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let op = prop::sample::select(BINARY[..6].to_vec());
        let compare = prop::sample::select(BINARY[6..12].to_vec());
        let types = vec!["int8", "uint8", "int64", "uint64", "float32", "float64", "decimal128(5, 2)", "bool"];
        let unary = vec![ScalarFunction::Abs, ScalarFunction::Floor, ScalarFunction::Ceil, ScalarFunction::Round, ScalarFunction::Sqrt];
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(|(op, left, right)| left.binary(op, right).unwrap()),
            2 => (prop::sample::select(types), inner.clone()).prop_map(|(to, input)| cast(input, to)),
            1 => (prop::sample::select(unary), inner.clone()).prop_map(|(function, input)| call(function, &[input])),
            3 => (compare, inner.clone(), inner.clone(), inner.clone(), prop::option::of(inner.clone())).prop_map(
                |(op, left, right, value, otherwise)| {
                    let condition = left.binary(op, right).unwrap();
                    let second = (col("flag"), value.clone());
                    Expr::when(vec![(condition, value), second], otherwise).unwrap()
                }
            ),
            2 => (inner.clone(), inner.clone()).prop_map(|(one, other)| call(ScalarFunction::Coalesce, &[one, other])),
            1 => inner.prop_map(|input| call(ScalarFunction::ByteLength, &[cast(input, "string")])),
        ]
    })
    .boxed()
}

/// Evaluates each row by itself, strictly.
fn one_by_one(expr: &Expr, columns: &[Named]) -> Vec<Result<Option<Value>, ComputeError>> {
    (0..columns[0].rows.len())
        .map(|row| {
            let alone =
                columns.iter().map(|column| Named { rows: vec![column.rows[row].clone()], ..column.clone() });
            let alone: Vec<Named> = alone.collect();
            Table::new(&alone).evaluate(expr).map(|mut rows| rows.remove(0))
        })
        .collect()
}

fn check(expr: &Expr, columns: &[Named]) {
    let mut table = Table::new(columns);
    if table.compile(expr).is_err() {
        return;
    }
    let expected = one_by_one(expr, columns);
    let mut rejected = Vec::new();
    let given = table.evaluate_lenient(expr, &mut rejected);
    let failing: Vec<Rejected> = expected
        .iter()
        .enumerate()
        .filter_map(|(row, value)| Some(Rejected { row: row as u32, error: value.clone().err()? }))
        .collect();
    assert_eq!(rejected, failing, "{expr}");
    let values: Vec<_> = expected.into_iter().map(|value| value.unwrap_or(None)).collect();
    assert_eq!(given, values, "{expr}");
    match table.evaluate(expr) {
        Ok(rows) => assert!(rejected.is_empty() && rows == given, "{expr}"),
        Err(error) => assert!(rejected.iter().any(|rejected| rejected.error == error), "{expr}: {error}"),
    }
    // Rows rejected before keep their error, and the list its order.
    let mut twice = rejected.clone();
    assert_eq!(table.evaluate_lenient(expr, &mut twice), given, "{expr}");
    assert_eq!(twice, rejected, "{expr}");
}

fn check_selection(condition: &Expr, columns: &[Named]) {
    let mut table = Table::new(columns);
    let Ok(compiled) = table.compile(condition) else { return };
    let expected = one_by_one(condition, columns);
    let (mut rows, mut rejected) = (Vec::new(), Vec::new());
    compiled.select_lenient(&mut table.run, &mut rows, &mut rejected);
    let numbered = || (0_u32..).zip(&expected);
    let holds: Vec<u32> =
        numbered().filter(|(_, value)| **value == Ok(Some(Value::Int(1)))).map(|(row, _)| row).collect();
    assert_eq!(rows, holds, "{condition}");
    let fails: Vec<u32> = numbered().filter(|(_, value)| value.is_err()).map(|(row, _)| row).collect();
    assert_eq!(rejected.iter().map(|rejected| rejected.row).collect::<Vec<_>>(), fails, "{condition}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn rejected_rows_are_those_that_fail_alone(
        columns in any_columns(),
        numbers in prop::collection::vec(any_number(), 12),
        bound in -3_i128..4,
    ) {
        for expr in &numbers {
            check(expr, &columns);
            let condition = expr.clone().binary(BinaryOp::Less, int(bound)).unwrap();
            check_selection(&condition, &columns);
        }
    }
}

#[test]
fn rows_of_another_expression_stay_rejected() {
    let rows = [Some(0), Some(120), None, Some(1)];
    let column = Named {
        name: "n".to_owned(),
        data_type: DataType::Int8,
        rows: rows.iter().map(|value| value.map(Value::Int)).collect(),
    };
    let mut table = Table::new(&[column]);
    let quotient = int(7).binary(BinaryOp::FloorDivide, col("n")).unwrap();
    let sum = col("n").binary(BinaryOp::Add, int(10)).unwrap();
    let mut rejected = Vec::new();
    assert_eq!(
        table.evaluate_lenient(&sum, &mut rejected),
        [Some(Value::Int(10)), None, None, Some(Value::Int(11))]
    );
    assert_eq!(table.evaluate_lenient(&quotient, &mut rejected), [None, None, None, Some(Value::Int(7))]);
    let [first, second] = rejected.as_slice() else { panic!("{rejected:?}") };
    assert!(first.row == 0 && matches!(first.error, ComputeError::DivisionByZero { .. }));
    assert!(second.row == 1 && matches!(second.error, ComputeError::Overflow { .. }));
}

#[test]
fn what_is_not_chosen_is_not_rejected() {
    let texts = ["1", "x", "3"].map(|text| Some(Value::Bytes(text.into())));
    let column = Named { name: "s".to_owned(), data_type: DataType::Utf8, rows: texts.to_vec() };
    let mut table = Table::new(&[column]);
    let is_x = col("s").binary(BinaryOp::Equal, text("x")).unwrap();
    let number = cast(col("s"), "int64");
    let expr = Expr::when(vec![(is_x, int(0))], Some(number.clone())).unwrap();
    let values = [1, 0, 3].map(|value| Some(Value::Int(value)));
    assert_eq!(table.evaluate(&expr), Ok(values.to_vec()));
    let mut rejected = Vec::new();
    assert_eq!(table.evaluate_lenient(&expr, &mut rejected), values);
    assert!(rejected.is_empty());
    let error = table.evaluate(&number).unwrap_err().to_string();
    assert_eq!(
        error,
        "col(\"s\").cast(\"int64\"): \"x\" cannot be read as int64; filter such rows out first"
    );
}
