//! How fast expressions compute, by themselves: runs of cache size, one thread, no engine around them.
//!
//! `cargo bench -p penstock-benches --bench kernels -- expressions`. `copy` is the yardstick: eight bytes per row from one place
//! to another. `benches/python/expressions.py` measures the same expressions through the engine beside polars.

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use penstock_expr::{
    BinaryOp, Expr, ExprScope, Expression, Literal, ScalarFunction, UnaryOp, compile, read_type,
};
use penstock_memory::view::make_view;
use penstock_memory::{ColumnBuf, Physical, Run};
use penstock_types::PlanError;

/// Rows of a run, as the engine cuts them.
const RUN_ROWS: usize = 4_096;

fn col(name: &str) -> Expr {
    Expr::column(name)
}

fn int(value: i128) -> Expr {
    Expr::literal(Literal::Int(value))
}

fn text(value: &str) -> Expr {
    Expr::literal(Literal::String(value.to_owned()))
}

fn cast(expr: Expr, name: &str) -> Result<Expr, PlanError> {
    expr.cast(read_type(name)?)
}

fn call(function: ScalarFunction, inputs: &[Expr]) -> Result<Expr, PlanError> {
    Expr::call(function, inputs.to_vec())
}

/// The expressions that are measured, by name.
fn cases() -> Result<Vec<(&'static str, Expr)>, PlanError> {
    let odd = col("a").binary(BinaryOp::Modulo, int(2))?.binary(BinaryOp::Equal, int(1))?;
    let both = col("a")
        .binary(BinaryOp::Greater, int(0))?
        .binary(BinaryOp::And, col("f").binary(BinaryOp::Less, Expr::literal(Literal::Float(50.0)))?)?;
    let both_or_null = col("n")
        .binary(BinaryOp::Greater, int(0))?
        .binary(BinaryOp::And, col("f").binary(BinaryOp::Less, Expr::literal(Literal::Float(50.0)))?)?;
    Ok(vec![
        ("a + b", col("a").binary(BinaryOp::Add, col("b"))?),
        ("a + 1", col("a").binary(BinaryOp::Add, int(1))?),
        ("a * b", col("a").binary(BinaryOp::Multiply, col("b"))?),
        ("a // 7", col("a").binary(BinaryOp::FloorDivide, int(7))?),
        ("a % 7", col("a").binary(BinaryOp::Modulo, int(7))?),
        ("f * f", col("f").binary(BinaryOp::Multiply, col("f"))?),
        ("a > b", col("a").binary(BinaryOp::Greater, col("b"))?),
        ("a > 300", col("a").binary(BinaryOp::Greater, int(300))?),
        ("(a > 0) & (f < 50)", both),
        ("(n > 0) & (f < 50), with nulls", both_or_null),
        ("n is null", col("n").unary(UnaryOp::IsNull)?),
        ("n + 1 with nulls", col("n").binary(BinaryOp::Add, int(1))?),
        ("a as int32", cast(col("a"), "int32")?),
        ("f as int64", cast(col("f"), "int64")?),
        ("a as float64", cast(col("a"), "float64")?),
        ("a as string", cast(col("a"), "string")?),
        ("digits as int64", cast(col("digits"), "int64")?),
        ("when odd", Expr::when(vec![(odd, col("a"))], Some(col("b")))?),
        ("fill_null", call(ScalarFunction::Coalesce, &[col("n"), int(0)])?),
        ("floor", call(ScalarFunction::Floor, &[col("f")])?),
        ("round", call(ScalarFunction::Round, &[col("f")])?),
        ("abs", call(ScalarFunction::Abs, &[col("a")])?),
        ("sqrt", call(ScalarFunction::Sqrt, &[col("f")])?),
        ("length", call(ScalarFunction::Length, &[col("s")])?),
        ("lower", call(ScalarFunction::Lower, &[col("s")])?),
        ("contains", call(ScalarFunction::Contains, &[col("s"), text("ob")])?),
        ("starts_with", call(ScalarFunction::StartsWith, &[col("s"), text("Pen")])?),
        ("starts_with a longer one", call(ScalarFunction::StartsWith, &[col("s"), text("a turbine")])?),
        ("ends_with", call(ScalarFunction::EndsWith, &[col("s"), text("ve")])?),
        ("s == Penstock", col("s").binary(BinaryOp::Equal, text("Penstock"))?),
        ("year", call(ScalarFunction::Year, &[col("t")])?),
        ("hour", call(ScalarFunction::Hour, &[col("t")])?),
        ("hour in Berlin", call(ScalarFunction::Hour, &[col("z")])?),
        ("truncate 1h", call(ScalarFunction::Truncate, &[col("t"), text("1h")])?),
    ])
}

