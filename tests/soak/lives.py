"""Cases on an engine: queries beside each other, over sources that they share or not, to one of many ends."""

from __future__ import annotations

import functools
import random
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import penstock as ps
from reference.types import Value
from soak import leftovers, plain
from soak.cases import CUTTING, Case, declared, draw, functions, read_by_graphs
from soak.checks import check, check_source, fails_itself
from soak.feeds import Asked, bound_of
from soak.graphs import Builder
from soak.leftovers import Finding
from soak.oracle import Outcome, outcomes_of
from soak.supply import Supply
from soak.taking import Taken, letter_taker
from soak.watch import Watch


def run(seed: int, watch: Watch) -> None:
    """Runs the case of a seed; raises what it finds."""
    case = draw(seed)
    before = leftovers.threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.plain:
            plain.run_plain(case)
        else:
            run_on_engine(case, watch)
    watch.forget()
    leftovers.check_threads(before)


def run_on_engine(case: Case, watch: Watch) -> None:
    """Queries beside each other, over sources that they share or not."""
    rng = random.Random(f"run {case.seed}")
    engine = ps.Engine(**case.options, on_exit="drain" if case.end.startswith("exit") else "stop")
    watch.add(engine)
    try:
        started = start(case, engine, rng)
        watch.add(engine, *(one.query for one in started.taken if one.query is not None))
        pushed = all(feed.way == "push" for feed in case.feeds)
        settles = pushed and case.end == "finish" and case.on_lag == "wait" and rng.random() < 0.9
        settled = functools.partial(is_settled, started) if settles else None
        started.supply.start(rng.random() * 0.02, settled)
        for shared in started.shared.values():
            shared.source.start()
        finish(case, engine, started, rng)
    finally:
        if case.end == "drop":
            watch.forget()
        else:
            engine.stop()


@dataclass
class Shared:
    """A source that queries share, and what it has rejected."""

    source: ps.SharedSource
    data: object
    letters: list[dict[str, Value]] | None


@dataclass
class Started:
    """What runs."""

    taken: list[Taken]
    supply: Supply
    shared: dict[int, Shared]
    asked: list[Asked | None]

    def pieces(self, sources: Mapping[int, object]) -> dict[int, int]:
        """How many pieces were pushed to these sources of streams."""
        pushed = self.supply.pushed
        return {n: pushed[one].pieces for n, one in sources.items() if isinstance(one, ps.PushSource)}


