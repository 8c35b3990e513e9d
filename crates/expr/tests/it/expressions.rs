//! Compiled expressions against a naive row-by-row evaluator.

use crate::naive;
use crate::table;

use arrow_schema::DataType;
use naive::{Named, Value};
use penstock_expr::{BinaryOp, Expr, Literal, UnaryOp};
use proptest::prelude::*;
use table::{BINARY, Table, UNARY, col, int, literals, types};

/// Draws a value of that type, small ones and the limits of the type more often than others.
fn value(data_type: &DataType) -> BoxedStrategy<Value> {
    fn ints<T: Into<i128> + Copy + std::fmt::Debug + Arbitrary + 'static>(
        min: T,
        max: T,
    ) -> BoxedStrategy<Value> {
        let low = min.into().max(-6);
        prop_oneof![
            6 => (low..8).prop_map(Value::Int),
            1 => Just(Value::Int(min.into())),
            1 => Just(Value::Int(max.into())),
            1 => any::<T>().prop_map(|value| Value::Int(value.into())),
        ]
        .boxed()
    }
    match data_type {
        DataType::Int8 => ints(i8::MIN, i8::MAX),
        DataType::Int64 => ints(i64::MIN, i64::MAX),
        DataType::UInt8 => ints(u8::MIN, u8::MAX),
        DataType::UInt64 => ints(u64::MIN, u64::MAX),
        DataType::Boolean => any::<bool>().prop_map(|value| Value::Int(value.into())).boxed(),
        DataType::Float32 | DataType::Float64 => {
            let special =
                [0.0, -0.0, 1.0, -1.0, 2.5, -7.25, 1e30, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            let any_f32 = any::<f32>().prop_map(|value| Value::Float(value.into()));
            prop_oneof![3 => prop::sample::select(special.to_vec()).prop_map(|value| Value::Float(f64::from(value as f32))),
                1 => any_f32]
            .boxed()
        }
        DataType::Decimal128(precision, _) => {
            let limit = 10_i128.pow((*precision).into()) - 1;
            prop_oneof![6 => (-800_i128..800).prop_map(Value::Int), 1 => Just(Value::Int(limit)),
                1 => Just(Value::Int(-limit)), 1 => (-limit..=limit).prop_map(Value::Int)]
            .boxed()
        }
        DataType::Utf8 | DataType::Utf8View | DataType::Binary => {
            let long = "[a-c]{10,16}".prop_map(String::into_bytes);
            let known = Just(b"a text too long for a view".to_vec());
            prop_oneof![4 => "[a-c]{0,3}".prop_map(String::into_bytes), 1 => known, 2 => long]
                .prop_map(Value::Bytes)
                .boxed()
        }
        // Times that may be multiplied to any finer unit; sums of the limits are tested separately.
        DataType::Date32 => (-3_i128..4).prop_map(Value::Int).boxed(),
        DataType::Date64 => (-3_i128..4).prop_map(|days| Value::Int(days * 86_400_000)).boxed(),
        _ => prop_oneof![3 => -4_i128..5, 2 => -9_000..9_000_i128, 1 => -9_000_000_000..9_000_000_000_i128]
            .prop_map(Value::Int)
            .boxed(),
    }
}

/// Draws the whole table with that many rows; about every fourth table has no null.
fn any_columns(rows: usize) -> impl Strategy<Value = Vec<Named>> {
    prop::sample::select(vec![1.0, 0.8, 0.8, 0.3]).prop_flat_map(move |present| {
        types()
            .into_iter()
            .map(|(name, data_type)| {
                let cell = if present < 1.0 {
                    prop::option::weighted(present, value(&data_type)).boxed()
                } else {
                    value(&data_type).prop_map(Some).boxed()
                };
                prop::collection::vec(cell, rows).prop_map(move |rows| Named {
                    name: name.to_owned(),
                    data_type: data_type.clone(),
                    rows,
                })
            })
            .collect::<Vec<_>>()
    })
}

fn any_number() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["i8", "i64", "u8", "f64", "money"]).prop_map(col),
        (-3_i128..4).prop_map(int),
        Just(Expr::literal(Literal::Null)),
        Just(Expr::literal(Literal::Float(0.5))),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        let op = prop::sample::select(BINARY[..6].to_vec());
        prop_oneof![
            5 => (op, inner.clone(), inner.clone()).prop_map(|(op, left, right)| left.binary(op, right).unwrap()),
            1 => inner.clone().prop_map(|input| input.unary(UnaryOp::Negate).unwrap()),
            1 => inner.prop_map(|input| input.alias("named").unwrap()),
        ]
    })
    .boxed()
}

