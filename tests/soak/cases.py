"""A random graph on an engine, fed and ended at random, and held against the oracle."""

from __future__ import annotations

import dataclasses
import functools
import random
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import penstock as ps
from reference.compare import as_bag, assert_same_rows
from reference.engine import rows_of
from reference.types import Value
from soak import leftovers, setups
from soak.feeds import Asked, Feed, Supply, declare, draw_feed
from soak.graphs import Builder, Graph, PoisonError
from soak.leftovers import Finding
from soak.oracle import Answer, Outcome, answer
from soak.watch import Watch

ACCOUNT = ("rows_contributed", "rows_filtered", "rows_late", "rows_shed", "rows_rejected")
ENDS = ("finish",) * 14 + ("drain", "drain", "source fails", "sink fails", "stop", "leave", "drop")
SINKS = ("collect", "collect", "function", "iterator")
PATIENCE_SECONDS = 120.0
"""For threads of the case itself; hangs of the engine are found by the watch."""


@dataclass
class Case:
    """Everything that is drawn for a case."""

    seed: int
    graph: Graph
    feeds: list[Feed]
    outcomes: list[Outcome]
    options: dict[str, Any]
    spreading: dict[str, Any]
    on_error: str
    shared: list[bool]
    queries: list[tuple[int, ...]]
    sinks: list[str]
    end: str
    on_lag: str
    plain: bool

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: times {self.graph.time}, keys {self.graph.key}"]
        for number, node in enumerate(self.graph.nodes):
            shown = f"  {number}: {node.op} {list(node.inputs)} {node.how} {node.number}"
            stream = number < len(self.feeds)
            lines.append(f"{shown} {self.feeds[number] if stream else node.windows}")
        lines.append(f"  {self.options} {self.spreading} on_error={self.on_error} on_lag={self.on_lag}")
        lines.append(f"  shared {self.shared}, queries {self.queries} with sinks {self.sinks}")
        lines.append(f"  plain run: {self.plain}, end: {self.end}")
        return "\n".join(lines)


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(f"graph {seed}")
    types = setups.draw_types(rng)
    # Some are about operators that read a source themselves and others by edges, woken by each in turn.
    meets = rng.random() < 0.2
    count = rng.choice([2, 2, 3] if meets else [1, 1, 2, 2, 3])
    feeds = [draw_feed(rng, *types, most=rng.choice([8, 16, 24])) for _ in range(count)]
    graph, outcomes = setups.draw_graph(rng, types, feeds, setups.MEETINGS if meets else setups.MOTIFS)
    options = {**setups.draw_options(rng), **(setups.draw_apart(rng) if meets else {})}
    end = "finish" if meets else rng.choice(ENDS)
    if meets or end == "drain" or rng.random() < 0.3:
        # Whatever was pushed before a drain counts; of an iterator nobody knows how far it was read.
        feeds = [dataclasses.replace(feed, way="push") for feed in feeds]
    plain = end == "finish" and not meets and rng.random() < 0.15
    apart = len(graph.outputs) > 1 and rng.random() < 0.4
    queries: list[tuple[int, ...]] = [(n,) for n in graph.outputs] if apart else [graph.outputs]
    if rng.random() < 0.2:
        queries = queries * 2
    if end == "drain":
        queries = queries[:1]
    shares = 0.8 if meets else rng.choice([0.0, 0.5])
    return Case(
        seed, graph, feeds, outcomes, options, {} if meets else setups.draw_spreading(rng),
        rng.choice(["fail", "skip", "skip", "function"]),
        [rng.random() < shares for _ in feeds], queries,
        [rng.choice(SINKS) for _ in queries], end, rng.choice(["wait"] * 8 + ["shed", "fail"]), plain,
    )  # fmt: skip


