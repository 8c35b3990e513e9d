"""What people try because other libraries have it is answered with what to write here."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import penstock as ps


def col(name: str) -> Any:
    return ps.col(name)


TABLE: Any = pa.table({"k": [1, 2], "v": [1.0, 2.0], "s": ["a", "b"]})
# `Any`: a type checker knows that none of this is there.
STREAM: Any = ps.stream(TABLE.schema)
TIMED: Any = ps.stream({"at": "timestamp[ms]", "n": "int64"}, time="at")
WINDOWED: Any = ps.stream(TABLE.schema, time="k").window(ps.tumbling(10))
COGROUPED: Any = ps.stream(TABLE.schema, time="k", name="a").cogroup(
    ps.stream(TABLE.schema, time="k", name="b"), window=ps.tumbling(10)
)


def of_query(name: str) -> object:
    with ps.Engine(workers=1) as engine:
        return getattr(engine.submit(STREAM, source=TABLE, sink="collect"), name)


WHEN: Any = ps.when
SERIES = "this Series is one column, of int64, and not rows"
TRIED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "text as predicate": (lambda: STREAM.filter("v > 3"), TypeError, r'write col\("v"\) > 3'),
    "sql equality": (lambda: STREAM.filter("v = 3"), TypeError, r'write col\("v"\) == 3'),
    "column name as predicate": (lambda: STREAM.filter("v"), TypeError, r'written col\("v"\)'),
    "other text as predicate": (lambda: STREAM.filter("a or b"), TypeError, r'col\("price"\) > 3'),
    "identity with None": (lambda: STREAM.filter(col("k") is None), TypeError, r"got False.*x\.is_null\(\)"),
    "no identity with None": (lambda: STREAM.filter(col("k") is not None), TypeError, r"is_not_null\(\)"),
    "bool among predicates": (lambda: STREAM.filter(col("k") > 1, True), TypeError, r"lit\(True\)"),
    "split by identity": (lambda: STREAM.split(col("k") is None), TypeError, r"split\(\) got False.*is_null"),
    "when with identity": (lambda: WHEN(col("k") is None), TypeError, r"x\.is_null\(\).*lit\(False\)"),
    "next when with identity": (
        lambda: WHEN(col("k") > 1).then(1).when(col("k") is None), TypeError, r"x\.is_null\(\)"
    ),
    "function as predicate": (lambda: STREAM.filter(lambda row: row["v"] > 3), TypeError, "map_batches"),
    "function as column": (lambda: STREAM.with_columns(w=lambda row: row["v"]), TypeError, "map_batches"),
    "in a list": (lambda: STREAM.filter(col("k") in [1, 2]), TypeError, r"x\.is_in\(\[\.\.\.\]\)"),
    "join with a table": (lambda: STREAM.join(TABLE, on="k"), TypeError, r"lookup\(table, on="),
    "join with a frame": (lambda: STREAM.join(pl.DataFrame({"k": [1]})), TypeError, r"lookup\(table, on="),
    "join with a lazy frame": (lambda: STREAM.join(pl.LazyFrame()), TypeError, r"lookup\(table, on="),
    "join with a dataset": (
        lambda: STREAM.join(pyarrow.dataset.dataset(TABLE)), TypeError, r"lookup\(table, on="
    ),
    "union with a table": (lambda: STREAM.union(TABLE), TypeError, r"stream\(table\.schema, name="),
    "union of tables": (lambda: ps.union(TABLE, TABLE), TypeError, r"stream\(table\.schema, name="),
    "cogroup with a table": (lambda: STREAM.cogroup(TABLE), TypeError, r"stream\(table\.schema, name="),
    "join without a window": (lambda: STREAM.join(STREAM, on="k"), TypeError, r"window=tumbling"),
    "cogroup without a window": (lambda: STREAM.cogroup(STREAM, by="k"), TypeError, r"window=tumbling"),
    "group_by": (lambda: STREAM.group_by("k"), AttributeError, r"\.window\(tumbling.*by=.*\.agg"),
    "groupby": (lambda: STREAM.groupby("k"), AttributeError, r"\.window\("),
    "agg": (lambda: STREAM.agg(ps.count()), AttributeError, r"\.window\("),
    "where": (lambda: STREAM.where(col("k") > 1), AttributeError, r"\.filter\("),
    "collect": (lambda: STREAM.collect(), AttributeError, r"\.run\(data\)"),
    "sort": (lambda: STREAM.sort("k"), AttributeError, "top_k"),
    "misspelt step": (lambda: STREAM.filtr(col("k") > 1), AttributeError, "did you mean 'filter'"),
    "sum of a column": (lambda: col("v").sum(), AttributeError, r"\.agg\(penstock\.sum\("),
    "count of a column": (lambda: col("v").count(), AttributeError, r"\.agg\(penstock\.count\(\)"),
    "n_unique": (lambda: col("v").n_unique(), AttributeError, "count_distinct"),
    "text function": (lambda: col("s").lower(), AttributeError, r"\.str\.lower"),
    "time function": (lambda: col("s").year(), AttributeError, r"\.dt\.year"),
    "isin": (lambda: col("s").isin(["a"]), AttributeError, r"\.is_in\("),
    "astype": (lambda: col("s").astype("int64"), AttributeError, r"\.cast\("),
    "misspelt function": (lambda: col("s").is_nul(), AttributeError, "did you mean 'is_null'"),
    "count of a window": (lambda: WINDOWED.count(), AttributeError, r"said by \.agg\(count\(\)\)"),
    "sum of a window": (lambda: WINDOWED.sum("v"), AttributeError, r'said by \.agg\(sum\("\.\.\."\)\)'),
    "mean of a window": (lambda: WINDOWED.mean("v"), AttributeError, r"said by \.agg\(mean\("),
    "keys of a window": (lambda: WINDOWED.group_by("k"), AttributeError, r"by="),
    "first rows of a window": (lambda: WINDOWED.sort("v"), AttributeError, "top_k"),
    "rows of a window": (lambda: WINDOWED.filter(col("k") > 1), AttributeError, "makes it a stream again"),
    "misspelt aggregation": (lambda: WINDOWED.aggr(ps.count()), AttributeError, "did you mean 'agg'"),
    "count of a co-group": (lambda: COGROUPED.count(), AttributeError, r'agg\(left=\{"name": count\(\)\}\)'),
    "frame of a query": (lambda: of_query("to_pandas"), AttributeError, r'sink="collect".*\.to_pandas\(\)'),
    "rows of a query": (lambda: of_query("to_pylist"), AttributeError, r"\.result\(\)\.to_pylist\(\)"),
    "collect of a query": (lambda: of_query("collect"), AttributeError, r"are \.result\(\)"),
    "cancel of a query": (lambda: of_query("cancel"), AttributeError, r"\.stop\(\)"),
    "misspelt result": (lambda: of_query("resullt"), AttributeError, "did you mean 'result'"),
    "all columns": (lambda: STREAM.select("*"), ps.PlanError, r"stream\.schema\.names"),
    "all columns and one": (lambda: STREAM.select("*", x=col("k")), ps.PlanError, "with_columns"),
    "equal to None": (lambda: col("k") == None, TypeError, r'col\("k"\)\.is_null\(\)'),  # noqa: E711
    "None is equal": (lambda: None == col("k"), TypeError, r"is_null\(\)"),  # noqa: E711, SIM300
    "other than None": (lambda: col("k") != None, TypeError, r"is_not_null\(\)"),  # noqa: E711
    "less than None": (lambda: col("k") < None, TypeError, r'col\("k"\) < None would be null.*is_null\(\)'),
    "at most None": (lambda: col("k") <= None, TypeError, r'col\("k"\) <= None would be null'),
    "more than None": (lambda: col("k") > None, TypeError, r'col\("k"\) > None would be null'),
    "at least None": (lambda: col("k") >= None, TypeError, r'col\("k"\) >= None would be null'),
    "None is less": (lambda: col("k") > None, TypeError, r'col\("k"\) > None would be null'),
    "between None": (lambda: col("k").between(None, 3), TypeError, "null for every row"),
    "time as expression": (lambda: ps.stream(TABLE.schema, time=col("k")), TypeError, "source=query"),
    "time as text": (lambda: ps.stream(TABLE.schema, time="s"), ps.TypeMismatchError, "source=query"),
    "computed time": (
        lambda: STREAM.with_columns(at=col("s").cast("timestamp[ms]")).window(ps.tumbling("1s")),
        ps.MissingTimeColumnError,
        r'"at" is computed here.*time="at"\) and source=query',
    ),
    "renamed time": (
        lambda: ps.stream({"at": "timestamp[ms]"}).rename(at="when").window(ps.tumbling("1s")),
        ps.MissingTimeColumnError,
        "it could be: at",
    ),
    "declared time": (
        lambda: ps.stream({"at": "date32"}).window(ps.tumbling("1d")),
        ps.MissingTimeColumnError,
        "it could be: at",
    ),
    "computed time beside another": (
        lambda: ps.stream({"day": "date32", "s": "string"}).with_columns(at=col("s").cast("timestamp[ms]"))
        .window(ps.tumbling("1s")),
        ps.MissingTimeColumnError,
        r'it could be: day.*"at" is computed here.*time="at"\) and source=query',
    ),
    "dropped time": (
        lambda: TIMED.drop("at").window(ps.tumbling("1s")),
        ps.MissingTimeColumnError,
        r'^the time column "at" was dropped: keep it',
    ),
    "time that is not selected": (
        lambda: TIMED.filter(col("n") > 1).select("n").filter(col("n") > 2).window(ps.tumbling("1s")),
        ps.MissingTimeColumnError,
        r'^the time column "at" was dropped: keep it',
    ),
    "time that is computed anew": (
        lambda: TIMED.select(at=col("at") + timedelta(1)).window(ps.tumbling("1s")),
        ps.MissingTimeColumnError,
        r'^the time column "at" was replaced by another of that name',
    ),
    "time that a function leaves out": (
        lambda: TIMED.map_batches(lambda batch: batch, schema={"n": "int64"}).window(ps.tumbling("1s")),
        ps.MissingTimeColumnError,
        r'^the time column "at" was not given back by the function of map_batches\(\)',
    ),
    "dropped end of a window": (
        lambda: TIMED.window(ps.tumbling("1s")).agg(n=ps.count()).select("n").window(ps.tumbling("1s")),
        ps.MissingTimeColumnError,
        r'^the time column "window_end" was dropped: keep it',
    ),
    "no time": (lambda: STREAM.window(ps.tumbling(1)), ps.MissingTimeColumnError, r'time="..."\)$'),
    "series of polars": (lambda: STREAM.run(pl.Series("k", [1])), ps.InputError, SERIES),
    "series of pandas": (lambda: STREAM.run(pd.Series([1])), ps.InputError, SERIES),
    "chunked array": (lambda: STREAM.run(TABLE["k"]), ps.InputError, "ChunkedArray is one column, of int64"),
    "array": (lambda: STREAM.run(pa.array([1])), ps.InputError, "Int64Array is one column"),
    "pushed series": (lambda: ps.PushSource().push(pl.Series([1])), ps.InputError, SERIES),
    "lookup in a series": (lambda: STREAM.lookup(pl.Series([1]), on="k"), ps.InputError, SERIES),
}  # fmt: skip


@pytest.mark.parametrize("name", TRIED)
def test_the_error_says_what_to_write(name: str) -> None:
    attempt, kind, words = TRIED[name]
    with pytest.raises(kind, match=words):
        attempt()


def test_what_is_asked_for_behind_the_scenes_has_no_hints() -> None:
    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=TABLE, sink="collect")
        query.wait()
    for thing in (STREAM, col("k"), WINDOWED, COGROUPED, query):
        for name in ("__array__", "__dataframe__", "_repr_png_", "__len__"):
            assert not hasattr(thing, name)
        assert not hasattr(thing, "dtype")
    assert copy.copy(STREAM) is STREAM
    assert pickle.loads(pickle.dumps(STREAM)) == STREAM


def test_null_is_still_a_value() -> None:
    assert repr(col("k") == ps.lit(None)) == 'col("k") == null'
    found = STREAM.select(r=col("k").is_in([1, None])).run(TABLE)
    assert [row["r"] for row in found.to_pylist()] == [True, None]
