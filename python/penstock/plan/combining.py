"""Steps that combine streams, and rows by time."""

import operator
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from penstock import _penstock
from penstock.expr._frozen import Frozen
from penstock.expr.durations import Duration
from penstock.expr.expression import Expr
from penstock.io.protocols import ArrowArray, ArrowStream, _LazyBatches, _Readable, _Scannable
from penstock.plan._arguments import read_keys, read_names, read_predicate
from penstock.plan.windowed import CoGroupedStream, WindowedStream
from penstock.plan.windows import Window

if TYPE_CHECKING:
    from penstock.plan.stream import Stream

__all__ = ["CombiningSteps", "Keys", "union"]

_TABLES = (ArrowStream, ArrowArray, _LazyBatches, _Scannable, _Readable)

Keys: TypeAlias = str | Expr | Sequence[str | Expr] | None


class CombiningSteps(Frozen):
    """The part of a `Stream` that combines streams, and rows by time.

    Example:
        >>> import penstock as ps
        >>> north, south = (ps.stream({"at": "int64"}, time="at", name=name) for name in ("north", "south"))
        >>> north.union(south).window(ps.tumbling(10)).agg(ps.count()).schema.names
        ['window_start', 'window_end', 'count']
    """

    __slots__ = ()

    _plan: _penstock.Plan

    def _alike(self, plan: _penstock.Plan) -> Self:
        return type(self)(plan)  # type: ignore[call-arg]  # a Stream is made of its plan

    def union(self, *others: "Stream") -> Self:
        """Merges the rows of this stream and of others, as they arrive.

        Rows keep the watermark of their own source: a row that is late there is late after the union, too. A
        downstream window closes when the watermarks of all streams have reached its end.

        Args:
            *others: Streams with the same columns in the same order, and the same time column.

        Returns:
            The pipeline of all of them.

        Raises:
            PlanError: Their columns or time columns differ, or two of them read streams that cannot be told
                apart by name.
            TypeMismatchError: A column has different types.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> north = ps.stream({"price": "int64"}, name="north")
            >>> south = ps.stream({"price": "int64"}, name="south")
            >>> data = {"north": pa.table({"price": [1]}), "south": pa.table({"price": [2]})}
            >>> sorted(row["price"] for row in north.union(south).run(data).to_pylist())
            [1, 2]
        """
        for other in others:
            _check_stream("union", other)
        return self._alike(_penstock.Plan.union([self._plan, *(other._plan for other in others)]))

    def split(self, *predicates: Expr) -> tuple[Self, ...]:
        """Splits the stream: each row goes to the first output whose predicate is true for it.

        Args:
            *predicates: Boolean expressions; null is not true.

        Returns:
            A pipeline for each predicate, and a last one for the rows for which none is true. They read the
            same rows: whatever comes before is done once when they run together, see `penstock.outputs`.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: A predicate is not boolean, or its types do not go together.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> cheap, dear = ps.stream({"price": "int64"}).split(ps.col("price") < 10)
            >>> both = ps.outputs(cheap=cheap, dear=dear).run(pa.table({"price": [5, 50, None]}))
            >>> both["cheap"].to_pylist(), both["dear"].rows_out
            ([{'price': 5}], 2)
        """
        if not predicates:
            raise TypeError("split() takes at least one predicate")
        tests = [read_predicate("split", predicate) for predicate in predicates]
        # Null is not true, and not false either: it is made false before it is turned around.
        others = [~test.fill_null(False) for test in tests]
        parts = [reduce(operator.and_, [*others[:number], test]) for number, test in enumerate(tests)]
        parts.append(reduce(operator.and_, others))
        return tuple(self._alike(self._plan.filter(part._native)) for part in parts)

    def window(
        self,
        window: Window,
        *,
        by: Keys = None,
        allowed_lateness: Duration = 0,
        close_after: Duration | None = None,
    ) -> WindowedStream:
        """Cuts the stream into windows of time, and within a window by keys.

        Args:
            window: The windows, as made by `penstock.tumbling`, `penstock.sliding` or `penstock.session`.
            by: The key: a column name, an expression, or a list of these. Null is a key like any other.
                Without it, a window is one group.
            allowed_lateness: For how long after its end a window still takes rows in: a duration such as
                "1m", or a whole number in units of the time column. Its result comes as early as without;
                if rows came after that, a second row corrects it when the time is over. The column
                "is_correction" tells the two apart. Sessions take none.
            close_after: After so much time without rows, such as "5s", windows close by the clock. Rows that
                come for them later are late.

        Returns:
            The windows, which `WindowedStream.agg` turns into rows.

        Raises:
            MissingTimeColumnError: The stream has no time column.
            UnknownColumnError: The stream has no such column.
            DurationError: The size of the window is not positive, or does not go with the type of the time
                column.

        Example:
            >>> import penstock as ps
            >>> clicks = ps.stream({"at": "timestamp[ms]", "ad": "int64"}, time="at")
            >>> clicks.window(ps.tumbling("10s"), by="ad").agg(clicks=ps.count()).schema.names
            ['window_start', 'window_end', 'ad', 'clicks']
        """
        _check_window("window", window)
        keys = read_keys(by)
        self._plan.check_window(window._native, [key._native for key in keys])
        return WindowedStream(self._plan, window, keys, allowed_lateness, close_after)

    def join(
        self,
        other: "Stream",
        *,
        window: Window | None = None,
        on: str | Sequence[str] | None = None,
        left_on: str | Sequence[str] | None = None,
        right_on: str | Sequence[str] | None = None,
        how: Literal["inner", "left", "right", "full"] = "inner",
        suffix: str = "_right",
    ) -> Self:
        """Pairs each row with the rows of another stream that have the same key in the same window.

        Pairs leave as soon as both rows are there; rows without a partner when their window closes. The time
        of a pair is the last tick of its window; the times of its two rows are columns like any other. So all
        pairs of a window have one time, and there is no `first` or `last` of them: see `penstock.last`.

        Args:
            other: The other stream. Both have times of the same type.
            window: The windows: tumbling or sliding. There has to be one.
            on: The key: a column, or several, that both streams have. Null matches nothing.
            left_on: The key in this stream, if it has another name in the other one.
            right_on: The key in the other stream, in the same order.
            how: Which rows without a partner are kept, with nulls in the place of the partner's columns:
                none ("inner"), those of this stream ("left"), of the other one ("right"), or of both
                ("full").
            suffix: The suffix for columns of the other stream whose names this one has, too.

        Returns:
            A pipeline with the columns window_start and window_end, the key under its name in this stream,
            the other columns of this stream and those of the other one. Bounds of windows that the streams
            have brought along are left out: rename them to keep them.

        Raises:
            MissingTimeColumnError: One of the streams has no time column.
            UnknownColumnError: One of them has no such column.
            TypeMismatchError: Keys or times have different types.
            PlanError: The windows are sessions, there is no key, or two columns would have the same name.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> asks = ps.stream({"at": "int64", "item": "string", "price": "int64"}, time="at", name="asks")
            >>> bids = ps.stream({"at": "int64", "item": "string", "offer": "int64"}, time="at", name="bids")
            >>> pairs = asks.join(bids, window=ps.tumbling(10), on="item").select("item", "price", "offer")
            >>> asked = pa.table({"at": [1], "item": ["pen"], "price": [5]})
            >>> offered = pa.table({"at": [3, 12], "item": ["pen", "pen"], "offer": [4, 6]})
            >>> pairs.run({"asks": asked, "bids": offered}).to_pylist()
            [{'item': 'pen', 'price': 5, 'offer': 4}]
        """
        _check_stream("join", other)
        window = _read_window("join", window)
        if on is not None and (left_on is not None or right_on is not None):
            raise TypeError("join() takes either on= or left_on= and right_on=")
        left = read_names("on" if left_on is None else "left_on", on if left_on is None else left_on)
        right = read_names("on" if right_on is None else "right_on", on if right_on is None else right_on)
        if not isinstance(suffix, str):
            raise TypeError(f"suffix takes a string, not {type(suffix).__name__}")
        return self._alike(self._plan.join(other._plan, window._native, (left, right), how, suffix))

    def cogroup(
        self,
        other: "Stream",
        *,
        window: Window | None = None,
        by: Keys = None,
        left_by: Keys = None,
        right_by: Keys = None,
    ) -> CoGroupedStream:
        """Brings the rows of two streams together by window and key, to aggregate each of them.

        Args:
            other: The other stream. Both have times of the same type.
            window: The windows. There have to be some.
            by: The key: a column name, an expression, or a list of these, in both streams. Null is a key like
                any other.
            left_by: The key in this stream, if it is called differently in the other one.
            right_by: The key in the other stream, in the same order.

        Returns:
            The groups, which `CoGroupedStream.agg` turns into rows.

        Raises:
            MissingTimeColumnError: One of the streams has no time column.
            UnknownColumnError: One of them has no such column.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> sold = ps.stream({"at": "int64", "item": "string"}, time="at", name="sold")
            >>> seen = ps.stream({"at": "int64", "item": "string"}, time="at", name="seen")
            >>> both = sold.cogroup(seen, window=ps.tumbling(10), by="item").agg(
            ...     left={"sold": ps.count()}, right={"seen": ps.count()}
            ... )
            >>> one, two = pa.table({"at": [1], "item": ["a"]}), pa.table({"at": [2, 3], "item": ["a", "a"]})
            >>> both.run({"sold": one, "seen": two}).to_pylist()
            [{'window_start': 0, 'window_end': 10, 'item': 'a', 'sold': 1, 'seen': 2}]
        """
        _check_stream("cogroup", other)
        window = _read_window("cogroup", window)
        if by is not None and (left_by is not None or right_by is not None):
            raise TypeError("cogroup() takes either by= or left_by= and right_by=")
        left, right = (
            read_keys(by if left_by is None else left_by),
            read_keys(by if right_by is None else right_by),
        )
        self._plan.check_window(window._native, [key._native for key in left])
        other._plan.check_window(window._native, [key._native for key in right])
        return CoGroupedStream((self._plan, other._plan), window, (left, right))

    def split_late(self) -> tuple[Self, Self]:
        """Returns this pipeline, and a second one of the rows that came too late for its window.

        Returns:
            The pipeline itself and that of its late rows, with the columns that went into the window. Run
            them together with `penstock.outputs`: then the window is there once. Late rows have no time
            column: they are below the watermark everywhere.

        Raises:
            PlanError: There is no window of one stream at the end of the pipeline, with nothing but filters,
                selections and lookups behind it.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> counts = ps.stream({"at": "int64"}, time="at").window(ps.tumbling(10)).agg(ps.count())
            >>> result, late = counts.split_late()
            >>> both = ps.outputs(result=result, late=late).run(pa.table({"at": [5, 25, 7]}))
            >>> both["late"].to_pylist()
            [{'at': 7}]
        """
        return self, self._alike(self._plan.late())


