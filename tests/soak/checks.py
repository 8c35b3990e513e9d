"""What came out is what the oracle says, and each row is accounted for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import penstock as ps
from reference.compare import as_bag, assert_same_rows
from reference.types import Value
from soak.cases import Case
from soak.feeds import Asked, Feed
from soak.graphs import PoisonError
from soak.leftovers import Finding
from soak.oracle import Answer, Outcome, answer
from soak.taking import Taken

ACCOUNT = ("rows_contributed", "rows_filtered", "rows_late", "rows_shed", "rows_rejected")
BAD_INPUT = (ps.NullTimeError, ps.TimeAheadError, ps.SchemaMismatchError)
LETTERS_SECONDS = 5.0
"""How long the last letters of a source may take that has ended."""


def gives_misfits(case: Case, outputs: tuple[int, ...]) -> bool:
    """Whether an iterator that fails later may fail its query before, by a batch that a push refuses."""
    read = case.graph.sources(outputs)
    return case.end == "source fails" and case.on_error == "fail" and any(case.feeds[n].misfits for n in read)


def check(
    case: Case,
    outcomes: Sequence[Outcome],
    taken: Taken,
    metrics: dict[str, Any],
    asked: Sequence[Asked | None],
) -> None:
    """Looks at what came out of a query, where its streams gave these outcomes."""
    expected = answer(case.graph, outcomes, taken.outputs, taken.shared)
    bad_sources = [n for n in sorted(taken.shared) if fails_itself(case, outcomes, n)]
    error = taken.error
    if error is not None and not isinstance(error, Exception):
        raise Finding(f"{type(error).__name__} is no Exception") from error
    rejects = case.on_error == "fail" and expected.rejected > 0
    cut = case.end in ("source fails", "sink fails")
    if error is not None:
        allowed: tuple[type[BaseException], ...] = (PoisonError,) if cut or rejects else ()
        allowed += (ps.ComputeError, *BAD_INPUT) if rejects else ()
        allowed += (ps.SchemaMismatchError,) if gives_misfits(case, taken.outputs) else ()
        allowed += (ps.LaggedError,) if case.on_lag == "fail" else ()
        allowed += (ps.SourceEndedError,) if bad_sources or case.end == "source fails" else ()
        if not isinstance(error, allowed):
            raise Finding(f"it failed with {type(error).__name__}: {error}") from error
        causes = (*BAD_INPUT, PoisonError) if cut else BAD_INPUT
        if isinstance(error, ps.SourceEndedError) and not isinstance(error.__cause__, causes):
            raise Finding(f"a shared source has ended because of {error.__cause__!r}") from error
        error.__traceback__ = None
        return
    if cut:
        return
    if (rejects and case.on_lag != "shed") or bad_sources:
        status = "ended" if taken.query is None else f"is {taken.query.status}: {taken.query.error!r}"
        raise Finding(
            f"{expected.rejected} rows were rejected, and so were rows of the shared sources {bad_sources}, "
            f"and nobody heard of it; the query {status}"
        )
    check_account(expected, metrics)
    if case.on_lag == "shed" and metrics["rows_shed"] > 0:
        return
    for number in taken.outputs:
        check_rows(case, number, expected, taken)
    if case.on_error == "function" and len(taken.letters) != expected.rejected:
        raise Finding(f"{expected.rejected} rows were rejected, and {len(taken.letters)} letters came")
    for number in case.graph.sources(taken.outputs):
        if not case.end.endswith("early"):
            check_asked(case.feeds[number], asked[number])


def fails_itself(case: Case, outcomes: Sequence[Outcome], number: int) -> bool:
    """Whether a shared source ends since it cannot take something."""
    return case.source_errors[number] == "fail" and outcomes[number].screened > 0


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


def check_balance(metrics: dict[str, Any]) -> None:
    """Every row that came in, or was copied, has come to an end."""
    if metrics["rows_in"] + metrics["rows_copied"] != sum(metrics[name] for name in ACCOUNT):
        shown = {name: metrics[name] for name in ("rows_in", "rows_copied", *ACCOUNT)}
        raise Finding(f"the account does not balance: {shown}")


def check_account(expected: Answer, metrics: dict[str, Any]) -> None:
    check_balance(metrics)
    if metrics["rows_shed"] > 0:
        return
    account = {name: metrics[name] for name in expected.account}
    if account != expected.account:
        wrong = {name: (expected.account[name], account[name]) for name in account}
        wrong = {name: both for name, both in wrong.items() if both[0] != both[1]}
        raise Finding(f"the account is wrong, expected and found: {wrong}")
    rejected = sum(metrics.get(name, 0) for name in ("rows_rejected", "rejected_results"))
    if rejected != expected.rejected:
        raise Finding(f"{expected.rejected} rows had no answer, and {rejected} are counted")


def check_source(
    source: ps.SharedSource, outcome: Outcome, letters: Sequence[dict[str, Value]] | None
) -> None:
    """A shared source that has ended counts what it took and rejected, with a letter for each of these."""
    metrics = source.metrics()
    wanted = (len(outcome.items) + outcome.screened, outcome.screened)
    found = (metrics["rows_in"], metrics["rows_rejected"])
    if found != wanted:
        raise Finding(f"a shared source has (rows_in, rows_rejected) {found}, and {wanted} are right")
    deadline = time.monotonic() + LETTERS_SECONDS
    while letters is not None and len(letters) != outcome.screened:
        if time.monotonic() > deadline:
            raise Finding(
                f"a shared source rejected {outcome.screened} rows, and {len(letters)} letters came"
            )
        time.sleep(0.001)


def check_asked(feed: Feed, asked: Asked | None) -> None:
    """A watermark function sees each batch once, in order."""
    if asked is None:
        return
    pieces = [[row["t"] for row in piece.rows] for piece in feed.pieces()]
    seen = [list(part) for part in asked.seen]
    if [part for part in seen if part] != [part for part in pieces if part]:
        raise Finding(f"the watermark function saw {seen}, and was to see {pieces}")
