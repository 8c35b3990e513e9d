"""Cases without an engine: `Outputs.run` over data that is there, and `Stream.run_part`."""

from __future__ import annotations

import random
from typing import Any

import penstock as ps
from reference.engine import rows_of
from soak.cases import Case, declared, functions, read_by_graphs
from soak.checks import check
from soak.graphs import Builder
from soak.oracle import answer
from soak.taking import Taken, letter_taker


def run_plain(case: Case) -> None:
    """`Outputs.run`, over data that is there."""
    asked = functions(case)
    streams = declared(case, asked, [True] * len(case.feeds))
    builder = Builder(case.graph, read_by_graphs(case, streams))
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
                data, on_error=letter_taker(taken.letters, case.on_error), **case.options, **case.spreading
            )
            taken.rows = {n: rows_of(results[f"o{n}"]) for n in outputs}
            metrics = results[f"o{outputs[0]}"].metrics()
            metrics["rows_out"] = sum(result.rows_out for result in results.values())
        except BaseException as error:
            taken.error = error
        check(case, case.outcomes, taken, metrics, asked)


def run_in_parts(case: Case, plan: ps.Stream, taken: Taken, data: dict[str, list[Any]]) -> None:
    """`Stream.run_part`: however data is cut into parts, they give together what one run gives."""
    rng = random.Random(f"parts {case.seed}")
    expected = answer(case.graph, case.outcomes, taken.outputs)
    counts = dict.fromkeys([*expected.account, "rejected_results"], 0)
    state, parts = None, rng.choice([1, 2, 3, 5])
    cuts = {
        name: sorted(rng.randrange(len(batches) + 1) for _ in range(parts - 1))
        for name, batches in data.items()
    }
    on_error = letter_taker(taken.letters, case.on_error)
    try:
        for part in range(parts):
            given = {}
            for name, batches in data.items():
                edges = [0, *cuts[name], len(batches)]
                given[name] = batches[edges[part] : edges[part + 1]]
            made = plan.run_part(given, state, last=part == parts - 1, on_error=on_error)
            state = made.state
            taken.rows[taken.outputs[0]].extend(rows_of(made.result))
            metrics = made.result.metrics()
            counts = {name: count + metrics[name] for name, count in counts.items()}
    except BaseException as error:
        taken.error = error
    check(case, case.outcomes, taken, counts, [None] * len(case.feeds))
