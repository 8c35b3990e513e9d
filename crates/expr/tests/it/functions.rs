//! Casts, conditions and functions: every type, at its limits, and the texts of refusals.

use crate::naive;
use crate::table;

use arrow_schema::{DataType, TimeUnit};
use naive::{Named, Value};
use penstock_expr::{BinaryOp, Expr, Literal, ScalarFunction, read_type};
use penstock_types::{ComputeError, PlanError};
use table::{Table, call, col, int, one_row, text, timestamp, types};

fn cast(expr: Expr, name: &str) -> Expr {
    expr.cast(read_type(name).unwrap()).unwrap()
}

fn named(name: &str, data_type: DataType, rows: Vec<Option<Value>>) -> Named {
    Named { name: name.to_owned(), data_type, rows }
}

/// Returns values of every kind of type, the limits of their storage among them.
fn extremes(data_type: &DataType) -> Vec<Option<Value>> {
    let ints = |values: &[i128]| values.iter().map(|&value| Some(Value::Int(value))).collect::<Vec<_>>();
    let mut values = match data_type {
        DataType::Int8 => ints(&[-128, 127, 0]),
        DataType::UInt8 => ints(&[0, 255, 1]),
        DataType::UInt64 => ints(&[0, u64::MAX.into(), 1]),
        DataType::Boolean => ints(&[0, 1, 0]),
        DataType::Date32 => ints(&[i32::MIN.into(), i32::MAX.into(), 0]),
        DataType::Float32 | DataType::Float64 => {
            [f64::from(f32::MAX), f64::NAN, -0.0].map(|value| Some(Value::Float(value))).to_vec()
        }
        DataType::Decimal128(precision, _) => {
            let limit = 10_i128.pow((*precision).into()) - 1;
            ints(&[limit, -limit, 0])
        }
        DataType::Utf8 | DataType::Utf8View | DataType::Binary => {
            ["", "ß\u{130} long enough for a payload", "-1"]
                .map(|text| Some(Value::Bytes(text.into())))
                .to_vec()
        }
        _ => ints(&[i64::MIN.into(), i64::MAX.into(), 0]),
    };
    values.push(None);
    values
}

fn all_columns() -> Vec<Named> {
    let mut types = types();
    types.push(("time", DataType::Time64(TimeUnit::Nanosecond)));
    types.push(("time32", DataType::Time32(TimeUnit::Second)));
    types.push(("large", DataType::Decimal128(38, -38)));
    types.push(("fine", DataType::Decimal128(38, 38)));
    types.into_iter().map(|(name, data_type)| named(name, data_type.clone(), extremes(&data_type))).collect()
}

/// Whatever the types and values are, the result is a plan error, a compute error, or values. Exactly the rows that
/// fail by themselves are rejected.
fn never_breaks(table: &mut Table, expr: &Expr) -> bool {
    let Ok(compiled) = table.compile(expr) else { return false };
    let strict = compiled.evaluate(&mut table.run).map(|column| table::read(column.as_column()));
    let mut rejected = Vec::new();
    let lenient = table.evaluate_lenient(expr, &mut rejected);
    match strict {
        Ok(rows) => assert!(rejected.is_empty() && rows == lenient, "{expr}"),
        Err(error) => assert!(rejected.iter().any(|rejected| rejected.error == error), "{expr}: {error}"),
    }
    assert!(lenient.last() == Some(&None) || rejected.len() < lenient.len(), "{expr}: a null was rejected");
    true
}

