"""Runs pipelines over data, to their end: what `Stream.run` and `Outputs.run` have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock import _penstock
from penstock.display.notices import warn_late
from penstock.exceptions import PlanError
from penstock.io.protocols import ArrowArray, ArrowData, ArrowStream
from penstock.io.rejecting import OnError, read_on_error
from penstock.io.result import Result
from penstock.io.sources import Opening
from penstock.plan.options import Spreading

__all__ = ["by_stream", "run_outputs", "run_part_of"]

# The watermark before the first one.
_NO_WATERMARK = -(2**63)


def by_stream(streams: list[str], given: object, argument: str) -> list[tuple[str, object]]:
    """Says which data belongs to which stream.

    Args:
        streams: The names of the streams.
        given: A mapping of names to data; or data, if there is one stream only.
        argument: How the user knows it, for the error message.

    Returns:
        Pairs of a name and data.

    Raises:
        PlanError: There are several streams, and the data is not for each of them.

    Example:
        >>> from penstock.plan.running import by_stream
        >>> by_stream(["bids"], [1], "data")
        [('bids', [1])]
    """
    if isinstance(given, Mapping) and not isinstance(given, ArrowStream | ArrowArray):
        for name in given:
            if not isinstance(name, str):
                raise TypeError(f"{argument} maps names of streams to data, not {name!r}")
        return list(given.items())
    if len(streams) == 1:
        return [(streams[0], given)]
    names = ", ".join(f"{name!r}: ..." for name in streams)
    raise PlanError(f"this pipeline reads {len(streams)} streams: give {argument} for each, as {{{names}}}")


def run_outputs(
    outputs: _penstock.Outputs,
    data: ArrowData | Mapping[str, ArrowData],
    options: _penstock.EngineOptions,
    *,
    on_error: OnError = "fail",
    spreading: Spreading = (None, None),
    warn_above: int,
) -> dict[str, Result]:
    """Runs pipelines over data, and waits for the results.

    Args:
        outputs: The pipelines.
        data: The rows, for each stream if there are several.
        options: How they are run.
        on_error: What becomes of rows that an operator has no answer for.
        spreading: Workers that one operator may take, and how.
        warn_above: Whose line a warning is to name, counted from here.

    Returns:
        The result of each output.

    Example:
        >>> import penstock as ps
        >>> from penstock.plan.running import run_outputs
        >>> from penstock import _penstock
        >>> plan = ps.stream({"price": "int64"})._plan
        >>> from penstock.plan.options import read_options
        >>> run_outputs(_penstock.Outputs([("a", plan)]), [], read_options(), warn_above=2)["a"].rows_in
        0
    """
    with Opening() as opening:
        opened = _opened(opening, outputs, data)
        made = outputs.run(opened, options, read_on_error(on_error), spreading)
    return _results(outputs, made, warn_above + 1)


def run_part_of(
    outputs: _penstock.Outputs,
    data: ArrowData | Mapping[str, ArrowData],
    options: _penstock.EngineOptions,
    *,
    states: Sequence[bytes],
    last: bool,
    imposed_watermarks: Mapping[str, int] | None = None,
    on_error: OnError = "fail",
    warn_above: int,
) -> tuple[dict[str, Result], bytes | None, dict[str, int | None]]:
    """Runs pipelines over the next part of the data, and waits for the results of that.

    Args:
        outputs: The pipelines.
        data: The rows, for each stream if there are several.
        options: How they are run.
        states: The state after the previous part, or after several parts that ran side by side; none for the
            first.
        last: Whether this is the last part.
        imposed_watermarks: The watermark after this part, in ticks, for each stream whose watermark advances;
            `None` to take watermarks from the rows.
        on_error: What becomes of rows that an operator has no answer for.
        warn_above: Whose line a warning is to name, counted from here.

    Returns:
        The result of each output, the state after this part unless it was the last, and the watermark after
        each output.

    Example:
        >>> import penstock as ps
        >>> from penstock.plan.options import read_options
        >>> from penstock import _penstock
        >>> from penstock.plan.running import run_part_of
        >>> outputs = _penstock.Outputs([("a", ps.stream({"price": "int64"})._plan)])
        >>> run_part_of(outputs, [], read_options(), states=[], last=True, warn_above=2)[1] is None
        True
    """
    part_options = (last, None if imposed_watermarks is None else dict(imposed_watermarks))
    with Opening() as opening:
        opened = _opened(opening, outputs, data)
        made, state, ticks = outputs.run_part(
            opened, options, read_on_error(on_error), list(states), part_options
        )
    pairs = zip(outputs.names, ticks, strict=True)
    watermarks = {name: None if tick == _NO_WATERMARK else tick for name, tick in pairs}
    return _results(outputs, made, warn_above + 1), state, watermarks


def _opened(
    opening: Opening, outputs: _penstock.Outputs, data: ArrowData | Mapping[str, ArrowData]
) -> list[tuple[str, object]]:
    several = len(outputs.streams) > 1
    given: list[tuple[str, Any]] = by_stream(outputs.streams, data, "data")
    for _, one in given:
        if hasattr(type(one), "_check_source"):  # a query, or its results: this thread waits for them
            one._check_source()
    return [(name, opening.open(one, f"data[{name!r}]" if several else "data")) for name, one in given]


def _results(outputs: _penstock.Outputs, made: list[_penstock.Output], warn_above: int) -> dict[str, Result]:
    if made[0].dropped_late is not None:
        late, distance = made[0].dropped_late
        warn_late(late, made[0].rows_in, distance, above=warn_above)
    return {name: Result(output) for name, output in zip(outputs.names, made, strict=True)}
