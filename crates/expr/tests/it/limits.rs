//! Expressions at their limits: refusals, failures, and their texts.

use crate::naive;
use crate::table;

use arrow_schema::{DataType, TimeUnit};
use naive::{Named, Value};
use penstock_expr::{BinaryOp, Expr, Literal, MAX_DEPTH, MAX_NODES, ScalarFunction, UnaryOp};
use penstock_types::{ComputeError, PlanError};
use table::{BINARY, Table, col, int, literals, one_row, timestamp, types};

#[test]
fn comparisons_have_an_answer_whatever_the_scale_or_unit() {
    let seconds = timestamp(TimeUnit::Second, None);
    let nanos = timestamp(TimeUnit::Nanosecond, None);
    let mut table = one_row(vec![
        ("large", DataType::Decimal128(38, 0), 10_i128.pow(37)),
        ("fine", DataType::Decimal128(38, 37), 3),
        ("i64", DataType::Int64, 10),
        ("seconds", seconds, i64::MAX.into()),
        ("nanos", nanos, 5),
    ]);
    let far = Expr::literal(Literal::Timestamp { micros: 253_402_300_799_000_000, aware: false });
    for (left, right) in [
        (col("fine"), col("large")),
        (col("fine"), col("i64")),
        (col("fine"), int(i64::MAX.into())),
        (col("nanos"), col("seconds")),
        (col("nanos"), far),
    ] {
        let less = left.clone().binary(BinaryOp::Less, right.clone()).unwrap();
        assert_eq!(table.evaluate(&less), Ok(vec![Some(Value::Int(1))]), "{less}");
        let more = right.binary(BinaryOp::Less, left).unwrap();
        assert_eq!(table.evaluate(&more), Ok(vec![Some(Value::Int(0))]), "{more}");
    }
}

#[test]
fn times_overflow_at_the_limits_of_64_bits() {
    let span = DataType::Duration(TimeUnit::Second);
    let mut table = one_row(vec![
        ("late", timestamp(TimeUnit::Second, None), i64::MAX.into()),
        ("early", timestamp(TimeUnit::Second, None), i64::MIN.into()),
        ("one", span.clone(), 1),
        ("least", span, i64::MIN.into()),
        ("milli", DataType::Duration(TimeUnit::Millisecond), 1),
    ]);
    for (left, op, right) in [
        ("late", BinaryOp::Add, "one"),
        ("early", BinaryOp::Subtract, "one"),
        ("late", BinaryOp::Subtract, "early"),
        ("late", BinaryOp::Add, "milli"),
    ] {
        let expr = col(left).binary(op, col(right)).unwrap();
        assert!(matches!(table.evaluate(&expr), Err(ComputeError::Overflow { .. })), "{expr}");
    }
    let negated = col("least").unary(UnaryOp::Negate).unwrap();
    assert!(matches!(table.evaluate(&negated), Err(ComputeError::Overflow { .. })));
    let sum = col("early").binary(BinaryOp::Add, col("one")).unwrap();
    assert_eq!(table.evaluate(&sum), Ok(vec![Some(Value::Int(i128::from(i64::MIN) + 1))]));
}

#[test]
fn floats_floor_as_in_python() {
    // Quotients so large that they end in .5 or have no fraction; the values are those of CPython 3.
    for (left, right, quotient, rest) in [
        (-0.0005, -1.2124165053187797e-19, 4_123_995_325_092_802.0, -4.8402107843286657e-20),
        (-7.5, 2.0, -4.0, 0.5),
        (7.5, -2.0, -4.0, -0.5),
        (-5.0, f64::INFINITY, -1.0, f64::INFINITY),
        (5.0, f64::INFINITY, 0.0, 5.0),
        (-0.0, 3.0, -0.0, 0.0),
        (0.0, -3.0, -0.0, -0.0),
        (1.0, 0.1, 9.0, 0.09999999999999995),
        (f64::INFINITY, 2.0, f64::NAN, f64::NAN),
        (1.0, 0.0, f64::NAN, f64::NAN),
    ] {
        let columns = [("left", left), ("right", right)].map(|(name, value)| Named {
            name: name.to_owned(),
            data_type: DataType::Float64,
            rows: vec![Some(Value::Float(value))],
        });
        let mut table = Table::new(&columns);
        for (op, expected) in [(BinaryOp::FloorDivide, quotient), (BinaryOp::Modulo, rest)] {
            let expr = col("left").binary(op, col("right")).unwrap();
            assert_eq!(
                table.evaluate(&expr),
                Ok(vec![Some(Value::Float(expected))]),
                "{left:?}, {right:?}: {expr}"
            );
        }
    }
}

#[test]
fn an_error_names_the_expression_and_the_first_row_that_failed() {
    let column = |rows: Vec<Option<i128>>| Named {
        name: "n".to_owned(),
        data_type: DataType::Int8,
        rows: rows.into_iter().map(|value| value.map(Value::Int)).collect(),
    };
    let mut table = Table::new(&[column(vec![Some(3), None, Some(0), Some(120), Some(121)])]);
    let sum = col("n").binary(BinaryOp::Add, int(10)).unwrap();
    assert_eq!(
        table.evaluate(&sum),
        Err(ComputeError::Overflow {
            expression: "col(\"n\") + 10".to_owned(),
            type_name: "int8".to_owned(),
            values: "120 + 10".to_owned(),
        })
    );
    let rest = int(7).binary(BinaryOp::Modulo, col("n")).unwrap();
    assert_eq!(
        table.evaluate(&rest),
        Err(ComputeError::DivisionByZero {
            expression: "7 % col(\"n\")".to_owned(),
            values: "7 % 0".to_owned()
        })
    );
}

