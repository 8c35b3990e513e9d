//! Expressions as text and back.

use arrow_schema::{DataType, TimeUnit};
use penstock_expr::expr::Kind;
use penstock_expr::{BinaryOp, Expr, Literal, MAX_DEPTH, ScalarFunction, UnaryOp};
use proptest::prelude::*;

fn any_literal() -> impl Strategy<Value = Literal> {
    let float = prop_oneof![
        any::<f64>(),
        any::<u64>().prop_map(f64::from_bits),
        prop::sample::select(vec![
            f64::NAN,
            -0.0,
            0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE / 4.0
        ]),
    ];
    let whole = prop_oneof![
        any::<i64>().prop_map(i128::from),
        any::<u64>().prop_map(i128::from),
        prop::sample::select(vec![i64::MIN.into(), i64::MAX.into(), u64::MAX.into(), 0]),
    ];
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Bool),
        whole.prop_map(Literal::Int),
        float.prop_map(Literal::Float),
        any::<String>().prop_map(Literal::String),
        any::<Vec<u8>>().prop_map(Literal::Binary),
        (any::<i128>(), any::<i8>()).prop_map(|(value, scale)| Literal::Decimal { value, scale }),
        (any::<i64>(), any::<bool>()).prop_map(|(micros, aware)| Literal::Timestamp { micros, aware }),
        any::<i32>().prop_map(Literal::Date),
        any::<i64>().prop_map(Literal::Duration),
    ]
}

fn any_expr() -> impl Strategy<Value = Expr> {
    let symbols = ["+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^"];
    let leaf = prop_oneof![any::<String>().prop_map(Expr::column), any_literal().prop_map(Expr::literal)];
    leaf.prop_recursive(8, 40, 2, move |inner| {
        let binary = prop::sample::select(symbols.map(|symbol| BinaryOp::from_symbol(symbol).unwrap()).to_vec());
        let unary = ["-", "~", "is_null", "is_not_null"].map(|symbol| UnaryOp::from_symbol(symbol).unwrap());
        prop_oneof![
            3 => (binary, inner.clone(), inner.clone()).prop_map(|(op, left, right)| left.binary(op, right).unwrap()),
            1 => (prop::sample::select(unary.to_vec()), inner.clone()).prop_map(|(op, input)| input.unary(op).unwrap()),
            1 => (inner.clone(), any::<String>()).prop_map(|(input, name)| input.alias(name).unwrap()),
            1 => (inner.clone(), any_type()).prop_map(|(input, data_type)| input.cast(data_type).unwrap()),
            1 => (prop::collection::vec((inner.clone(), inner.clone()), 1..3), prop::option::of(inner.clone()))
                .prop_map(|(branches, otherwise)| Expr::when(branches, otherwise).unwrap()),
            2 => (prop::sample::select(ScalarFunction::names().collect::<Vec<_>>()), prop::collection::vec(inner, 2)).prop_map(|(name, mut inputs)| {
                let function = ScalarFunction::from_name(name).unwrap();
                inputs.truncate(*function.arity().start());
                Expr::call(function, inputs).unwrap()
            }),
        ]
    })
}

fn any_type() -> impl Strategy<Value = DataType> {
    prop::sample::select(vec![
        DataType::Boolean,
        DataType::Int64,
        DataType::Float32,
        DataType::Utf8,
        DataType::Date32,
        DataType::Decimal128(38, -3),
        DataType::Duration(TimeUnit::Nanosecond),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(TimeUnit::Millisecond, Some("Europe/Berlin".into())),
    ])
}