class Taken:
    """A query of a case, what came out of it, and what it was asked."""

    def __init__(self, outputs: tuple[int, ...], sink: str, fails: bool) -> None:
        self.outputs, self.sink, self.fails = outputs, sink, fails
        self.rows: dict[int, list[dict[str, Value]]] = {number: [] for number in outputs}
        self.letters: list[dict[str, Value]] = []
        self.sources: list[ps.PushSource] = []
        self.query: ps.Query | None = None
        self.error: BaseException | None = None
        self.thread: threading.Thread | None = None

    def taker(self, number: int) -> Callable[[ps.Batch], None]:
        """A function that takes the results of an output."""

        def take(batch: ps.Batch) -> None:
            if self.fails:
                raise PoisonError("the sink is full")
            self.rows[number].extend(rows_of(batch))

        return take

    def takers(self) -> Any:
        """What `submit` is told about the results."""
        if self.sink == "function" or self.fails:
            return {f"o{number}": self.taker(number) for number in self.outputs}
        return "collect" if self.sink == "collect" else None

    def start(self, query: ps.Query) -> None:
        """Waits for the query on a thread of its own, since it may have to be read."""
        self.query = query
        self.thread = threading.Thread(target=self.work, args=(query,), name="taker", daemon=True)
        self.thread.start()

    def work(self, query: ps.Query) -> None:
        try:
            if self.sink == "iterator" and not self.fails:
                readers = [
                    threading.Thread(target=self.read, args=(query, number), daemon=True)
                    for number in self.outputs
                ]
                for reader in readers:
                    reader.start()
                for reader in readers:
                    reader.join()
            query.wait()
            if self.sink == "collect" and not self.fails and query.status == "finished":
                for number in self.outputs:
                    self.rows[number].extend(rows_of(query.result(f"o{number}")))
        except BaseException as error:
            self.error = error

    def read(self, query: ps.Query, number: int) -> None:
        try:
            for batch in query.results(f"o{number}"):
                self.rows[number].extend(rows_of(batch))
        except BaseException as error:
            self.error = error

    def join(self) -> None:
        """Waits for the thread that waits."""
        assert self.thread is not None
        self.thread.join(PATIENCE_SECONDS)
        if self.thread.is_alive():
            raise Finding("whoever waits for a query that has ended still waits")


def run(seed: int, watch: Watch) -> None:
    """Runs the case of a seed; raises what it finds."""
    case = draw(seed)
    before = leftovers.threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.plain:
            run_plain(case)
        else:
            run_on_engine(case, watch)
    watch.forget()
    leftovers.check_threads(before)


def letter_taker(taken: Taken, case: Case) -> Any:
    """What is said about rows without an answer."""
    if case.on_error != "function":
        return case.on_error

    def take(batch: ps.Batch) -> None:
        taken.letters.extend(rows_of(batch))

    return take


def run_plain(case: Case) -> None:
    """`Outputs.run`, over data that is there."""
    asked = [Asked() if feed.marks == "function" else None for feed in case.feeds]
    streams = [declare(feed, n, asked[n]) for n, feed in enumerate(case.feeds)]
    builder = Builder(case.graph, named_streams(case, streams))
    for outputs in case.queries:
        taken = Taken(outputs, "collect", fails=False)
        sources = case.graph.sources(outputs)
        for number in sources:
            function = asked[number]
            if function is not None:
                function.seen.clear()
        data = {f"s{n}": case.feeds[n].batches() for n in sources}
        metrics: dict[str, Any] = {}
        refused = any(case.feeds[n].idles or asked[n] for n in sources)
        if len(outputs) == 1 and case.seed % 3 == 0 and not refused:
            run_in_parts(case, builder.built[outputs[0]], taken, data)
            continue
        try:
            results = builder.outputs(outputs).run(
                data, on_error=letter_taker(taken, case), **case.options, **case.spreading
            )
            taken.rows = {n: rows_of(results[f"o{n}"]) for n in outputs}
            metrics = results[f"o{outputs[0]}"].metrics()
            metrics["rows_out"] = sum(result.rows_out for result in results.values())
        except BaseException as error:
            taken.error = error
        check(case, taken, metrics, asked)


def run_in_parts(case: Case, plan: ps.Stream, taken: Taken, data: dict[str, list[Any]]) -> None:
    """`Stream.run_part`: however data is cut into parts, they give together what one run gives."""
    rng = random.Random(f"parts {case.seed}")
    expected = answer(case.graph, case.outcomes, taken.outputs)
    state, counts, parts = None, dict.fromkeys(expected.account, 0), rng.choice([1, 2, 3, 5])
    cuts = {
        name: sorted(rng.randrange(len(batches) + 1) for _ in range(parts - 1))
        for name, batches in data.items()
    }
    try:
        for part in range(parts):
            given = {}
            for name, batches in data.items():
                edges = [0, *cuts[name], len(batches)]
                given[name] = batches[edges[part] : edges[part + 1]]
            made = plan.run_part(given, state, last=part == parts - 1, on_error=letter_taker(taken, case))
            state = made.state
            taken.rows[taken.outputs[0]].extend(rows_of(made.result))
            metrics = made.result.metrics()
            counts = {name: count + metrics[name] for name, count in counts.items()}
            counts["rejected_results"] = counts.get("rejected_results", 0) + metrics["rejected_results"]
    except BaseException as error:
        taken.error = error
    check(case, taken, counts, [None] * len(case.feeds))