#[test]
fn a_wrong_name_is_answered_with_the_closest() {
    let table = one_row(vec![("event_time", DataType::Int64, 0), ("ad_id", DataType::Int64, 0)]);
    let error = table.compile(&col("evnt_time")).unwrap_err();
    let PlanError::UnknownColumn { column, suggestion, available } = error else { panic!("{error}") };
    assert_eq!((column.as_str(), suggestion.as_deref()), ("evnt_time", Some("event_time")));
    assert_eq!(available, ["event_time", "ad_id"]);
}

#[test]
fn a_null_on_its_own_has_no_type() {
    let table = one_row(vec![("n", DataType::Int64, 0)]);
    let null = Expr::literal(Literal::Null);
    assert!(matches!(table.compile(&null), Err(PlanError::TypeMismatch { .. })));
    assert!(table.compile(&null.clone().unary(UnaryOp::IsNull).unwrap()).is_ok());
    assert!(matches!(
        table.compile(&null.clone().binary(BinaryOp::Add, null).unwrap()),
        Err(PlanError::TypeMismatch { .. })
    ));
}

/// Literals that no Python value produces, but that foreign text may hold.
#[test]
fn no_literal_and_no_scale_breaks_the_compiler() {
    let mut literals = literals();
    for value in [0, 1, i128::MAX, i128::MIN] {
        literals.push(Literal::Int(value));
        literals.extend([-128, -38, -1, 0, 38, 39, 127].map(|scale| Literal::Decimal { value, scale }));
    }
    literals.extend([i64::MIN, i64::MAX].map(Literal::Duration));
    literals.extend([i64::MIN, i64::MAX].map(|micros| Literal::Timestamp { micros, aware: true }));
    literals.extend([i32::MIN, i32::MAX].map(Literal::Date));
    let mut operands: Vec<Expr> = literals.into_iter().map(Expr::literal).collect();
    let mut columns: Vec<Named> = types()
        .into_iter()
        .map(|(name, data_type)| Named { name: name.to_owned(), data_type, rows: vec![None] })
        .collect();
    for (precision, scale) in [(38, -38), (38, 38), (38, 0), (1, -1)] {
        let data_type = DataType::Decimal128(precision, scale);
        columns.push(Named { name: format!("{precision}_{scale}"), data_type, rows: vec![None] });
    }
    let table = Table::new(&columns);
    operands.extend(columns.iter().map(|column| col(&column.name)));
    let mut broken = Vec::new();
    for left in &operands {
        for right in &operands {
            for op in BINARY {
                let expr = left.clone().binary(op, right.clone()).unwrap();
                let compiled =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| table.compile(&expr).is_ok()));
                if compiled.is_err() {
                    broken.push(expr.to_string());
                }
            }
        }
    }
    assert!(broken.is_empty(), "{} expressions panicked, such as {}", broken.len(), broken[0]);
}

#[test]
fn nesting_has_a_limit_and_works_up_to_it() {
    let mut expr = col("n");
    for _ in 1..MAX_DEPTH {
        expr = expr.binary(BinaryOp::Add, int(1)).unwrap();
    }
    let mut table = one_row(vec![("n", DataType::Int64, 0)]);
    assert_eq!(table.evaluate(&expr), Ok(vec![Some(Value::Int((MAX_DEPTH - 1).into()))]));
    for deeper in [
        expr.clone().binary(BinaryOp::Add, int(1)),
        int(1).binary(BinaryOp::Add, expr.clone()),
        expr.clone().unary(UnaryOp::Negate),
        expr.clone().alias("name"),
        expr.clone().cast(DataType::Int8),
        Expr::when(vec![(col("n"), expr.clone())], None),
        Expr::when(vec![(expr.clone(), int(1))], None),
        Expr::when(vec![(col("n"), int(1))], Some(expr.clone())),
        Expr::call(ScalarFunction::Coalesce, vec![int(1), expr.clone()]),
    ] {
        assert!(matches!(deeper, Err(PlanError::Invalid(_))));
    }
    // To the right, where every operand waits for the one below it.
    let mut right = col("n");
    for _ in 1..MAX_DEPTH {
        right = int(1).binary(BinaryOp::Subtract, right).unwrap();
    }
    assert_eq!(table.evaluate(&right), Ok(vec![Some(Value::Int(1))]));
}

#[test]
fn a_tree_that_shares_its_branches_is_limited_by_its_size() {
    let mut expr = col("n");
    let mut nodes = 1;
    let refused = loop {
        match expr.clone().binary(BinaryOp::Add, expr.clone()) {
            Ok(twice) => expr = twice,
            Err(error) => break error,
        }
        nodes = 2 * nodes + 1;
    };
    assert!(matches!(refused, PlanError::Invalid(_)), "{refused}");
    assert!(nodes <= MAX_NODES && 2 * nodes + 1 > MAX_NODES, "{nodes} nodes were allowed");
    let mut table = one_row(vec![("n", DataType::Int64, 1)]);
    assert_eq!(table.evaluate(&expr), Ok(vec![Some(Value::Int(i128::from(nodes / 2 + 1)))]));
    let wide = Expr::call(ScalarFunction::Coalesce, vec![col("n"); MAX_NODES as usize - 1]).unwrap();
    assert_eq!(table.evaluate(&wide), Ok(vec![Some(Value::Int(1))]));
    let wider = Expr::call(ScalarFunction::Coalesce, vec![col("n"); MAX_NODES as usize]);
    assert!(matches!(wider, Err(PlanError::Invalid(_))));
}