#[test]
fn no_cast_and_no_function_breaks_on_any_type() {
    let columns = all_columns();
    let mut table = Table::new(&columns);
    let mut types: Vec<DataType> = columns.iter().map(|column| column.data_type.clone()).collect();
    types.extend([DataType::Int16, DataType::UInt16, DataType::Int32, DataType::UInt32, DataType::LargeUtf8]);
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        types.extend([
            timestamp(unit, None),
            timestamp(unit, Some("Asia/Kolkata")),
            DataType::Duration(unit),
        ]);
    }
    let mut possible = 0;
    for column in &columns {
        for to in &types {
            possible += usize::from(never_breaks(&mut table, &col(&column.name).cast(to.clone()).unwrap()));
        }
        for name in ScalarFunction::names() {
            let function = ScalarFunction::from_name(name).unwrap();
            for second in [col("text"), text("1h"), text("x"), int(3), Expr::literal(Literal::Null)] {
                let inputs = &[col(&column.name), second][..*function.arity().start()];
                possible += usize::from(never_breaks(&mut table, &call(function, inputs)));
            }
        }
        for other in &columns {
            let both = [col(&column.name), col(&other.name)];
            never_breaks(&mut table, &call(ScalarFunction::Coalesce, &both));
            let [one, other] = both;
            never_breaks(&mut table, &Expr::when(vec![(col("flag"), one)], Some(other)).unwrap());
        }
    }
    assert!(possible > 500, "only {possible} expressions were possible");
}

#[test]
fn casts_cut_off_check_and_name_the_value() {
    let mut table = Table::new(&[
        named("f", DataType::Float64, vec![Some(Value::Float(-128.9))]),
        named("d", DataType::Decimal128(10, 2), vec![Some(Value::Int(-12_999))]),
        named("t", timestamp(TimeUnit::Millisecond, None), vec![Some(Value::Int(-1))]),
        named("z", timestamp(TimeUnit::Second, Some("Europe/Berlin")), vec![Some(Value::Int(1_711_846_799))]),
        named("s", DataType::Utf8, vec![Some(Value::Bytes("1969-12-31T23:59:59.999".into()))]),
    ]);
    for (column, to, expected) in [
        ("f", "int8", Value::Int(-128)),
        ("f", "bool", Value::Int(1)),
        ("f", "decimal128(4, 1)", Value::Int(-1289)),
        ("d", "int16", Value::Int(-129)),
        ("d", "decimal128(4, 1)", Value::Int(-1299)),
        ("d", "float64", Value::Float(-129.99)),
        ("d", "string", Value::Bytes(b"-129.99".into())),
        ("t", "timestamp[s]", Value::Int(-1)),
        ("t", "timestamp[us]", Value::Int(-1000)),
        ("t", "date32", Value::Int(-1)),
        ("t", "int64", Value::Int(-1)),
        ("t", "string", Value::Bytes(b"1969-12-31T23:59:59.999".into())),
        ("z", "date32", Value::Int(19_813)),
        ("z", "string", Value::Bytes(b"2024-03-31T01:59:59+01:00".into())),
        ("s", "timestamp[ms]", Value::Int(-1)),
    ] {
        let expr = cast(col(column), to);
        assert_eq!(table.evaluate(&expr), Ok(vec![Some(expected)]), "{expr}");
    }
    for (column, to, message) in [
        ("f", "uint8", "uint8 overflow in col(\"f\").cast(\"uint8\"): -128.9; use a wider"),
        ("d", "int8", "int8 overflow in col(\"d\").cast(\"int8\"): -129; use"),
        (
            "d",
            "decimal128(4, 2)",
            "decimal128(4, 2) overflow in col(\"d\").cast(\"decimal128(4, 2)\"): -129.99; use",
        ),
        ("s", "date32", "col(\"s\").cast(\"date32\"): \"1969-12-31T23:59:59.999\" cannot be read as date32"),
    ] {
        let error = table.evaluate(&cast(col(column), to)).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn not_a_number_is_no_integer() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut table = Table::new(&[named("f", DataType::Float64, vec![Some(Value::Float(value))])]);
        for to in ["int64", "uint8", "decimal128(10, 2)"] {
            let error = table.evaluate(&cast(col("f"), to)).unwrap_err().to_string();
            let expected = format!("col(\"f\").cast(\"{to}\"): {value:?} cannot be represented as {to}");
            assert!(error.starts_with(&expected), "{error}");
        }
        assert_eq!(table.evaluate(&cast(col("f"), "float32")), Ok(vec![Some(Value::Float(value))]));
    }
}

