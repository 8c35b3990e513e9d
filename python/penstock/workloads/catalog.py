"""Every workload by name: the tables that can be generated, and the queries over them.

The data pipeline generates, records and checks what this catalog lists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from penstock import _penstock
from penstock.expr.durations import Duration
from penstock.plan.stream import Stream
from penstock.workloads import cm, ipq, lrb, me, nexmark, nyt, sg, ysb
from penstock.workloads.generated import Generated

__all__ = ["CATALOG", "Option", "Query", "Workload", "workload"]

Option: TypeAlias = int | float | bool
"""What a generator can be told beside rows, seed and start."""

# A row that `late_every` moves goes back by so much at most, beside the disorder that all rows have.
_MAX_LATE_MS = 60_000
# No query waits for less, unless it is told to.
_USUAL_DELAY_MS = 2_000


@dataclass(frozen=True)
class Query:
    """A query of a workload.

    Attributes:
        name: What it is called, e.g. "q5".
        build: Makes its plan, from the seed of the data and the delay; None is the delay it usually has.
        tables: The tables it reads.
        keys: The columns of its result that tell one row from another.

    Example:
        >>> import penstock as ps
        >>> query = ps.workloads.catalog.workload("nyt").queries["nyt"]
        >>> query.build(7, "5s").schema.names
        ['window_start', 'window_end', 'pickup_cell', 'trips', 'mean_distance']
        >>> query.tables, query.keys
        (('trips',), ('window_start', 'window_end', 'pickup_cell'))
    """

    name: str
    build: Callable[[int, Duration | None], Stream]
    tables: tuple[str, ...]
    keys: tuple[str, ...]


def _all_of_them(table: str, rows: int) -> int:
    return rows


@dataclass(frozen=True)
class Workload:
    """A workload: tables that can be generated, and queries over them.

    Attributes:
        name: What it is called, e.g. "ysb".
        tables: The generator of each table, called with the rows, and `seed`, `start` and options by name.
        queries: The queries by name.
        split: How many rows of a table there are among so many of the whole data set.

    Example:
        >>> import penstock as ps
        >>> nexmark = ps.workloads.catalog.workload("nexmark")
        >>> list(nexmark.tables)
        ['person', 'auction', 'bid']
        >>> bids = nexmark.tables["bid"](1_000, seed=3)
        >>> nexmark.queries["q2"].build(3, None).run({"bid": bids}).rows_in
        1000
    """

    name: str
    tables: Mapping[str, Callable[..., Generated]]
    queries: Mapping[str, Query]
    split: Callable[[Any, int], int] = _all_of_them

    def rows_of(self, table: str, rows: int) -> int:
        """Returns the number of rows of a table in a data set of `rows` rows in all.

        Args:
            table: The table.
            rows: The rows of all tables together.

        Returns:
            The rows of this one.

        Raises:
            ValueError: There is no such table.

        Example:
            >>> import penstock as ps
            >>> nexmark = ps.workloads.catalog.workload("nexmark")
            >>> [nexmark.rows_of(table, 1_000) for table in nexmark.tables]
            [20, 60, 920]
        """
        self.generator(table)
        return self.split(table, rows)

    def generator(self, table: str | None = None) -> Callable[..., Generated]:
        """Returns the generator of a table.

        Args:
            table: The table; None where there is only one.

        Returns:
            A function of the rows, and of `seed`, `start`, `batch_rows` and options by name.

        Raises:
            ValueError: There is no such table, or there are several and none is named.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.catalog.workload("ysb").generator()(10).schema.names[:2]
            ['event_time', 'user_id']
            >>> ps.workloads.catalog.workload("nexmark").generator("bit")
            Traceback (most recent call last):
            ValueError: nexmark has no table 'bit' (did you mean 'bid'?); there are: person, auction, bid
        """
        if table is None:
            if len(self.tables) > 1:
                raise ValueError(f"{self.name} has several tables: name one of {', '.join(self.tables)}")
            table = next(iter(self.tables))
        if table not in self.tables:
            raise ValueError(_unknown(f"{self.name} has no table", table, self.tables))
        return self.tables[table]

    def query(self, name: str) -> Query:
        """Returns one of the queries.

        Args:
            name: Its name.

        Returns:
            The query.

        Raises:
            ValueError: There is no such query.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.catalog.workload("ysb").query("ysb").keys
            ('window_start', 'window_end', 'campaign_id')
            >>> ps.workloads.catalog.workload("cm").query("cm3")
            Traceback (most recent call last):
            ValueError: cm has no query 'cm3' (did you mean 'cm2'?); there are: cm1, cm2
        """
        if name not in self.queries:
            raise ValueError(_unknown(f"{self.name} has no query", name, self.queries))
        return self.queries[name]

    @property
    def options(self) -> Mapping[str, Option]:
        """The options of the generators, with what they are when nothing is said.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.catalog.workload("me").options
            {'rate': 1000000, 'step_every_s': 0, 'out_of_order_ms': 0, 'late_every': 0}
        """
        return {
            name: default
            for table in self.tables
            for name, default in _penstock.workload_options(self.name, table).items()
        }

    def check_options(self, options: Mapping[str, object]) -> None:
        """Refuses options that the generators do not have. The generators check the values.

        Args:
            options: The options by name.

        Raises:
            TypeError: One that there is not: as for any argument that a function does not know.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.catalog.workload("me").check_options({"rates": 10})
            Traceback (most recent call last):
            TypeError: me has no option 'rates' (did you mean 'rate'?); there are: rate, step_every_s, ...
        """
        known = self.options
        for name in options:
            if name not in known:
                raise TypeError(_unknown(f"{self.name} has no option", name, known))

    def read_options(self, texts: Mapping[str, str]) -> dict[str, Option]:
        """Options that come as text, from a command line for instance.

        Args:
            texts: The options by name.

        Returns:
            The same as numbers and truth values.

        Raises:
            TypeError: There is no such option.
            ValueError: The text is not what the option takes.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.catalog.workload("ysb").read_options({"rate": "20_000", "zipf": "1.1"})
            {'rate': 20000, 'zipf': 1.1}
        """
        self.check_options(texts)
        known = self.options
        return {name: _read(name, text, type(known[name])) for name, text in texts.items()}

    def rows_in_all(self, seed: int, options: Mapping[str, Option]) -> int | None:
        """Returns the number of rows of data that has an end.

        Args:
            seed: The seed of the data.
            options: The options of the generators.

        Returns:
            The rows, or None where there is no end.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.catalog.workload("ysb").rows_in_all(7, {})
            >>> ps.workloads.catalog.workload("lrb").rows_in_all(7, {"minutes": 1}) > 0
            True
        """
        ends = [_penstock.workload_rows(self.name, table, seed, dict(options)) for table in self.tables]
        known = [rows for rows in ends if rows is not None]
        return sum(known) if len(known) == len(ends) else None

    def delay(self, options: Mapping[str, Option]) -> Duration | None:
        """Returns the delay with which no row of a data set is late.

        Args:
            options: What the data set was made with.

        Returns:
            A delay for `Query.build`, None where the usual one does.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.catalog.workload("ysb").delay({"out_of_order_ms": 50})
            >>> ps.workloads.catalog.workload("ysb").delay({"out_of_order_ms": 50, "late_every": 1000})
            '60100ms'
            >>> ps.workloads.catalog.workload("lrb").delay({"out_of_order_s": 5})
            10
        """
        late_ms = _MAX_LATE_MS if options.get("late_every", 0) else 0
        moved_ms = int(options.get("out_of_order_ms", 0)) + 1_000 * int(options.get("out_of_order_s", 0))
        # A row may be moved ahead by this much and the next one back.
        return self.delay_for(2 * moved_ms + late_ms)

    def delay_for(self, disorder_ms: int) -> Duration | None:
        """Returns the delay with which no row is late, given how far rows are out of order.

        Args:
            disorder_ms: How many milliseconds a row is older than one before it, at most.

        Returns:
            A delay for `Query.build`, None where the usual one does. LRB counts in whole seconds, all others
            have timestamps.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.catalog.workload("ysb").delay_for(4_500)
            '4500ms'
            >>> ps.workloads.catalog.workload("lrb").delay_for(4_500)
            5
        """
        if disorder_ms <= _USUAL_DELAY_MS:
            return None
        return -(-disorder_ms // 1_000) if self.name == "lrb" else f"{disorder_ms}ms"


def workload(name: str) -> Workload:
    """Returns one of the workloads.

    Args:
        name: What it is called.

    Returns:
        The workload.

    Raises:
        ValueError: There is no such workload.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.catalog.workload("sg").name
        'sg'
        >>> ps.workloads.catalog.workload("nexmrk")
        Traceback (most recent call last):
        ValueError: no workload is called 'nexmrk' (did you mean 'nexmark'?); there are: ysb, ysb-strings, ...
    """
    if name not in CATALOG:
        raise ValueError(_unknown("no workload is called", name, CATALOG))
    return CATALOG[name]


def _unknown(what: str, name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(str(name), known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"{what} {name!r}{hint}; there are: {', '.join(known)}"


def _read(name: str, text: str, kind: type[Option]) -> Option:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{name} is true or false, not {text!r}")
        return text.lower() == "true"
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{name} must be {wanted}, not {text!r}") from None


def _with_delay(plan: Callable[..., Stream], seed: int, delay: Duration | None) -> Stream:
    """Adapts a query that does not depend on the seed."""
    return plan() if delay is None else plan(delay=delay)


def _with_campaigns(strings: bool, seed: int, delay: Duration | None) -> Stream:
    plan = partial(ysb.query, campaigns=ysb.campaigns(seed, strings), strings=strings)
    return _with_delay(plan, seed, delay)


def _workload(
    name: str,
    tables: Mapping[str, Callable[..., Generated]],
    queries: Mapping[str, tuple[Callable[[int, Duration | None], Stream], tuple[str, ...], tuple[str, ...]]],
    split: Callable[[Any, int], int] = _all_of_them,
) -> Workload:
    made = {query: Query(query, *rest) for query, rest in queries.items()}
    return Workload(name, MappingProxyType(dict(tables)), MappingProxyType(made), split)


def _ipq_rows(table: str, rows: int) -> int:
    return rows // 2 if table == "logs" else rows - rows // 2


_WINDOW = ("window_start", "window_end")
_SEGMENT = (*_WINDOW, "xway", "dir", "seg")
_PLUG = (*_WINDOW, "plug", "household", "house")
_BID = ("auction", "bidder", "price", "date_time", "extra")
_REPORTS, _EVENTS, _READINGS = ("reports",), ("events",), ("readings",)
_BIDS, _BOTH = ("bid",), ("auction", "person")
_REVENUE, _REVENUE_AND_LOGS = ("revenue",), ("revenue", "logs")


def _plan(plan: Callable[..., Stream]) -> Callable[[int, Duration | None], Stream]:
    return partial(_with_delay, plan)


def _all() -> list[Workload]:
    return [
        _workload(
            "ysb",
            {"events": partial(ysb.generate, strings=False)},
            {"ysb": (partial(_with_campaigns, False), _EVENTS, (*_WINDOW, "campaign_id"))},
        ),
        _workload(
            "ysb-strings",
            {"events": partial(ysb.generate, strings=True)},
            {"ysb": (partial(_with_campaigns, True), _EVENTS, (*_WINDOW, "campaign_id"))},
        ),
        _workload(
            "lrb",
            {"reports": lrb.generate},
            {
                "lrb": (_plan(lrb.query), _REPORTS, _SEGMENT),
                "lrb1": (_plan(lrb.lrb1), _REPORTS, _SEGMENT),
                "lrb2": (_plan(lrb.lrb2), _REPORTS, _SEGMENT),
            },
        ),
        _workload(
            "nyt",
            {"trips": nyt.generate},
            {"nyt": (_plan(nyt.query), ("trips",), (*_WINDOW, "pickup_cell"))},
        ),
        _workload(
            "nexmark",
            {table: partial(nexmark.generate, table) for table in ("person", "auction", "bid")},
            {
                "q0": (_plan(nexmark.q0), _BIDS, _BID),
                "q1": (_plan(nexmark.q1), _BIDS, _BID),
                "q2": (_plan(nexmark.q2), _BIDS, ("auction", "price")),
                "q3": (_plan(nexmark.q3), _BOTH, (*_WINDOW, "id")),
                "q5": (_plan(nexmark.q5), _BIDS, (*_WINDOW, "auction")),
                "q7": (_plan(nexmark.q7), _BIDS, (*_WINDOW, *_BID)),
                "q8": (_plan(nexmark.q8), _BOTH, (*_WINDOW, "id")),
                "q11": (_plan(nexmark.q11), _BIDS, (*_WINDOW, "bidder")),
            },
            nexmark.rows_of,
        ),
        _workload(
            "cm",
            {"events": cm.generate},
            {
                "cm1": (_plan(cm.cm1), _EVENTS, (*_WINDOW, "category")),
                "cm2": (_plan(cm.cm2), _EVENTS, (*_WINDOW, "job")),
            },
        ),
        _workload(
            "sg",
            {"readings": sg.generate},
            {
                "sg1": (_plan(sg.sg1), _READINGS, _WINDOW),
                "sg2": (_plan(sg.sg2), _READINGS, _PLUG),
                "sg3": (_plan(sg.sg3), _READINGS, _PLUG),
            },
        ),
        _workload("me", {"readings": me.generate}, {"me1": (_plan(me.me1), _READINGS, _WINDOW)}),
        _workload(
            "ipq",
            {table: partial(ipq.generate, table) for table in ("revenue", "logs")},
            {
                "ipq1": (_plan(ipq.ipq1), _REVENUE, (*_WINDOW, "key")),
                "ipq2": (_plan(ipq.ipq2), _REVENUE, (*_WINDOW, "key")),
                "ipq3": (_plan(ipq.ipq3), _REVENUE, (*_WINDOW, "other_key")),
                "ipq4": (_plan(ipq.ipq4), _REVENUE_AND_LOGS, (*_WINDOW, "key")),
            },
            _ipq_rows,
        ),
    ]


CATALOG: Mapping[str, Workload] = MappingProxyType({made.name: made for made in _all()})
"""The workloads by name."""