fn any_condition() -> BoxedStrategy<Expr> {
    let compare = prop::sample::select(BINARY[6..12].to_vec());
    let leaf = prop_oneof![
        prop::sample::select(vec!["flag", "other_flag"]).prop_map(col),
        prop::option::of(any::<bool>())
            .prop_map(|value| Expr::literal(value.map_or(Literal::Null, Literal::Bool))),
        (compare, any_number(), any_number()).prop_map(|(op, left, right)| left.binary(op, right).unwrap()),
        (prop::sample::select(UNARY[2..].to_vec()), any_number())
            .prop_map(|(op, input)| input.unary(op).unwrap()),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        let op = prop::sample::select(BINARY[12..].to_vec());
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(|(op, left, right)| left.binary(op, right).unwrap()),
            1 => inner.prop_map(|input| input.unary(UnaryOp::Not).unwrap()),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Every operator between every two columns, and between every column and every literal.
    #[test]
    fn operators_follow_the_language_rules(columns in any_columns(7)) {
        let mut table = Table::new(&columns);
        let literals: Vec<Expr> = literals().into_iter().map(Expr::literal).collect();
        let names: Vec<Expr> = columns.iter().map(|column| col(&column.name)).collect();
        for left in &names {
            for op in UNARY {
                table.check(&left.clone().unary(op).unwrap(), &columns);
            }
            for op in BINARY {
                for right in &names {
                    table.check(&left.clone().binary(op, right.clone()).unwrap(), &columns);
                }
                for literal in &literals {
                    table.check(&left.clone().binary(op, literal.clone()).unwrap(), &columns);
                    table.check(&literal.clone().binary(op, left.clone()).unwrap(), &columns);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Comparisons with a constant have a path of their own from values to selected rows.
    #[test]
    fn long_runs_select_the_rows_that_hold(columns in any_columns(150)) {
        let mut table = Table::new(&columns);
        for op in &BINARY[6..12] {
            for (name, literal) in [("i8", 1), ("u64", 2), ("f64", 0), ("money", 1), ("i64", -1)] {
                table.check(&col(name).binary(*op, int(literal)).unwrap(), &columns);
            }
            table.check(&col("text").binary(*op, Expr::literal(Literal::String("b".to_owned()))).unwrap(), &columns);
        }
        table.check(&col("flag"), &columns);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nested_expressions_follow_them_too(
        columns in any_columns(9),
        numbers in prop::collection::vec(any_number(), 12),
        conditions in prop::collection::vec(any_condition(), 24),
    ) {
        let mut table = Table::new(&columns);
        for expr in numbers.iter().chain(&conditions) {
            // A bare null has no type.
            if !matches!(naive::evaluate(expr, &columns), Ok(answer) if answer.data_type == DataType::Null) {
                table.check(expr, &columns);
            }
        }
    }

    /// An expression sees the present rows only, and dropped rows cannot fail.
    #[test]
    fn rows_that_were_filtered_out_do_not_count(
        rows in prop::collection::vec((prop::option::of(any::<i8>()), any::<bool>()), 1..40),
    ) {
        let numbers: Vec<_> = rows.iter().map(|(value, _)| value.map(|value| Value::Int(value.into()))).collect();
        let column = |rows: Vec<Option<Value>>| vec![Named { name: "i8".to_owned(), data_type: DataType::Int8, rows }];
        let mut table = Table::new(&column(numbers.clone()));
        let mut kept = table.run.selection();
        kept.extend((0..rows.len() as u32).filter(|&row| rows[row as usize].1));
        let left: Vec<_> = kept.iter().map(|&row| numbers[row as usize].clone()).collect();
        table.run.select(kept);
        let left = column(left);
        for expr in [
            col("i8").binary(BinaryOp::Add, int(100)).unwrap(),
            col("i8").unary(UnaryOp::Negate).unwrap(),
            int(100).binary(BinaryOp::FloorDivide, col("i8")).unwrap(),
            int(3).binary(BinaryOp::Multiply, int(4)).unwrap(),
        ] {
            if !left[0].rows.is_empty() {
                table.check(&expr, &left);
            }
        }
    }
}