def named_streams(case: Case, streams: Sequence[ps.Stream]) -> list[ps.Stream]:
    """The streams as graphs read them: without what only the source reads."""
    return [
        stream.select("t", "k", "v") if feed.marks == "column" else stream
        for stream, feed in zip(streams, case.feeds, strict=True)
    ]


def run_on_engine(case: Case, watch: Watch) -> None:
    """Queries beside each other, over sources that they share or not."""
    rng = random.Random(f"run {case.seed}")
    engine = ps.Engine(**case.options)
    watch.add(engine)
    try:
        started = start(case, engine, rng)
        watch.add(engine, *(one.query for one in started.taken if one.query is not None))
        pushed = all(feed.way == "push" for feed in case.feeds)
        settles = pushed and case.end == "finish" and case.on_lag == "wait" and rng.random() < 0.9
        settled = functools.partial(is_settled, started) if settles else None
        started.supply.start(rng.random() * 0.02, settled)
        for source in started.held:
            source.start()
        finish(case, engine, started, rng)
    finally:
        if case.end == "drop":
            watch.forget()
        else:
            engine.stop()


@dataclass
class Started:
    """What runs."""

    taken: list[Taken]
    supply: Supply
    held: list[ps.SharedSource]
    asked: list[Asked | None]


def start(case: Case, engine: ps.Engine, rng: random.Random) -> Started:
    """Opens the sources and submits the queries; shared sources are still held."""
    supply = Supply(rng)
    closes = case.end != "drain"
    fails_at = {
        number: rng.randrange(len(feed.parts()) + 1)
        for number, feed in enumerate(case.feeds)
        if case.end == "source fails" and (number == 0 or rng.random() < 0.3)
    }
    asked = [Asked() if feed.marks == "function" else None for feed in case.feeds]
    streams = [declare(feed, n, asked[n]) for n, feed in enumerate(case.feeds)]
    # A function that remembers is asked about one source: it is shared, or there is one query.
    sharing = [
        shared or (len(case.queries) > 1 and asked[n] is not None) for n, shared in enumerate(case.shared)
    ]
    if case.end == "drain":
        sharing = [False] * len(sharing)
    read = sorted({n for outputs in case.queries for n in case.graph.sources(outputs)})
    inside = {n: supply.open(case.feeds[n], fails_at.get(n)) for n in read if sharing[n]}
    held = {n: engine.source(streams[n], data, hold=True) for n, data in inside.items()}  # type: ignore[arg-type]
    builder = Builder(case.graph, named_streams(case, streams))
    started = Started([], supply, list(held.values()), asked)
    for outputs, sink in zip(case.queries, case.sinks, strict=True):
        taken = Taken(outputs, sink, fails=case.end == "sink fails")
        sources: dict[str, Any] = {}
        for n in case.graph.sources(outputs):
            opened = inside[n] if n in inside else supply.open(case.feeds[n], fails_at.get(n), closes)
            taken.sources += [opened] if isinstance(opened, ps.PushSource) else []
            sources[f"s{n}"] = held.get(n, opened)
        shares = any(isinstance(source, ps.SharedSource) for source in sources.values())
        query = engine.submit(
            builder.outputs(outputs), source=sources, sink=taken.takers(),
            on_error=letter_taker(taken, case),
            on_lag=case.on_lag if shares else "wait",  # type: ignore[arg-type]
            **case.spreading,
        )  # fmt: skip
        started.taken.append(taken)
        taken.start(query)
    return started


def is_settled(started: Started) -> bool:
    """Whether all rows that were pushed are in, and none of them waits for a task."""
    for taken in started.taken:
        assert taken.query is not None
        if taken.query.status != "running":
            continue
        metrics = taken.query.metrics()
        if metrics["rows_in"] < sum(started.supply.pushed[source] for source in taken.sources):
            return False
        # What is collected nobody sees before the end. Of signals, one that says nothing new may stay.
        silent = "sink" if taken.sink == "collect" else "-"
        if any(task["pending_rows"] for task in metrics["tasks"] if not task["name"].startswith(silent)):
            return False
    return True


def finish(case: Case, engine: ps.Engine, started: Started, rng: random.Random) -> None:
    """Brings the queries to their end, and looks at what has come out."""
    if case.end == "drain":
        started.supply.join()
        for taken in started.taken:
            assert taken.query is not None
            try:
                taken.query.stop(drain=True)
            except Exception as error:
                taken.error = taken.error or error
    if case.end in ("stop", "leave", "drop"):
        return cut_short(case, engine, started, rng)
    for taken in started.taken:
        taken.join()
        assert taken.query is not None
        check(case, taken, taken.query.metrics(), started.asked)
    started.supply.join()
    return None