def start(case: Case, engine: ps.Engine, rng: random.Random) -> Started:
    """Opens the sources and submits the queries; shared sources are still held."""
    supply = Supply(rng)
    fails_at = {
        number: rng.randrange(len(feed.pieces()) + 1)
        for number, feed in enumerate(case.feeds)
        if case.end == "source fails" and (number == 0 or rng.random() < 0.3)
    }
    asked = functions(case)
    # A function that remembers is asked about one source: it is shared, or there is one query.
    sharing = [
        shared or (len(case.queries) > 1 and asked[n] is not None) for n, shared in enumerate(case.shared)
    ]
    if case.end == "drain early":
        case.queries, sharing = case.queries[:1], [False] * len(sharing)
    bounded = [not (shared and by) for shared, by in zip(sharing, case.source_bounds, strict=True)]
    streams = declared(case, asked, bounded)
    read = sorted({n for outputs in case.queries for n in case.graph.sources(outputs)})
    started = Started([], supply, {}, asked)
    for n in read:
        if sharing[n]:
            data: Any = supply.open(case.feeds[n], fails_at.get(n), case.end not in CUTTING, shared=True)
            letters: list[dict[str, Value]] = []
            source = engine.source(
                streams[n], data, hold=True, on_error=letter_taker(letters, case.source_errors[n]),
                max_ahead=None if bounded[n] else bound_of(case.feeds[n]),
            )  # fmt: skip
            keeps = case.source_errors[n] == "function"
            started.shared[n] = Shared(source, data, letters if keeps else None)
    builder = Builder(case.graph, read_by_graphs(case, streams))
    # Where shared sources are closed, others have to come to their end by themselves.
    closes = case.end not in CUTTING or case.end == "close"
    for outputs, sink in zip(case.queries, case.sinks, strict=False):
        taken = Taken(outputs, sink, fails=case.end == "sink fails")
        sources: dict[str, Any] = {}
        for n in case.graph.sources(outputs):
            if n in started.shared:
                opened, sources[f"s{n}"] = started.shared[n].data, started.shared[n].source
            else:
                opened = sources[f"s{n}"] = supply.open(case.feeds[n], fails_at.get(n), closes)
            if isinstance(opened, ps.PushSource):
                taken.sources[n] = opened
        taken.shared = frozenset(n for n in case.graph.sources(outputs) if n in started.shared)
        query = engine.submit(
            builder.outputs(outputs), source=sources, sink=taken.takers(),
            on_error=letter_taker(taken.letters, case.on_error),
            on_lag=case.on_lag if taken.shared else "wait",  # type: ignore[arg-type]
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
        if metrics["rows_in"] < sum(started.supply.pushed[one].counts for one in taken.sources.values()):
            return False
        # What is collected nobody sees before the end. Of signals, one that says nothing new may stay.
        silent = "sink" if taken.sink == "collect" else "-"
        if any(task["pending_rows"] for task in metrics["tasks"] if not task["name"].startswith(silent)):
            return False
    return True


def finish(case: Case, engine: ps.Engine, started: Started, rng: random.Random) -> None:
    """Brings the queries to their end, and looks at what has come out."""
    if case.end.endswith("early"):
        threading.Event().wait(rng.random() * 0.01)
    elif case.end in CUTTING:
        started.supply.join()
    if case.end.startswith("drain"):
        drain(case, started, rng)
    elif case.end == "close":
        for shared in started.shared.values():
            shared.source.close()
    elif case.end.startswith("exit"):
        engine.__exit__(None, None, None)
    elif case.end in ("stop", "leave", "drop"):
        return cut_short(case, engine, started, rng)
    for taken in started.taken:
        taken.join()
    started.supply.join()
    for taken in started.taken:
        assert taken.query is not None
        outcomes = known(case, started, dict(taken.sources))
        check(case, outcomes, taken, taken.query.metrics(), started.asked)
    check_shared(case, started)
    return None


def known(case: Case, started: Started, sources: Mapping[int, object]) -> list[Outcome]:
    """What each node gives, as far as its streams were pushed to these sources."""
    if not case.end.endswith("early"):
        return case.outcomes
    return outcomes_of(case.graph, case.feeds, started.pieces(sources))


def check_shared(case: Case, started: Started) -> None:
    """Shared sources whose queries have all come to a good end have counted everything."""
    if case.end in ("source fails", "sink fails") or any(one.error is not None for one in started.taken):
        return
    for n, shared in started.shared.items():
        outcomes = known(case, started, {n: shared.data})
        check_source(shared.source, outcomes[n], shared.letters)


def drain(case: Case, started: Started, rng: random.Random) -> None:
    """Drains the queries, once shared sources have read what was pushed: what those have read counts."""
    for n, shared in started.shared.items():
        assert isinstance(shared.data, ps.PushSource)
        pushed = started.supply.pushed[shared.data].rows
        readers = [one.query for one in started.taken if n in one.shared and one.query is not None]
        fails = fails_itself(case, case.outcomes, n)
        while (
            shared.source.status == "running"
            and (fails or shared.source.metrics()["rows_in"] < pushed)
            and any(reader.status == "running" for reader in readers)
        ):
            time.sleep(0.001)
    order = list(started.taken)
    rng.shuffle(order)
    for taken in order:
        assert taken.query is not None
        try:
            taken.query.stop(drain=True)
        except Exception as error:
            taken.error = taken.error or error


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
