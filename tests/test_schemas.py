"""What declares the columns of a stream: Arrow schemas of any library, mappings, and classes of Python."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import typing
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import polars as pl
import pyarrow as pa
import pytest

import penstock as ps
from penstock.io.schemas import schema_of_class

Cents = NewType("Cents", int)


@dataclasses.dataclass
class Trade:
    """All types that a field may have."""

    done: bool
    count: int
    price: float
    symbol: str
    raw: bytes
    at: dt.datetime
    day: dt.date
    hour: dt.time
    took: dt.timedelta
    maybe: int | None
    perhaps: typing.Optional[str]  # noqa: UP045
    amount: Annotated[decimal.Decimal, "decimal128(10, 2)"]
    small: Annotated[int, pa.int16()]
    zoned: Annotated[dt.datetime | None, "timestamp[ms, tz=UTC]"]
    kind: Literal["buy", "sell"]
    cents: Cents


EXPECTED = pa.schema(
    [
        pa.field("done", pa.bool_(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("price", pa.float64(), nullable=False),
        pa.field("symbol", pa.string(), nullable=False),
        pa.field("raw", pa.binary(), nullable=False),
        pa.field("at", pa.timestamp("us"), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("hour", pa.time64("us"), nullable=False),
        pa.field("took", pa.duration("us"), nullable=False),
        pa.field("maybe", pa.int64()),
        pa.field("perhaps", pa.string()),
        pa.field("amount", pa.decimal128(10, 2), nullable=False),
        pa.field("small", pa.int16(), nullable=False),
        pa.field("zoned", pa.timestamp("ms", "UTC")),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("cents", pa.int64(), nullable=False),
    ]
)


def test_a_dataclass_is_a_schema() -> None:
    assert pa.schema(schema_of_class(Trade)) == EXPECTED
    assert ps.stream(Trade, time="at") == ps.stream(EXPECTED, time="at")


class Priced(TypedDict):
    """A row with a required key."""

    price: int


class Sold(Priced, total=False):
    """And others that may be missing."""

    shop: str


class Bought(Priced):
    """The same, key by key."""

    shop: NotRequired[str]


class Ticket(NamedTuple):
    """A row as a tuple."""

    at: int
    text: str | None = None


@pytest.mark.parametrize("record", [Sold, Bought])
def test_a_typed_dict_is_a_schema(record: type) -> None:
    expected = pa.schema([pa.field("price", pa.int64(), nullable=False), pa.field("shop", pa.string())])
    assert pa.schema(ps.stream(record).schema) == expected
    assert ps.stream(record).run(pa.table({"price": [1], "shop": [None]}, schema=expected)).rows_out == 1


def test_a_named_tuple_is_a_schema() -> None:
    expected = pa.schema([pa.field("at", pa.int64(), nullable=False), pa.field("text", pa.string())])
    assert pa.schema(ps.stream(Ticket, time="at").schema) == expected


class FieldInfo:
    """What pydantic says about a field."""

    def __init__(self, annotation: object, *metadata: object) -> None:
        self.annotation = annotation
        self.metadata = list(metadata)


class Digits:
    """What pydantic keeps of `Field(max_digits=..., decimal_places=...)`."""

    max_digits = 12
    decimal_places = 3


class Model:
    """Has `model_fields`, as the models of pydantic do."""

    model_fields: typing.ClassVar[dict[str, FieldInfo]] = {
        "price": FieldInfo(float | None),
        "small": FieldInfo(int, "int16"),
        "amount": FieldInfo(decimal.Decimal, Digits()),
    }

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


def test_a_model_is_a_schema() -> None:
    schema = schema_of_class(Model)
    assert (schema.names, schema.types) == (
        ["price", "small", "amount"],
        ["float64", "int16", "decimal128(12, 3)"],
    )
    assert schema.nullable == [True, False, False]


@dataclasses.dataclass
class Nested:
    """Rows in rows."""

    trade: Trade


def made(annotation: object) -> type:
    return dataclasses.make_dataclass("Row", [("x", annotation)])


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (Nested, "columns are not nested"),
        (made(list[int]), "columns are not nested"),
        (made(dict[str, int]), "columns are not nested"),
        (made(Model), "columns are not nested"),
        (made(decimal.Decimal), r"Annotated\[Decimal, \"decimal128\(10, 2\)\"\]"),
        (made(int | str), "a column has one type"),
        (made(Literal["a", 1]), "values of one type"),
        (made(Any), "a column is one of bool, int, float"),
        (made(object), "a column is one of bool, int, float"),
        (int, "the class int is no schema"),
        (dataclasses.make_dataclass("Row", []), "has no fields"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_the_way_out(record: type, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        ps.stream(record)


def test_the_field_is_named() -> None:
    with pytest.raises(TypeError, match="field 'trade' of Nested"):
        ps.stream(Nested)
    with pytest.raises(ps.PlanError, match='column "x": there is no type "int23"'):
        ps.stream(made(Annotated[int, "int23"]))
    with pytest.raises(ps.UnsupportedTypeError, match="x"):
        ps.stream(made(Annotated[list[int], pa.list_(pa.int64())]))


def test_an_unknown_name_in_an_annotation_is_named() -> None:
    @dataclasses.dataclass
    class Row:
        x: Unknown  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="'Unknown', which is not known"):
        ps.stream(Row)


def test_an_instance_leads_to_its_class() -> None:
    with pytest.raises(TypeError, match="not Ticket: use the class, Ticket$"):
        ps.stream(Ticket(1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="use the class, Model"):
        ps.stream(Model())  # type: ignore[arg-type]


def test_a_polars_schema_is_a_schema() -> None:
    columns: dict[str, Any] = {"at": pl.Datetime("ms"), "name": pl.String, "amount": pl.Decimal(10, 2)}
    schema = pl.Schema(columns)
    events = ps.stream(schema, time="at")
    assert events.schema.names == ["at", "name", "amount"]
    frame = pl.DataFrame(
        {"at": [dt.datetime(2024, 5, 1)], "name": ["a"], "amount": [decimal.Decimal("1.50")]}, schema=schema
    )
    assert pl.DataFrame(events.run(frame)).equals(frame)


class OnlySchema:
    """Speaks `__arrow_c_schema__` and nothing else."""

    def __arrow_c_schema__(self) -> object:
        return pa.schema({"x": pa.int64()}).__arrow_c_schema__()


def test_anything_with_an_arrow_schema_is_a_schema() -> None:
    assert ps.stream(OnlySchema()).schema.types == ["int64"]
    assert ps.stream(pa.struct({"x": pa.int64()})).schema.names == ["x"]


def test_a_mapping_takes_names_arrow_types_and_python_types() -> None:
    kinds = {"a": "int64", "b": pa.int16(), "c": str, "d": dt.datetime, "e": OnlySchema}
    with pytest.raises(TypeError, match="column 'e' is OnlySchema"):
        ps.stream(kinds)
    del kinds["e"]
    assert ps.stream(kinds).schema.types == ["int64", "int16", "string", "timestamp[us]"]
    assert ps.stream(kinds).schema.nullable == [True] * 4


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (pa.table({"a": [1]}), r"use its \.schema"),
        (pl.LazyFrame({"a": [1]}), r"use its \.collect_schema\(\)"),
        (pa.table({"a": [1]}).to_pandas(), r"pyarrow\.Schema\.from_pandas"),
        ({1: "int64"}, "column names"),
        (pl.Series([1]), "not Series"),
        (None, "not NoneType"),
    ],
)
def test_what_is_no_schema_says_what_is(schema: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        ps.stream(schema)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("int", "int64"), ("integer", "int64"), ("datetime", r"timestamp\[us\]"), ("date", "date32"),
     ("text", "string"), ("decimal", r"decimal128\(10, 2\)"), ("Int64", "int64"), ("in64", "int64")],
)  # fmt: skip
def test_a_type_that_is_none_leads_to_the_one_that_is_meant(name: str, meant: str) -> None:
    with pytest.raises(ps.PlanError, match=f'no type "{name}" .did you mean "{meant}"'):
        ps.stream({"a": name})
    with pytest.raises(ps.PlanError, match=f'no type "{name}" .did you mean "{meant}"'):
        ps.stream({"a": "int64"}).cast(a=name)


def test_the_same_schemas_declare_what_a_function_gives_back_and_shared_sources() -> None:
    mapped = ps.stream({"n": int}).map_batches(
        lambda batch: pa.table({"at": range(batch.num_rows), "text": ["x"] * batch.num_rows}), schema=Ticket
    )
    data = pa.table({"n": [5, 6]})
    assert mapped.run(data).to_pylist() == [{"at": 0, "text": "x"}, {"at": 1, "text": "x"}]
    with ps.Engine(workers=1) as engine:
        source = engine.source(Ticket, pa.table({"at": [1], "text": ["a"]}))
        query = engine.submit(source.stream, source=source, sink="collect")
        assert query.result().to_pylist() == [{"at": 1, "text": "a"}]
