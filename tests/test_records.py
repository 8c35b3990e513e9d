"""Objects of Python as rows: of dataclasses, NamedTuples and models; dictionaries where a schema is given."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, NamedTuple, TypedDict

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col


@dataclasses.dataclass(frozen=True)
class Trade:
    """A row."""

    symbol: str
    price: float
    size: int | None = None


class Tick(NamedTuple):
    """A row as a tuple."""

    at: int
    price: int


class Quote(TypedDict):
    """A row as a dictionary."""

    at: int
    price: float


TRADES = [Trade("PEN", 1.5, 3), Trade("STK", 2.5), Trade("PEN", 3.5, 1)]
ROWS = [dataclasses.asdict(trade) for trade in TRADES]


def pushed(source: ps.PushSource, stream: ps.Stream, *batches: Any) -> list[dict[str, Any]]:
    with ps.Engine(workers=1) as engine:
        query = engine.submit(stream, source=source, sink="collect")
        for batch in batches:
            assert source.push(batch)
        source.close()
        return query.result().to_pylist()


def test_rows_are_pushed_as_objects() -> None:
    assert pushed(ps.PushSource(), ps.stream(Trade), TRADES[:1], tuple(TRADES[1:])) == ROWS
    assert pushed(ps.PushSource(), ps.stream(Trade), TRADES[0]) == ROWS[:1]
    ticks = ps.stream(Tick, time="at").window(ps.tumbling(10)).agg(total=ps.sum("price"))
    found = pushed(ps.PushSource(), ticks, [Tick(1, 2), Tick(3, 4), Tick(12, 5)])
    assert [row["total"] for row in found] == [6, 5]


def test_dictionaries_are_rows_where_a_schema_is_given() -> None:
    quotes: list[Quote] = [{"at": 1, "price": 1.5}, {"at": 2, "price": 2.5}]
    assert pushed(ps.PushSource(schema=Quote), ps.stream(Quote), quotes) == quotes
    mixed = [{"symbol": "PEN", "price": 1.5}, Trade("STK", 2.0, 1)]
    assert pushed(ps.PushSource(schema=Trade), ps.stream(Trade), mixed) == [
        {"symbol": "PEN", "price": 1.5, "size": None},
        {"symbol": "STK", "price": 2.0, "size": 1},
    ]
    assert pushed(ps.PushSource(schema=Trade), ps.stream(Trade), [], TRADES) == ROWS
    with pytest.raises(TypeError, match=r"PushSource\(schema=...\)"):
        ps.PushSource().push([{"at": 1}])


def test_run_takes_objects_and_iterables_of_them() -> None:
    stream = ps.stream(Trade)

    def one_by_one() -> Iterator[Trade]:
        yield from TRADES

    def in_lists() -> Iterator[list[Trade]]:
        yield TRADES[:2]
        yield TRADES[2:]

    async def awaited() -> AsyncIterator[Trade]:
        for trade in TRADES:
            yield trade

    for data in (TRADES, tuple(TRADES), one_by_one(), in_lists(), awaited(), [TRADES[:1], TRADES[1:]]):
        assert stream.run(data).to_pylist() == ROWS
    assert stream.run(TRADES[0]).to_pylist() == ROWS[:1]
    cheap = stream.filter(col("price") < 2).run(iter(TRADES))
    assert cheap.to_pylist() == ROWS[:1]


def test_all_types_of_values_come_out_as_they_went_in() -> None:
    @dataclasses.dataclass
    class Row:
        flag: bool
        raw: bytes
        at: dt.datetime
        day: dt.date
        hour: dt.time
        took: dt.timedelta
        amount: Annotated[decimal.Decimal, "decimal128(10, 2)"]
        zoned: Annotated[dt.datetime, "timestamp[us, tz=UTC]"]

    rows = [
        Row(
            True,
            b"\x00",
            dt.datetime(2024, 5, 1, 12, 0, 0, 250),
            dt.date(2024, 5, 1),
            dt.time(12, 30),
            dt.timedelta(milliseconds=1500),
            decimal.Decimal("1.50"),
            dt.datetime(2024, 5, 1, tzinfo=dt.UTC),
        )
    ]
    assert ps.stream(Row).run(rows).to_pylist() == [dataclasses.asdict(row) for row in rows]


def test_a_value_of_another_type_is_named() -> None:
    wrong: Any = "dear"
    with pytest.raises(TypeError, match=r"item 1 of data: 'price' takes double, not str 'dear'"):
        ps.PushSource().push([TRADES[0], Trade("PEN", wrong)])
    with pytest.raises(TypeError, match=r"item 0 of data: 'size' takes int64"):
        ps.PushSource().push([Trade("PEN", 1.0, 2**70)])
    missing: Any = None
    with pytest.raises(ps.SchemaMismatchError, match="item 1 of data has no 'symbol'") as caught:
        ps.PushSource().push([TRADES[0], Trade(missing, 1.0)])
    assert caught.value.column == "symbol"
    with pytest.raises(ps.SchemaMismatchError, match="has no 'price'"):
        ps.PushSource(schema=Trade).push([{"symbol": "PEN"}])


def test_rows_that_come_together_are_of_one_class() -> None:
    with pytest.raises(TypeError, match="item 1 of data is Tick, and the first is Trade"):
        ps.PushSource().push([TRADES[0], Tick(1, 2)])
    with pytest.raises(TypeError, match="item 1 of data is int"):
        ps.PushSource(schema=Trade).push([TRADES[0], 3])


def test_time_zones_are_not_guessed() -> None:
    @dataclasses.dataclass
    class Plain:
        at: dt.datetime

    @dataclasses.dataclass
    class Zoned:
        at: Annotated[dt.datetime, "timestamp[us, tz=UTC]"]

    there, nowhere = dt.datetime(2024, 5, 1, tzinfo=dt.UTC), dt.datetime(2024, 5, 1)
    for row in (Plain(there), Zoned(nowhere)):
        with pytest.raises(TypeError, match="time zone"):
            ps.PushSource().push([row])
    assert ps.PushSource().push([Plain(nowhere)])
    assert ps.PushSource().push([Zoned(there)])


def test_without_pyarrow_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pyarrow"):
        ps.PushSource().push([Tick(1, 2)])


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Data with fields of its own, which is no row."""

    stop: int

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": pa.array(range(self.stop), pa.int64())})


@dataclasses.dataclass(frozen=True)
class Wrapped:
    """Arrow data with fields of its own."""

    table: pa.Table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("data", [Numbers(3), Wrapped(pa.table({"n": [0, 1, 2]}))])
def test_data_that_is_a_dataclass_is_data(data: Any) -> None:
    plan = ps.stream({"n": "int64"})
    assert plan.run(data).to_pylist() == [{"n": 0}, {"n": 1}, {"n": 2}]
    with ps.Engine(workers=1) as engine:
        query = engine.submit(plan, source=data, sink="collect")
        assert len(query.result()) == 3
