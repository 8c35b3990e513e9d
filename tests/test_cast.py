"""`Expr.cast`: every type to every type, against the reference, and the rules written out by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import penstock as ps
from reference.arithmetic import FailedError, RefusedError, UnspecifiedError
from reference.casts import cast, check
from reference.compare import assert_same_rows
from reference.engine import arrow_schema, rows_of, table_of
from reference.plans import Columns, Row
from reference.types import (
    BINARY,
    BOOL,
    DATE32,
    DATE64,
    FLOAT32,
    FLOAT64,
    INT64,
    INTEGERS,
    STRING,
    TIME32_MS,
    TIME32_S,
    TIME64_NS,
    TIME64_US,
    Type,
    Value,
    decimal,
    duration,
    timestamp,
)

INF, NAN = float("inf"), float("nan")
DAY_MS = 86_400_000
TICKS: list[Value] = [0, -1, 90_000, -86_401, 1_714_521_600, 1_714_521_600_123, 2**61, -(2**63), 2**63 - 1]
TIMES: list[Value] = [0, 1, 86_399]
TEXTS: list[Value] = [
    "", "0", "-1", "+7", "300", "1.5", "-1.999", ".5", "1e3", "nan", "-inf", "Infinity", "1e400", "true",
    "False", "yes", " 1", "1 ", "99999999999999999999", "1970-01-01", "1969-12-31T23:59:59.9999",
    "2024-02-30", "2024-05-01 12:30", "2024-05-01T12:30:15.5Z", "2024-05-01T12:30:15+02:00",
    "2024-03-31T02:30:00", "2024-10-27T02:30:00", "12:30", "23:59:59.999999999", "24:00", "9999-12-31", "é",
    "a text that is longer than twelve bytes and is no value of any other type",
]  # fmt: skip
SAMPLES: dict[Type, list[Value]] = {
    **{kind: [kind.low, kind.high, 0, 1, 7, min(kind.high, 128)] for kind in INTEGERS},
    FLOAT32: [0.0, -0.0, 1.5, -128.5, 2.0**127, INF, NAN],
    FLOAT64: [
        0.0, 0.29, -0.125, 0.375, -1.9, 127.9, -128.9, -129.0, 2.0**63, -(2.0**63), 1e300, INF, -INF, NAN,
    ],
    BOOL: [True, False],
    STRING: TEXTS,
    BINARY: [b"", b"text", b"\xff\x00", b"\xc3\xa9 longer than twelve bytes"],
    decimal(10, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal("1.99"), Decimal("99999999.99")],
    decimal(38, 0): [Decimal(0), Decimal(10) ** 37, Decimal(-3)],
    decimal(5, 5): [Decimal("0.00000"), Decimal("-0.50000"), Decimal("0.00001")],
    decimal(3, -2): [Decimal("0E+2"), Decimal("150E+2"), Decimal("-99900")],
    timestamp("s"): TICKS,
    timestamp("ms"): TICKS,
    timestamp("ns"): TICKS,
    timestamp("us", "UTC"): TICKS,
    timestamp("s", "Europe/Paris"): [*TICKS, 1_711_846_799, 1_711_846_800, 1_729_990_799, 1_729_990_800],
    duration("s"): TICKS,
    duration("ns"): TICKS,
    DATE32: [0, -1, 20_000, 2**31 - 1],
    DATE64: [0, -DAY_MS, 20_000 * DAY_MS],
    TIME32_S: TIMES,
    TIME32_MS: TIMES,
    TIME64_US: TIMES,
    TIME64_NS: TIMES,
}  # fmt: skip
TYPES = list(SAMPLES)


def run(columns: Columns, expression: ps.Expr, rows: list[Row]) -> list[dict[str, Value]]:
    stream = ps.stream(arrow_schema(columns)).select("id", r=expression)
    return rows_of(stream.run(table_of(columns, rows)))


def cast_all(kind: Type, to: Type, cells: list[Value]) -> None:
    """Values that can be cast are cast together; each that cannot is a ComputeError of its own."""
    columns: Columns = (("id", INT64), ("a", kind))
    expression = ps.col("a").cast(str(to))
    rows: list[Row] = [{"id": i, "a": cell} for i, cell in enumerate([*cells, None])]
    expected: list[dict[str, Value]] = []
    good: list[Row] = []
    for row in rows:
        cell = row["a"]
        try:
            expected.append({"id": row["id"], "r": None if cell is None else cast(cell, kind, to)})
            good.append(row)
        except UnspecifiedError:
            continue
        except FailedError:
            with pytest.raises(ps.ComputeError) as caught:
                run(columns, expression, [row])
            message = str(caught.value)
            assert repr(expression) in message
            assert str(to) in message.replace(repr(expression), "")
            if isinstance(cell, str):
                assert f'"{cell}' in message
    assert_same_rows(expected, run(columns, expression, good), ["id"])


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_type_to_every_type(kind: Type) -> None:
    for to in TYPES:
        source = ps.stream(arrow_schema((("a", kind),)))
        expression = ps.col("a").cast(str(to))
        try:
            check(kind, to)
        except RefusedError:
            with pytest.raises(ps.TypeMismatchError) as caught:
                source.select(r=expression)
            assert str(kind) in str(caught.value)
            assert str(to) in str(caught.value)
            continue
        made = source.select(r=expression)
        assert made.schema.types == [str(to)]
        cast_all(kind, to, SAMPLES[kind])


@given(st.lists(st.floats(), max_size=8), st.sampled_from(INTEGERS))
def test_floats_are_cut_off_towards_zero(cells: list[float], to: Type) -> None:
    cast_all(FLOAT64, to, list(cells))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8), st.sampled_from(TYPES))
def test_integers_fit_or_fail(cells: list[int], to: Type) -> None:
    try:
        check(INT64, to)
    except RefusedError:
        return
    cast_all(INT64, to, list(cells))


@given(st.lists(st.decimals(-(10**8), 10**8, places=2), max_size=8), st.sampled_from(TYPES))
def test_decimals_fit_or_fail(cells: list[Decimal], to: Type) -> None:
    small: list[Value] = [cell for cell in cells if abs(cell) < 10**8]
    try:
        check(decimal(10, 2), to)
    except RefusedError:
        return
    cast_all(decimal(10, 2), to, small)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8), st.integers(-5, 20))
@example([2.0**127, -(2.0**127), 9.9e40, 1.5e39, 25.0, -35.0], -1)
@example([9.9e40, -9.9e42, 4.5e5, 2_500.5, 500.0], -3)
def test_floats_become_the_nearest_decimal(cells: list[float], scale: int) -> None:
    cast_all(FLOAT64, decimal(38, scale), list(cells))


SYNTAX = st.text(st.sampled_from("0123456789+-.eE:TZ naif"), max_size=12)


@given(
    st.lists(SYNTAX, max_size=4),
    st.sampled_from([to for to in TYPES if to.kind not in ("duration", "binary")]),
)
def test_any_text_is_read_or_refused(cells: list[str], to: Type) -> None:
    cast_all(STRING, to, list(cells))


@given(st.lists(st.floats(), max_size=8), st.sampled_from([FLOAT32, FLOAT64]))
def test_a_printed_float_reads_back(cells: list[float], kind: Type) -> None:
    array = pa.array(cells, pa.float64()).cast(kind.arrow(), safe=False)
    table = pa.table({"a": array})
    there = ps.col("a").cast("string")
    both = pa.table(ps.stream(table.schema).select(s=there, b=there.cast(str(kind))).run(table))
    for wanted, text, back in zip(
        array.to_pylist(), both["s"].to_pylist(), both["b"].to_pylist(), strict=True
    ):
        assert (math.isnan(wanted) and math.isnan(back)) or wanted == back
        assert math.isnan(wanted) or kind == FLOAT32 or float(text) == wanted


@given(
    st.lists(st.integers(-(2**45), 2**45), max_size=8),
    st.sampled_from(["UTC", "Europe/Paris", "-03:30", None]),
)
def test_a_printed_time_reads_back(cells: list[int], zone: str | None) -> None:
    """With its offset it is unique, even when the clocks are put back."""
    table = pa.table({"a": pa.array(cells, pa.timestamp("ms", zone))})
    name = str(timestamp("ms", zone))
    made = ps.stream(table.schema).select(b=ps.col("a").cast("string").cast(name))
    assert pa.table(made.run(table))["b"].to_pylist() == table["a"].to_pylist()


def one(expression: ps.Expr, cell: Any, kind: pa.DataType) -> Any:
    table = pa.table({"a": pa.array([cell], kind)})
    return pa.table(ps.stream(table.schema).select(r=expression).run(table))["r"].to_pylist()[0]


def test_an_error_names_expression_value_and_type() -> None:
    for cell, kind, to, words in [
        (300, pa.int64(), "int8", 'int8 overflow in col("a").cast("int8"): 300'),
        (NAN, pa.float64(), "int64", 'col("a").cast("int64"): NaN cannot be represented as int64'),
        (-1.0, pa.float64(), "uint8", 'uint8 overflow in col("a").cast("uint8"): -1.0'),
        ("1,5", pa.string(), "float64", 'col("a").cast("float64"): "1,5" cannot be read as float64'),
        (b"\xff", pa.binary(), "string", "cannot be read as string"),
        (Decimal("9.99"), pa.decimal128(3, 2), "decimal128(2, 2)", "9.99"),
    ]:
        with pytest.raises(ps.ComputeError) as caught:
            one(ps.col("a").cast(to), cell, kind)
        assert words in str(caught.value)


def test_a_long_text_is_not_quoted_in_full() -> None:
    with pytest.raises(ps.ComputeError) as caught:
        one(ps.col("a").cast("int64"), "é" * 10_000, pa.string())
    assert len(str(caught.value)) < 400


def test_nulls_stay_null_whatever_lies_beneath() -> None:
    hidden = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.array([2**62, 5]).buffers()[1]])
    table = pa.table({"a": hidden})
    made = ps.stream(table.schema).select(r=ps.col("a").cast("int8"))
    assert pa.table(made.run(table))["r"].to_pylist() == [None, 5]


def test_literals_are_cast_too() -> None:
    assert one(ps.lit(5).cast("int8"), 1, pa.int64()) == 5
    assert one(ps.lit("7").cast("int64") + ps.col("a"), 1, pa.int64()) == 8
    assert one(ps.lit(None).cast("int8"), 1, pa.int64()) is None
    assert ps.stream({"a": "int64"}).select(r=ps.lit(None).cast("int8")).schema.types == ["int8"]
    with pytest.raises(ps.ComputeError, match="int8"):
        one(ps.lit(300).cast("int8"), 1, pa.int64())


@pytest.mark.parametrize(
    ("name", "meant"),
    [("in64", "int64"), ("INT64", "int64"), ("timestamp[mss]", "timestamp[ms]"), ("strng", "string")],
)
def test_a_misspelt_type_is_answered_with_the_closest(name: str, meant: str) -> None:
    with pytest.raises(ps.PlanError) as caught:
        ps.col("a").cast(name)
    assert f'"{name}"' in str(caught.value)
    assert f'did you mean "{meant}"' in str(caught.value)


def test_what_is_no_type_is_refused() -> None:
    for name in ("null", "float16", "dictionary<values=string, indices=int8>", "list<int8>", ""):
        with pytest.raises(ps.PlanError, match="cast"):
            ps.col("a").cast(name)
    with pytest.raises(TypeError, match="name of a type"):
        ps.col("a").cast(int)  # type: ignore[arg-type]
    with pytest.raises(ps.TypeMismatchError, match="time zone"):
        ps.stream({"a": "string"}).select(r=ps.col("a").cast("timestamp[s, tz=Mars/Olympus]"))


def test_it_prints_as_python_and_survives_json() -> None:
    made = ps.stream({"a": "string"}).select(r=(ps.col("a").cast("int64") + 1).cast("timestamp[ms, tz=UTC]"))
    assert repr(ps.col("a").cast("int64")) == 'col("a").cast("int64")'
    assert repr((ps.col("a") + 1).cast("utf8")) == '(col("a") + 1).cast("string")'
    again = ps.Stream.from_json(made.to_json())
    assert again == made
    assert again.schema.types == ["timestamp[ms, tz=UTC]"]