def cut_short(case: Case, engine: ps.Engine, started: Started, rng: random.Random) -> None:
    """Ends the queries in the middle: nothing may hang, and nothing be left behind."""
    threading.Event().wait(rng.random() * 0.01)
    queries = [taken.query for taken in started.taken if taken.query is not None]
    if case.end == "stop":
        rng.shuffle(queries)
        for query in queries:
            query.stop()
    if case.end != "drop":
        engine.stop()
        for taken in started.taken:
            taken.join()
        for query in queries:
            if query.status == "running":
                raise Finding(f"{query!r} runs on an engine that was stopped")
    else:
        # Whoever waits for one has to come to an end, or else the engine would never be let go.
        for taken in started.taken:
            taken.join()
    started.supply.join()


def check(case: Case, taken: Taken, metrics: dict[str, Any], asked: Sequence[Asked | None]) -> None:
    """What came out is what the oracle says, and each row is accounted for."""
    expected = answer(case.graph, case.outcomes, taken.outputs)
    error = taken.error
    if error is not None and not isinstance(error, Exception):
        raise Finding(f"{type(error).__name__} is no Exception") from error
    may_fail = case.on_error == "fail" and expected.rejected > 0
    cut = case.end in ("source fails", "sink fails")
    if error is not None:
        allowed: tuple[type[BaseException], ...] = (PoisonError,) if cut or may_fail else ()
        allowed += (ps.ComputeError, ps.NullTimeError) if may_fail else ()
        allowed += (ps.LaggedError,) if case.on_lag == "fail" else ()
        allowed += (ps.SourceEndedError,) if case.end == "source fails" else ()
        if not isinstance(error, allowed):
            raise Finding(f"it failed with {type(error).__name__}: {error}") from error
        error.__traceback__ = None
        return
    if cut:
        return
    if may_fail and case.on_lag != "shed":
        status = "ended" if taken.query is None else f"is {taken.query.status}: {taken.query.error!r}"
        raise Finding(f"{expected.rejected} rows had no answer, and nobody heard of it; the query {status}")
    check_account(case, expected, metrics)
    if case.on_lag == "shed" and metrics["rows_shed"] > 0:
        return
    for number in taken.outputs:
        check_rows(case, number, expected, taken)
    if case.on_error == "function" and len(taken.letters) != expected.rejected:
        raise Finding(f"{expected.rejected} rows were rejected, and {len(taken.letters)} letters came")
    for number in case.graph.sources(taken.outputs):
        check_asked(case.feeds[number], asked[number])


def check_rows(case: Case, number: int, expected: Answer, taken: Taken) -> None:
    rows, found = expected.rows[number], taken.rows[number]
    if case.graph.nodes[number].op == "stats":
        try:
            assert_same_rows(rows, found, ["window_start", "window_end", "k"])
        except AssertionError as error:
            raise Finding(f"output {number}: {error}") from error
    elif as_bag(rows) != as_bag(found):
        missing, unexpected = as_bag(rows) - as_bag(found), as_bag(found) - as_bag(rows)
        raise Finding(f"output {number}: missing {dict(missing)}, unexpected {dict(unexpected)}")


def check_account(case: Case, expected: Answer, metrics: dict[str, Any]) -> None:
    account = {name: metrics[name] for name in expected.account}
    if account["rows_in"] + account["rows_copied"] != sum(account[name] for name in ACCOUNT):
        raise Finding(f"the account does not balance: {account}")
    if metrics["rows_shed"] > 0:
        return
    if account != expected.account:
        wrong = {name: (expected.account[name], account[name]) for name in account}
        wrong = {name: both for name, both in wrong.items() if both[0] != both[1]}
        raise Finding(f"the account is wrong, expected and found: {wrong}")
    rejected = sum(metrics.get(name, 0) for name in ("rows_rejected", "rejected_results"))
    if rejected != expected.rejected:
        raise Finding(f"{expected.rejected} rows had no answer, and {rejected} are counted")


def check_asked(feed: Feed, asked: Asked | None) -> None:
    """A watermark function sees each batch once, in order."""
    if asked is None:
        return
    parts = [[row["t"] for row in part] for part in feed.parts()]
    seen = [list(part) for part in asked.seen]
    if [part for part in seen if part] != [part for part in parts if part]:
        raise Finding(f"the watermark function saw {seen}, and was to see {parts}")