fn again(expr: &Expr) -> Expr {
    serde_json::from_str(&serde_json::to_string(expr).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn what_is_written_reads_back(expr in any_expr()) {
        let read = again(&expr);
        prop_assert_eq!(&read, &expr);
        prop_assert_eq!(read.to_string(), expr.to_string());
        prop_assert_eq!(read.output_name(), expr.output_name());
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), serde_json::to_string(&expr).unwrap());
    }

    #[test]
    fn numbers_come_back_to_the_bit(literal in any_literal()) {
        let read = again(&Expr::literal(literal.clone()));
        let Kind::Literal(read) = read.kind() else { panic!("a literal reads back as a literal") };
        prop_assert_eq!(read, &literal);
        if let (Literal::Float(read), Literal::Float(written)) = (read, &literal) {
            prop_assert!(read.to_bits() == written.to_bits() || written.is_nan());
        }
    }

    /// Text of the right shape parses to an expression or an error, whatever its content.
    #[test]
    fn tokens_in_any_order_never_panic(tokens in prop::collection::vec(prop::sample::select(vec![
        "{\"column\":\"a\"}", "{\"literal\":{\"int\":\"1\"}}", "{\"literal\":\"null\"}", "{\"binary\":\"+\"}", "{\"unary\":\"-\"}",
        "{\"alias\":\"b\"}", "{\"binary\":\"**\"}", "{\"cast\":\"int8\"}", "{\"cast\":\"int9\"}",
        "{\"when\":{\"branches\":1,\"otherwise\":false}}", "{\"when\":{\"branches\":1,\"otherwise\":true}}",
        "{\"function\":{\"name\":\"coalesce\",\"inputs\":2}}", "{\"function\":{\"name\":\"abs\",\"inputs\":2}}",
    ]), 0..12)) {
        let text = format!("[{}]", tokens.join(","));
        let mut height = 0_i32;
        let mut good = true;
        for token in &tokens {
            let (taken, given) = match *token {
                token if token.contains("true") => (3, 1),
                token if ["binary", "when", "function"].iter().any(|kind| token.contains(kind)) => (2, 1),
                token if ["unary", "alias", "cast"].iter().any(|kind| token.contains(kind)) => (1, 1),
                _ => (0, 1),
            };
            good &= height >= taken && !["**", "int9", "abs"].iter().any(|bad| token.contains(bad));
            height += given - taken;
        }
        good &= height == 1;
        prop_assert_eq!(serde_json::from_str::<Expr>(&text).is_ok(), good, "{}", text);
    }
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    for (text, reason) in [
        ("[]", "empty"),
        ("{}", "sequence"),
        (r#"[{"column":"a"},{"column":"b"}]"#, "without an operator"),
        (r#"[{"column":"a"},{"binary":"+"}]"#, "too few operands"),
        (r#"[{"unary":"-"}]"#, "too few operands"),
        (r#"[{"column":"a"},{"unary":"!"}]"#, "unknown operator"),
        (r#"[{"column":"a"},{"column":"b"},{"binary":"is_null"}]"#, "unknown operator"),
        (r#"[{"call":"a"}]"#, "unknown variant"),
        (r#"[{"literal":{"int":"1.5"}}]"#, "not a number"),
        (r#"[{"literal":{"int":1}}]"#, "expected a string"),
        (r#"[{"literal":{"float":"one"}}]"#, "not a number"),
        (r#"[{"literal":{"decimal":{"value":"1","scale":300}}}]"#, "300"),
        (r#"[{"literal":{"list":[]}}]"#, "unknown variant"),
        (r#"[{"column":"a"},{"cast":"in64"}]"#, "(did you mean \"int64\"?)"),
        (r#"[{"cast":"int64"}]"#, "too few operands"),
        (r#"[{"column":"a"},{"cast":7}]"#, "expected a string"),
        (r#"[{"column":"a"},{"when":{"branches":0,"otherwise":true}}]"#, "needs a condition"),
        (
            r#"[{"column":"a"},{"when":{"branches":18446744073709551615,"otherwise":false}}]"#,
            "too few operands",
        ),
        (r#"[{"column":"a"},{"when":{"branches":-1,"otherwise":false}}]"#, "-1"),
        (r#"[{"column":"a"},{"column":"b"},{"when":{"branches":1}}]"#, "missing field"),
        (
            r#"[{"column":"a"},{"function":{"name":"str.lenght","inputs":1}}]"#,
            "(did you mean \"str.length\"?)",
        ),
        (r#"[{"function":{"name":"coalesce","inputs":0}}]"#, "at least 1"),
        (r#"[{"column":"a"},{"function":{"name":"str.contains","inputs":1}}]"#, "takes 2 expressions, not 1"),
        (r#"[{"function":{"name":"coalesce","inputs":18446744073709551615}}]"#, "too few operands"),
    ] {
        let error = serde_json::from_str::<Expr>(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

/// Output of earlier versions.
#[test]
fn old_text_still_reads() {
    let text = r#"[{"column":"a"},{"literal":{"int":"1"}},{"binary":"+"},{"unary":"-"},{"unary":"is_null"},{"alias":"b"}]"#;
    let expr: Expr = serde_json::from_str(text).unwrap();
    assert_eq!(expr.to_string(), "-(col(\"a\") + 1).is_null().alias(\"b\")");
    assert_eq!(serde_json::to_string(&expr).unwrap(), text);
}

#[test]
fn the_limit_of_nesting_holds_for_text_as_well() {
    let deep = |operators: usize| {
        let operator = r#",{"literal":{"int":"1"}},{"binary":"+"}"#;
        format!(r#"[{{"column":"a"}}{}]"#, operator.repeat(operators))
    };
    let allowed = usize::from(MAX_DEPTH) - 1;
    let expr: Expr = serde_json::from_str(&deep(allowed)).unwrap();
    assert_eq!(again(&expr), expr);
    let error = serde_json::from_str::<Expr>(&deep(allowed + 1)).unwrap_err().to_string();
    assert!(error.contains(&format!("{MAX_DEPTH} deep")), "{error}");
    assert!(serde_json::from_str::<Expr>(&deep(100_000)).is_err());
    // Nesting in the text itself is for the reader to refuse.
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(serde_json::from_str::<Expr>(&nested).is_err());
}
