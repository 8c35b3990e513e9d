//! Expressions as text and back.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use penstock_expr::expr::Kind;
use penstock_expr::{BinaryOp, Expr, Literal, MAX_DEPTH, UnaryOp};
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
            1 => (inner, any::<String>()).prop_map(|(input, name)| input.alias(name).unwrap()),
        ]
    })
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

    /// Text of the right shape gives an expression or an error, whatever it says.
    #[test]
    fn tokens_in_any_order_never_panic(tokens in prop::collection::vec(prop::sample::select(vec![
        "{\"column\":\"a\"}", "{\"literal\":{\"int\":\"1\"}}", "{\"literal\":\"null\"}", "{\"binary\":\"+\"}", "{\"unary\":\"-\"}",
        "{\"alias\":\"b\"}", "{\"binary\":\"**\"}",
    ]), 0..12)) {
        let text = format!("[{}]", tokens.join(","));
        let mut height = 0_i32;
        let mut good = true;
        for token in &tokens {
            let (taken, given) = if token.contains("binary") { (2, 1) } else if token.contains("unary") || token.contains("alias") { (1, 1) } else { (0, 1) };
            good &= height >= taken && !token.contains("**");
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
    ] {
        let error = serde_json::from_str::<Expr>(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
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
    // Nesting in the text itself is the reader's to refuse.
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(serde_json::from_str::<Expr>(&nested).is_err());
}