/// One run with a column of each kind.
struct Columns {
    schema: Schema,
    slots: Vec<usize>,
    run: Run,
}

impl Columns {
    fn new() -> Self {
        let number = |row: usize| (row as i64).wrapping_mul(7_919) % 1_000 - 300;
        let moment = |row: usize| 1_700_000_000_000 + row as i64 * 977;
        let ints = |value: &dyn Fn(usize) -> i64| {
            let mut column = ColumnBuf::new(Physical::I64);
            column.refill().extend((0..RUN_ROWS).map(value));
            column
        };
        let strings = |value: &dyn Fn(usize) -> String| {
            let mut column = ColumnBuf::new(Physical::View);
            let (views, payloads) = column.refill_views();
            let mut bytes = Vec::new();
            for row in 0..RUN_ROWS {
                let text = value(row);
                views.push(make_view(text.as_bytes(), 0, bytes.len() as u32));
                bytes.extend_from_slice(text.as_bytes());
            }
            payloads.push(
                arrow_array::Array::into_data(arrow_array::UInt8Array::from(bytes)).buffers()[0]
                    .clone()
                    .into(),
            );
            column
        };
        let mut floats = ColumnBuf::new(Physical::F64);
        floats.refill().extend((0..RUN_ROWS).map(|row| number(row) as f64 / 7.0));
        let mut nullable = ints(&number);
        nullable.mask_out(|row| row % 5 == 0);
        let words = ["Penstock", "reservoir", "a turbine of many blades", "Globe valve"];
        let stamp = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Millisecond, zone.map(Into::into));
        let columns = [
            ("a", DataType::Int64, ints(&number)),
            ("b", DataType::Int64, ints(&|row| number(row + 13))),
            ("f", DataType::Float64, floats),
            ("n", DataType::Int64, nullable),
            ("s", DataType::Utf8, strings(&|row| words[row % words.len()].to_owned())),
            ("digits", DataType::Utf8, strings(&|row| number(row).to_string())),
            ("t", stamp(None), ints(&moment)),
            ("z", stamp(Some("Europe/Berlin")), ints(&moment)),
        ];
        let mut run = Run::new();
        let mut fields = Vec::new();
        let slots = columns.iter().map(|(_, _, column)| run.add_slot(column.physical())).collect::<Vec<_>>();
        run.begin_owned(RUN_ROWS);
        for ((name, data_type, column), &slot) in columns.into_iter().zip(&slots) {
            fields.push(Field::new(name, data_type, name == "n"));
            run.put(slot, column);
        }
        Self { schema: Schema::new(fields), slots, run }
    }

    fn compile(&self, expr: &Expr) -> Result<Expression, PlanError> {
        compile(expr, ExprScope { schema: &self.schema, slots: &self.slots })
    }
}

fn expressions(c: &mut Criterion) {
    let mut columns = Columns::new();
    let mut group = c.benchmark_group("expressions");
    group.throughput(Throughput::Elements(RUN_ROWS as u64));
    let source: Vec<i64> = (0..RUN_ROWS as i64).collect();
    let mut copy = Vec::with_capacity(RUN_ROWS);
    group.bench_function("copy", |bencher| {
        bencher.iter(|| {
            copy.clear();
            copy.extend_from_slice(std::hint::black_box(&source));
        });
    });
    for (name, expr) in cases().expect("the expressions of the bench are well formed") {
        let compiled = columns.compile(&expr).expect("the expressions of the bench fit its columns");
        group.bench_function(BenchmarkId::new("evaluate", name), |bencher| {
            bencher.iter(|| {
                let column = compiled.evaluate(&mut columns.run).expect("no row of the bench fails");
                columns.run.give_back(column);
            });
        });
        if compiled.data_type == DataType::Boolean {
            let mut rows = Vec::with_capacity(RUN_ROWS);
            group.bench_function(BenchmarkId::new("select", name), |bencher| {
                bencher.iter(|| {
                    rows.clear();
                    compiled.select(&mut columns.run, &mut rows).expect("no row of the bench fails");
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, expressions);
