"""The rules of expressions, each with the answer written out by hand."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

COL = ps.col


def value_of(expression: ps.Expr, **columns: pa.Array) -> list[Any]:
    """The values of an expression over the given columns, in the order of the rows."""
    rows = next(len(column) for column in columns.values())
    table = pa.table({**columns, "row": list(range(rows))})
    found = ps.stream(table.schema).select("row", r=expression).run(table).to_arrow().sort_by("row")
    values: list[Any] = found.column("r").to_pylist()
    return values


def type_of(expression: ps.Expr, **types: str) -> str:
    """The type name of an expression over columns of the given types."""
    return ps.stream(types).select(r=expression).schema.types[0]


def ints(*values: int | None, kind: str = "int64") -> pa.Array:
    return pa.array(values, getattr(pa, kind)())


def floats(*values: float | None) -> pa.Array:
    return pa.array(values, pa.float64())


THREE = [True, False, None]


@pytest.mark.parametrize("left", THREE)
@pytest.mark.parametrize("right", THREE)
def test_three_valued_logic(left: bool | None, right: bool | None) -> None:
    a, b = pa.array([left], pa.bool_()), pa.array([right], pa.bool_())
    conjunction = False if False in (left, right) else (None if None in (left, right) else True)
    disjunction = True if True in (left, right) else (None if None in (left, right) else False)
    exclusive = None if None in (left, right) else left != right
    assert value_of(COL("a") & COL("b"), a=a, b=b) == [conjunction]
    assert value_of(COL("a") | COL("b"), a=a, b=b) == [disjunction]
    assert value_of(COL("a") ^ COL("b"), a=a, b=b) == [exclusive]
    assert value_of(~COL("a"), a=a) == [None if left is None else not left]


@pytest.mark.parametrize(
    ("left", "right", "quotient", "remainder"),
    [
        (7, 2, 3, 1),
        (-7, 2, -4, 1),
        (7, -2, -4, -1),
        (-7, -2, 3, -1),
        (6, 3, 2, 0),
        (-6, 3, -2, 0),
        (0, -5, 0, 0),
    ],
)
def test_integers_floor_as_python_does(left: int, right: int, quotient: int, remainder: int) -> None:
    for kind in ("int8", "int16", "int32", "int64"):
        a, b = ints(left, kind=kind), ints(right, kind=kind)
        assert value_of(COL("a") // COL("b"), a=a, b=b) == [quotient]
        assert value_of(COL("a") % COL("b"), a=a, b=b) == [remainder]
    a, b = floats(float(left)), floats(float(right))
    assert value_of(COL("a") // COL("b"), a=a, b=b) == [float(quotient)]
    assert value_of(COL("a") % COL("b"), a=a, b=b) == [float(remainder)]


def test_floats_floor_as_python_does() -> None:
    assert value_of(COL("a") // 0.1, a=floats(1.0, -1.0)) == [1.0 // 0.1, -1.0 // 0.1]
    assert value_of(COL("a") % 0.1, a=floats(1.0, -1.0)) == [1.0 % 0.1, -1.0 % 0.1]
    assert math.isnan(value_of(COL("a") % 0.0, a=floats(1.0))[0])
    never = value_of(COL("a") // 0.0, a=floats(1.0, -1.0, 0.0, math.inf))
    assert all(math.isnan(value) for value in never), "other than in Python, floats never fail"


def test_true_division_is_float_and_never_fails() -> None:
    found = value_of(COL("a") / COL("b"), a=ints(1, -1, 0, 7), b=ints(0, 0, 0, 2))
    assert found[:2] == [math.inf, -math.inf]
    assert math.isnan(found[2])
    assert found[3] == 3.5
    for kind in ("int8", "uint32", "float32", "decimal128(10, 2)"):
        assert type_of(COL("a") / COL("a"), a=kind) == "float64"


@pytest.mark.parametrize("op", ["//", "%"])
def test_integer_division_by_zero_is_an_error(op: str) -> None:
    expression = COL("a") // COL("b") if op == "//" else COL("a") % COL("b")
    with pytest.raises(ps.ComputeError, match=r"(?i)zero"):
        value_of(expression, a=ints(1), b=ints(0))
    assert value_of(expression, a=ints(None, 1), b=ints(0, None)) == [None, None]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_overflow_is_an_error_in_every_width(kind: str) -> None:
    bits = int(kind.removeprefix("u").removeprefix("int"))
    signed = not kind.startswith("u")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    fine = [(COL("a") + 1, high - 1), (COL("a") - 1, low + 1), (COL("a") * 2, high // 2)]
    wrong = [(COL("a") + 1, high), (COL("a") - 1, low), (COL("a") * 2, high // 2 + 1)]
    if signed:
        fine += [(-COL("a"), high), (COL("a") // -1, low + 1), (COL("a") % -1, low)]
        wrong += [(-COL("a"), low), (COL("a") // -1, low)]
    for expression, value in fine:
        assert value_of(expression, a=ints(value, kind=kind)) != [None]
    for expression, value in wrong:
        with pytest.raises(ps.ComputeError, match=r"(?i)overflow"):
            value_of(expression, a=ints(value, kind=kind))


def test_negating_an_unsigned_never_wraps() -> None:
    """Whether it is refused or fails at run time, it does not give a large number."""
    with pytest.raises((ps.TypeMismatchError, ps.ComputeError)):
        value_of(-COL("a"), a=ints(1, kind="uint8"))


def test_overflow_counts_only_where_there_is_a_value() -> None:
    top = 2**63 - 1
    assert value_of(COL("a") + COL("b"), a=ints(top, None, 1), b=ints(None, 1, 1)) == [None, None, 2]


def test_overflow_in_rows_that_were_filtered_out_does_not_matter() -> None:
    stream = ps.stream({"a": "int64", "keep": "bool"}).filter(COL("keep")).select(r=COL("a") + 1)
    table = pa.table({"a": [2**63 - 1, 1], "keep": [False, True]})
    assert stream.run(table).to_arrow().column("r").to_pylist() == [2]


def test_a_null_slot_may_hold_anything() -> None:
    """The bytes under a null are not data: an overflow there is none."""
    top = ints(2**63 - 1, 5)
    hidden = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), top.buffers()[1]])
    assert hidden.to_pylist() == [None, 5]
    assert value_of(COL("a") + 1, a=hidden) == [None, 6]
    assert value_of(
        10 // COL("a"),
        a=pa.Array.from_buffers(pa.int64(), 1, [pa.py_buffer(b"\x00"), pa.py_buffer(bytes(8))]),
    ) == [None]


def test_floats_have_one_order() -> None:
    nan, inf = math.nan, math.inf
    a, b = floats(nan, nan, nan, -0.0, inf), floats(nan, inf, 1.0, 0.0, nan)
    assert value_of(COL("a") == COL("b"), a=a, b=b) == [True, False, False, True, False]
    assert value_of(COL("a") != COL("b"), a=a, b=b) == [False, True, True, False, True]
    assert value_of(COL("a") < COL("b"), a=a, b=b) == [False, False, False, False, True]
    assert value_of(COL("a") <= COL("b"), a=a, b=b) == [True, False, False, True, True]
    assert value_of(COL("a") > COL("b"), a=a, b=b) == [False, True, True, False, False]
    assert value_of(COL("a") >= COL("b"), a=a, b=b) == [True, True, True, True, False]


WIDER = [
    ("int8", "int8", "int8"), ("int8", "int64", "int64"), ("uint8", "uint32", "uint32"),
    ("int8", "uint8", "int16"), ("int16", "uint16", "int32"), ("int32", "uint32", "int64"),
    ("int8", "uint32", "int64"), ("int64", "uint32", "int64"), ("int64", "float32", "float64"),
    ("int32", "float32", "float64"), ("int8", "float32", "float32"), ("int16", "float32", "float32"),
    ("float32", "float64", "float64"), ("float32", "float32", "float32"), ("uint64", "uint8", "uint64"),
    ("uint64", "float64", "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "wider"), WIDER)
def test_numbers_meet_in_the_wider_type(left: str, right: str, wider: str) -> None:
    assert type_of(COL("a") + COL("b"), a=left, b=right) == wider
    assert type_of(COL("b") * COL("a"), a=left, b=right) == wider


def test_literals_take_the_type_of_the_column() -> None:
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        assert type_of(COL("a") + 1, a=kind) == kind
        assert type_of(1 + COL("a"), a=kind) == kind
    assert type_of(COL("a") * 0.1, a="float32") == "float32"
    assert type_of(COL("a") + 1.5, a="int32") == "float64"
    assert type_of(COL("a") + 1000, a="int8") == "int64"
    assert value_of(COL("a") == 0.1, a=pa.array([0.1], pa.float32())) == [True]


def test_signed_and_unsigned_64_bit_compare_exactly() -> None:
    a, b = ints(-1, 2**63 - 1, 0), ints(2**64 - 1, 2**63, 0, kind="uint64")
    assert value_of(COL("a") == COL("b"), a=a, b=b) == [False, False, True]
    assert value_of(COL("a") < COL("b"), a=a, b=b) == [True, True, False]
    assert value_of(COL("b") < -1, b=b) == [False, False, False]
    assert value_of(COL("a") < 2**64 - 1, a=a) == [True, True, True]
    for expression in (COL("a") + COL("b"), COL("b") * COL("a"), COL("b") // -1):
        with pytest.raises(ps.TypeMismatchError, match=r"(?s)int64.*uint64|uint64.*int64"):
            ps.stream({"a": "int64", "b": "uint64"}).select(r=expression)


def test_plain_values_work_on_either_side() -> None:
    a = ints(10, 3)
    cases: list[tuple[ps.Expr, list[Any]]] = [
        (1 + COL("a"), [11, 4]), (1 - COL("a"), [-9, -2]), (2 * COL("a"), [20, 6]),
        (30 / COL("a"), [3.0, 10.0]), (31 // COL("a"), [3, 10]), (31 % COL("a"), [1, 1]),
        (operator.lt(5, COL("a")), [True, False]), (operator.eq(3, COL("a")), [False, True]),
        (operator.ge(5, COL("a")), [False, True]),
    ]  # fmt: skip
    for expression, expected in cases:
        assert value_of(expression, a=a) == expected, expression
    flags = pa.array([True, None])
    assert value_of(True & COL("a"), a=flags) == [True, None]
    assert value_of(True | COL("a"), a=flags) == [True, True]
    assert value_of(True ^ COL("a"), a=flags) == [False, None]
    assert value_of(operator.eq("view", COL("a")), a=pa.array(["view", "click"])) == [True, False]
    assert value_of(COL("a") > b"\x7f", a=pa.array([b"\x80", b"\x01"])) == [True, False]


def test_a_null_literal_is_unknown() -> None:
    assert value_of(COL("a") == ps.lit(None), a=ints(1, None)) == [None, None]
    assert value_of(COL("a") & ps.lit(None), a=pa.array([True, False])) == [None, False]
    stream = ps.stream({"a": "int64"}).filter(COL("a") != ps.lit(None))
    assert len(stream.run(pa.table({"a": [1, 2]}))) == 0


def test_decimals_are_exact() -> None:
    wide = Decimal("12345678901234567890123456789.01")
    a = pa.array([wide, Decimal("-0.01")], pa.decimal128(38, 2))
    assert value_of(COL("a") + Decimal("0.01"), a=a) == [Decimal(f"{wide}"[:-1] + "2"), Decimal("0.00")]
    assert value_of(COL("a") - 1, a=a)[1] == Decimal("-1.01")
    assert value_of(COL("a") * COL("b"), a=a.slice(1), b=pa.array([Decimal("0.3")], pa.decimal128(2, 1))) == [
        Decimal("-0.003")
    ]
    assert value_of(COL("a") == Decimal("-0.010"), a=a) == [False, True]
    with pytest.raises(ps.ComputeError, match=r"(?i)overflow"):
        value_of(COL("a") * COL("a"), a=a)


def test_decimals_of_very_different_scale_compare_exactly() -> None:
    big = pa.array([Decimal(10) ** 37, Decimal(0), Decimal(1)], pa.decimal128(38, 0))
    fine = pa.array([Decimal(1).scaleb(-38), Decimal(1).scaleb(-38), Decimal("0.9")], pa.decimal128(38, 38))
    assert value_of(COL("a") < COL("b"), a=big, b=fine) == [False, True, False]
    assert value_of(COL("a") == COL("b"), a=big, b=fine) == [False, False, False]


def test_temporal_arithmetic() -> None:
    early, late = datetime(2024, 2, 28, 23, 59, 59), datetime(2024, 3, 1)
    a, b = pa.array([early], pa.timestamp("s")), pa.array([late], pa.timestamp("ms"))
    assert value_of(COL("b") - COL("a"), a=a, b=b) == [late - early]
    assert type_of(COL("b") - COL("a"), a="timestamp[s]", b="timestamp[ms]") == "duration[ms]"
    step = pa.array([timedelta(seconds=1)], pa.duration("s"))
    assert value_of(COL("a") + COL("d"), a=a, d=step) == [datetime(2024, 2, 29)]
    assert value_of(COL("d") + COL("a"), a=a, d=step) == [datetime(2024, 2, 29)]
    assert value_of(COL("a") - COL("d"), a=a, d=step) == [early - timedelta(seconds=1)]
    assert value_of(COL("d") + COL("d"), d=step) == [timedelta(seconds=2)]
    assert value_of(COL("a") + timedelta(milliseconds=1), a=a) == [early + timedelta(milliseconds=1)]
    assert (
        type_of(COL("a") - COL("d"), a="timestamp[us, tz=UTC]", d="duration[us]") == "timestamp[us, tz=UTC]"
    )
    with pytest.raises(ps.ComputeError, match=r"(?i)overflow"):
        value_of(COL("a") + COL("d"), a=ints(2**63 - 1).cast(pa.timestamp("s")), d=step)


def test_temporal_literals() -> None:
    noon = datetime(2024, 5, 1, 12)
    naive = pa.array([noon, datetime(1969, 12, 31)], pa.timestamp("ms"))
    assert value_of(COL("a") >= noon, a=naive) == [True, False]
    aware = pa.array([noon, None], pa.timestamp("us", "UTC"))
    shifted = datetime(2024, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert value_of(COL("a") == shifted, a=aware) == [True, None]
    assert value_of(
        COL("a") == noon.replace(tzinfo=UTC), a=pa.array([noon], pa.timestamp("s", "Asia/Tokyo"))
    ) == [True]
    days = pa.array([date(2024, 5, 1), date(1960, 1, 1)], pa.date32())
    assert value_of(COL("a") > date(1970, 1, 1), a=days) == [True, False]
    assert value_of(COL("a") > date(1970, 1, 1), a=days.cast(pa.date64())) == [True, False]
    assert value_of(COL("a") < timedelta(minutes=1), a=pa.array([59, 61], pa.duration("s"))) == [True, False]
    for kind, literal in (("timestamp[ms]", shifted), ("timestamp[ms, tz=UTC]", noon)):
        with pytest.raises(ps.TypeMismatchError, match="timestamp"):
            ps.stream({"a": kind}).filter(COL("a") == literal)


@pytest.mark.parametrize("test", [bool, lambda e: e and e, lambda e: not e, lambda e: 1 < e < 3])
def test_an_expression_is_not_a_truth_value(test: Callable[[ps.Expr], object]) -> None:
    with pytest.raises(TypeError, match=r"&.*\|"):
        test(COL("a"))


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, 2**200, 1j])
def test_literals_without_a_type_are_refused(value: object) -> None:
    with pytest.raises((TypeError, OverflowError, ValueError)):
        ps.lit(value)


def test_refusals_name_the_expression() -> None:
    stream = ps.stream({"name": "string", "age": "int64"})
    with pytest.raises(ps.TypeMismatchError, match=r"string") as caught:
        stream.select(r=COL("name") + COL("age"))
    for word in ("int64", "name", "age", "+"):
        assert word in str(caught.value)


def test_a_predicate_must_be_a_truth_value() -> None:
    with pytest.raises(ps.TypeMismatchError, match="int64"):
        ps.stream({"a": "int64"}).filter(COL("a") + 1)


def test_names_of_expressions() -> None:
    stream = ps.stream({"a": "int64", "b": "int64"})
    assert stream.select("a", COL("b"), (COL("a") + 1).alias("c"), d=COL("a")).schema.names == [
        "a",
        "b",
        "c",
        "d",
    ]
    assert stream.select(COL("a").alias("x")).schema.names == ["x"]
    (printed,) = stream.select(COL("a") + COL("b")).schema.names
    assert "a" in printed
    assert "b" in printed