#[test]
fn branches_meet_in_one_type() {
    let table = Table::new(&all_columns());
    let null = || Expr::literal(Literal::Null);
    let float = Expr::literal(Literal::Float(0.5));
    for (value, other, expected) in [
        (col("i8"), col("i64"), DataType::Int64),
        (col("i8"), int(1), DataType::Int8),
        (col("i8"), int(1000), DataType::Int64),
        (int(1), col("f32"), DataType::Float32),
        (col("i64"), float, DataType::Float64),
        (col("i8"), col("u8"), DataType::Int16),
        (null(), col("text"), DataType::Utf8),
        (col("seconds"), col("millis"), timestamp(TimeUnit::Millisecond, None)),
        (col("money"), int(1), DataType::Decimal128(10, 2)),
        (col("day"), col("day64"), DataType::Date64),
        (int(1), null(), DataType::Int64),
    ] {
        let expr = Expr::when(vec![(col("flag"), value.clone())], Some(other.clone())).unwrap();
        assert_eq!(table.compile(&expr).unwrap().data_type, expected, "{expr}");
        let first = call(ScalarFunction::Coalesce, &[value, other]);
        assert_eq!(table.compile(&first).unwrap().data_type, expected, "{first}");
    }
    for (value, other) in
        [("i64", "u64"), ("text", "i8"), ("seconds", "zoned"), ("flag", "i8"), ("text", "bytes")]
    {
        let expr = Expr::when(vec![(col("flag"), col(value))], Some(col(other))).unwrap();
        let error = table.compile(&expr).unwrap_err();
        assert!(matches!(error, PlanError::TypeMismatch { .. }), "{error}");
        assert!(error.to_string().contains("have no common type"), "{error}");
    }
}

#[test]
fn a_branch_that_is_not_chosen_cannot_fail() {
    let rows = [Some(0), Some(5), None, Some(-128)].map(|value| value.map(Value::Int));
    let mut table = Table::new(&[named("x", DataType::Int8, rows.to_vec())]);
    let is_zero = || col("x").binary(BinaryOp::Equal, int(0)).unwrap();
    let quotient = || int(10).binary(BinaryOp::FloorDivide, col("x")).unwrap();
    let magnitude = || call(ScalarFunction::Abs, &[col("x")]);
    let safe = Expr::when(vec![(is_zero(), int(-1))], Some(quotient())).unwrap();
    let values = |values: [Option<i128>; 4]| Ok(values.map(|value| value.map(Value::Int)).to_vec());
    assert_eq!(table.evaluate(&safe), values([Some(-1), Some(2), None, Some(-1)]));
    // Conditions after the one that holds do not count either, and neither do branches within branches.
    let small = col("x").binary(BinaryOp::Greater, int(-100)).unwrap();
    let divides = quotient().binary(BinaryOp::Greater, int(1)).unwrap();
    let nested = Expr::when(vec![(is_zero(), int(7)), (divides, magnitude())], None).unwrap();
    let outer = Expr::when(vec![(small.clone(), nested)], Some(int(9))).unwrap();
    assert_eq!(table.evaluate(&outer), values([Some(7), Some(5), Some(9), Some(9)]));
    // Operands after a value do not count in coalesce().
    let first =
        call(ScalarFunction::Coalesce, &[Expr::when(vec![(is_zero(), col("x"))], None).unwrap(), quotient()]);
    assert_eq!(table.evaluate(&first), values([Some(0), Some(2), None, Some(-1)]));
    let chosen = Expr::when(vec![(small, int(0))], Some(magnitude())).unwrap();
    assert_eq!(
        table.evaluate(&chosen),
        Err(ComputeError::Overflow {
            expression: "col(\"x\").abs()".to_owned(),
            type_name: "int8".to_owned(),
            values: "-128".to_owned()
        })
    );
}