def union(*streams: "Stream") -> "Stream":
    """Merges the rows of several streams, as they arrive: see `Stream.union`.

    Args:
        *streams: Streams with the same columns in the same order, and the same time column.

    Returns:
        The pipeline of all of them.

    Raises:
        TypeError: There is no stream, or something else.
        PlanError: Their columns or time columns differ.

    Example:
        >>> import penstock as ps
        >>> north, south = (ps.stream({"price": "int64"}, name=name) for name in ("north", "south"))
        >>> ps.union(north, south).schema.names
        ['price']
    """
    if not streams:
        raise TypeError("union() takes at least one stream")
    _check_stream("union", streams[0])
    return streams[0].union(*streams[1:])


def _check_stream(method: str, other: object) -> None:
    if isinstance(other, CombiningSteps):
        return
    hint = ""
    if isinstance(other, _TABLES) and not isinstance(other, type):
        hint = ": declare its rows, stream(table.schema, name=...), and give the table as the data of that"
        if method == "join":
            hint = ": a table in memory is brought in by lookup(table, on=...)"
    raise TypeError(f"{method}() takes a Stream, not {type(other).__name__}{hint}")


def _read_window(method: str, window: object) -> Window:
    if window is None:
        raise TypeError(
            f'{method}() needs a window, as in {method}(other, window=tumbling("10s"), ...): rows of streams '
            "wait for each other as long as that"
        )
    _check_window(method, window)
    assert isinstance(window, Window)
    return window


def _check_window(method: str, window: object) -> None:
    if not isinstance(window, Window):
        raise TypeError(
            f"{method}() takes a window such as tumbling({window!r}), not {type(window).__name__}"
        )
