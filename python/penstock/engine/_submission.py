"""Reads the arguments of `Engine.submit` and `Engine.source`."""

from penstock import _penstock
from penstock.engine.query import Query
from penstock.engine.results import Results
from penstock.engine.shared import SharedSource
from penstock.exceptions import PlanError
from penstock.io.items import Items
from penstock.io.protocols import ArrowData
from penstock.io.push import PushSource
from penstock.io.replay import Replay
from penstock.io.sources import Opening
from penstock.plan.outputs import Outputs
from penstock.plan.stream import Stream

__all__ = [
    "as_outputs",
    "check_name",
    "note_taker",
    "open_any_input",
    "open_input",
    "read_by_engine",
    "upstream_of",
]


def open_input(opening: Opening, data: ArrowData | PushSource | Replay, argument: str) -> object:
    return data._native if isinstance(data, PushSource | Replay) else opening.open(data, argument)


def open_any_input(opening: Opening, source: object, argument: str) -> object:
    if isinstance(source, SharedSource):
        return source._native
    return open_input(opening, source, argument)  # type: ignore[arg-type]  # what it is not is refused there


def read_by_engine(source: object) -> Query | SharedSource | None:
    """Returns the shared source, or the query whose results the source is; None for any other source."""
    if isinstance(source, Results):
        source = source._query
    return source if isinstance(source, Query | SharedSource) else None


def upstream_of(source: object) -> _penstock.Query | None:
    """Returns the query whose results the source is, or None; its reader ends after the last of them."""
    read = read_by_engine(source)
    return read._native if isinstance(read, Query) else None


def note_taker(engine: object, taker: Query | SharedSource, opened: list[object]) -> None:
    """Tells each iterable which query or shared source reads it."""
    for items in opened:
        if isinstance(items, Items):
            items.note_taker(engine, taker)


def as_outputs(plan: object) -> _penstock.Outputs:
    if isinstance(plan, Outputs):
        return plan._native
    if isinstance(plan, Stream):
        return _penstock.Outputs([("result", plan._plan)])
    raise TypeError(f"submit() takes a Stream or Outputs, not {type(plan).__name__}")


def check_name(name: object) -> None:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name takes a string, not {type(name).__name__} {name!r}")
    if name == "":
        raise PlanError("name is empty; leave it out to have one made up")