#[test]
fn texts_of_several_payloads_are_blended() {
    let long = |letter: &str| Some(Value::Bytes(letter.repeat(20).into_bytes()));
    let mut table = Table::new(&[
        named("a", DataType::Utf8, vec![long("a"), None, long("b"), Some(Value::Bytes(b"short".into()))]),
        named("b", DataType::Utf8View, vec![long("x"), long("y"), None, long("z")]),
    ]);
    let starts = call(ScalarFunction::StartsWith, &[col("a"), text("b")]);
    let literal = text("a literal of more than twelve bytes");
    let expr = Expr::when(
        vec![(starts, literal.clone())],
        Some(call(ScalarFunction::Coalesce, &[call(ScalarFunction::Upper, &[col("a")]), col("b")])),
    )
    .unwrap();
    let expected = vec![
        Some(Value::Bytes("A".repeat(20).into_bytes())),
        long("y"),
        Some(Value::Bytes(b"a literal of more than twelve bytes".into())),
        Some(Value::Bytes(b"SHORT".into())),
    ];
    assert_eq!(table.evaluate(&expr), Ok(expected));
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let table = Table::new(&all_columns());
    let when = |condition: Expr| Expr::when(vec![(condition, int(1))], None).unwrap();
    for (expr, part) in [
        (cast(col("text"), "duration[s]"), "string cannot be cast to duration[s]"),
        (cast(col("seconds"), "timestamp[s, tz=UTC]"), "one has a time zone and the other has none"),
        (cast(col("day"), "timestamp[s, tz=UTC]"), "a day begins at another time in every zone"),
        (cast(col("bytes"), "int8"), "binary cannot be cast to int8"),
        (cast(col("flag"), "date32"), "bool cannot be cast to date32"),
        (cast(col("text"), "timestamp[s, tz=Mars/Olympus]"), "the time zone is not known"),
        (when(col("i8")), "when() needs a bool, but col(\"i8\") is int8"),
        (call(ScalarFunction::Lower, &[col("i8")]), "str.lower() needs a string, not int8"),
        (
            call(ScalarFunction::Contains, &[col("text"), int(1)]),
            "str.contains() needs a string to look for, not int64",
        ),
        (call(ScalarFunction::Year, &[col("i64")]), "dt.year() needs a timestamp or a date, not int64"),
        (call(ScalarFunction::Hour, &[col("day")]), "dt.hour() needs a timestamp or a time, not date32"),
        (call(ScalarFunction::Floor, &[col("text")]), "floor() needs a number, not string"),
        (call(ScalarFunction::Abs, &[col("flag")]), "abs() needs a number or a duration, not bool"),
        (
            call(ScalarFunction::Truncate, &[col("millis"), col("text")]),
            "needs a duration that is the same for all rows",
        ),
        (call(ScalarFunction::Truncate, &[col("millis"), int(0)]), "needs a duration above zero"),
        (call(ScalarFunction::Truncate, &[col("seconds"), text("1ms")]), "not a whole number of units"),
        (call(ScalarFunction::Truncate, &[col("day"), text("1h")]), "not a whole number of units"),
        (call(ScalarFunction::Truncate, &[col("millis"), text("1 parsec")]), "unknown unit"),
    ] {
        let error = table.compile(&expr).unwrap_err().to_string();
        assert!(error.contains(part), "{expr}: {error}");
    }
    let mars = one_row(vec![("t", timestamp(TimeUnit::Second, Some("Mars/Olympus")), 0)]);
    let error = mars.compile(&call(ScalarFunction::Hour, &[col("t")])).unwrap_err().to_string();
    assert!(error.contains("there is no time zone \"Mars/Olympus\""), "{error}");
}
