"""Streams cut into windows, to be aggregated per window and key."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, final

from penstock import _penstock
from penstock.exceptions import PlanError
from penstock.expr._frozen import Frozen
from penstock.expr.aggregates import Aggregate
from penstock.expr.durations import Duration, normalise_duration
from penstock.expr.expression import Expr
from penstock.plan._arguments import read_aggregate, read_column
from penstock.plan.hints import missing_of_windowed
from penstock.plan.windows import Window

if TYPE_CHECKING:
    from penstock.plan.stream import Stream

__all__ = ["CoGroupedStream", "WindowedStream"]


@final
class WindowedStream(Frozen):
    """A stream cut into windows, to be aggregated per window and key. Made by `Stream.window`.

    Example:
        >>> import penstock as ps
        >>> ps.stream({"at": "int64", "ad": "int64"}, time="at").window(ps.tumbling(10), by="ad")
        penstock.WindowedStream: tumbling(10) by [col("ad")]; .agg(...) makes it a stream again
    """

    __slots__ = ("_close_after", "_keys", "_lateness", "_plan", "_window")

    _plan: _penstock.Plan
    _window: Window
    _keys: tuple[Expr, ...]
    _lateness: str | int
    _close_after: str | int | None

    def __init__(
        self,
        plan: _penstock.Plan,
        window: Window,
        keys: Sequence[Expr],
        allowed_lateness: Duration,
        close_after: Duration | None,
    ) -> None:
        lateness = normalise_duration(allowed_lateness, "allowed_lateness")
        closes = None if close_after is None else normalise_duration(close_after, "close_after")
        self._fill(_plan=plan, _window=window, _keys=tuple(keys), _lateness=lateness, _close_after=closes)

    if not TYPE_CHECKING:  # a type checker is to know what is not there

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise missing_of_windowed(self, name)

    def agg(self, /, *aggregates: Aggregate, **named: Aggregate) -> "Stream":
        """Makes one row of each window and key.

        Args:
            *aggregates: Aggregates under their own names, such as "count" or "price_sum"; `alias` changes
                them. With a key there may be none: then each key that occurs gives a row.
            **named: Aggregates with the names they are to have.

        Returns:
            A pipeline with the columns window_start, window_end, the keys and the aggregates. Its time column
            is window_end, and the time of a row the last tick before it, so that the windows of a downstream
            `window` contain the results of whole windows. With `allowed_lateness` there is another column,
            is_correction, and no time column: a result could be corrected after downstream windows had
            closed.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: An aggregate does not go with the type of its column.
            PlanError: Two columns would have the same name; or all rows of a window have one time, so that
                there is no `first` and no `last` of them.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> sales = ps.stream({"at": "int64", "price": "int64"}, time="at").window(ps.tumbling(10))
            >>> totals = sales.agg(ps.count(), total=ps.sum("price"))
            >>> totals.run(pa.table({"at": [1, 2], "price": [5, 6]})).to_pylist()
            [{'window_start': 0, 'window_end': 10, 'count': 2, 'total': 11}]
        """
        from penstock.plan.stream import Stream

        chosen = [read_aggregate(item) for item in aggregates]
        chosen += [read_aggregate(item).alias(name) for name, item in named.items()]
        keys = [key._native for key in self._keys]
        natives = [item._native for item in chosen]
        window = self._window._native
        return Stream(self._plan.window(window, keys, natives, self._lateness, self._close_after))

    def top_k(self, k: int, by: str | Expr, *, smallest: bool = False) -> "Stream":
        """Keeps the first rows of each window and key, in the order of some column.

        Args:
            k: How many rows.
            by: What they are ordered by: a column name or an expression. Rows where it is null have no place.
                Where it is equal, the other columns decide, from left to right, null and then the smaller
                value first: so the result does not depend on the order in which rows come.
            smallest: True keeps the smallest instead of the largest.

        Returns:
            A pipeline with the columns window_start, window_end, the keys, rank (from 1) and the other
            columns of the stream. Bounds of windows that the stream has brought along are left out: rename
            them to keep them.

        Raises:
            UnknownColumnError: The stream has no such column.
            PlanError: The windows are sessions, or were given `allowed_lateness` or `close_after`; k is not
                positive, or two columns would have the same name.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> cars = ps.stream({"at": "int64", "road": "string", "speed": "int64"}, time="at")
            >>> fastest = cars.window(ps.tumbling(10), by="road").top_k(1, "speed").select("road", "speed")
            >>> data = pa.table({"at": [1, 2, 3], "road": ["a", "a", "b"], "speed": [70, 90, 50]})
            >>> sorted((row["road"], row["speed"]) for row in fastest.run(data).to_pylist())
            [('a', 90), ('b', 50)]
        """
        from penstock.plan.stream import Stream

        if self._lateness != 0 or self._close_after is not None:
            given = "allowed_lateness" if self._lateness != 0 else "close_after"
            raise PlanError(f"top_k() takes no {given}=: leave it out of window(), or use agg()")
        if type(k) is not int:
            raise TypeError(f"top_k() takes a whole number, not {type(k).__name__} {k!r}")
        keys = [key._native for key in self._keys]
        order = read_column("top_k", by)._native
        return Stream(self._plan.top_k(self._window._native, keys, max(k, 0), order, not smallest))

    def __repr__(self) -> str:
        keys = f" by {list(self._keys)!r}" if self._keys else ""
        return f"penstock.WindowedStream: {self._window!r}{keys}; .agg(...) makes it a stream again"


@final
class CoGroupedStream(Frozen):
    """Two streams by window and key, to be aggregated together. Made by `Stream.cogroup`.

    Example:
        >>> import penstock as ps
        >>> asks, bids = (ps.stream({"at": "int64", "n": "int64"}, time="at", name=n) for n in "ab")
        >>> asks.cogroup(bids, window=ps.tumbling(10), by="n")
        penstock.CoGroupedStream: tumbling(10) by [col("n")]; .agg(...) makes it a stream again
    """

    __slots__ = ("_keys", "_plans", "_window")

    _plans: tuple[_penstock.Plan, _penstock.Plan]
    _window: Window
    _keys: tuple[tuple[Expr, ...], tuple[Expr, ...]]

    def __init__(
        self,
        plans: tuple[_penstock.Plan, _penstock.Plan],
        window: Window,
        keys: tuple[Sequence[Expr], Sequence[Expr]],
    ) -> None:
        self._fill(_plans=plans, _window=window, _keys=(tuple(keys[0]), tuple(keys[1])))

    if not TYPE_CHECKING:  # a type checker is to know what is not there

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise missing_of_windowed(self, name, keys=False)

    def agg(
        self, *, left: Mapping[str, Aggregate] | None = None, right: Mapping[str, Aggregate] | None = None
    ) -> "Stream":
        """Makes one row of each window and key that either stream has.

        Args:
            left: Aggregates over the first stream, by the names they are to have.
            right: The same over the second stream. If a stream has no row of a key, counts are 0 and all
                other aggregates null.

        Returns:
            A pipeline with the columns window_start, window_end, the keys, the aggregates of the first stream
            and those of the second. Its time column is window_end, as for `WindowedStream.agg`.

        Raises:
            UnknownColumnError: A stream has no such column.
            TypeMismatchError: An aggregate does not go with the type of its column, or the keys of the two
                streams differ in type.
            PlanError: Two columns would have the same name.

        Example:
            >>> import penstock as ps
            >>> asks, bids = (ps.stream({"at": "int64", "n": "int64"}, time="at", name=n) for n in "ab")
            >>> both = asks.cogroup(bids, window=ps.tumbling(10)).agg(left={"asks": ps.count()})
            >>> both.schema.names
            ['window_start', 'window_end', 'asks']
        """
        from penstock.plan.stream import Stream

        def chosen(aggregates: Mapping[str, Aggregate] | None) -> list[_penstock.Aggregate]:
            return [read_aggregate(item).alias(name)._native for name, item in (aggregates or {}).items()]

        first, second = self._plans
        keys = ([key._native for key in self._keys[0]], [key._native for key in self._keys[1]])
        return Stream(first.cogroup(second, self._window._native, keys, (chosen(left), chosen(right))))

    def __repr__(self) -> str:
        left, right = self._keys
        same = repr(left) == repr(right)
        both = f"{list(left)!r}" if same else f"{list(left)!r} and {list(right)!r}"
        keys = f" by {both}" if left else ""
        return f"penstock.CoGroupedStream: {self._window!r}{keys}; .agg(...) makes it a stream again"
