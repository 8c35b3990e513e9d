"""Several pipelines that run as one and share their common steps."""

import html
from collections.abc import Mapping
from typing import Any, final

from penstock import _penstock
from penstock.expr._frozen import Frozen
from penstock.io.protocols import ArrowData
from penstock.io.rejecting import OnError
from penstock.io.result import Result
from penstock.plan.options import (
    Chain,
    Memory,
    Mode,
    Parallelism,
    Policy,
    Size,
    Strategy,
    read_options,
    read_spreading,
)
from penstock.plan.running import run_outputs
from penstock.plan.stream import Stream

__all__ = ["Outputs", "outputs"]


@final
class Outputs(Frozen):
    """Pipelines that run together, each with an output of its own. Made by `outputs`.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"price": "int64"})
        >>> both = ps.outputs(all=prices, dear=prices.filter(ps.col("price") > 1))
        >>> {name: result.rows_out for name, result in both.run(pa.table({"price": [1, 2]})).items()}
        {'all': 2, 'dear': 1}
    """

    __slots__ = ("_native",)

    _native: _penstock.Outputs

    def __init__(self, native: _penstock.Outputs) -> None:
        if not isinstance(native, _penstock.Outputs):
            raise TypeError("Outputs are not made directly: use penstock.outputs(name=stream, ...)")
        self._fill(_native=native)

    @property
    def names(self) -> list[str]:
        """The names of the outputs.

        Example:
            >>> import penstock as ps
            >>> ps.outputs(prices=ps.stream({"price": "int64"})).names
            ['prices']
        """
        return self._native.names

    def __getitem__(self, name: str) -> Stream:
        names = self.names
        if name not in names:
            raise KeyError(f"there is no output {name!r}; there are {names}")
        return Stream(self._native.plans[names.index(name)])

    def run(
        self,
        data: ArrowData | Mapping[str, ArrowData],
        *,
        memory: Memory | None = None,
        chain: Chain | None = None,
        budget: Size | None = None,
        block_rows: int | None = None,
        chunk_blocks: int | None = None,
        workers: int | None = None,
        policy: Policy | None = None,
        mode: Mode | None = None,
        on_error: OnError = "fail",
        parallelism: Parallelism = "auto",
        strategy: Strategy = "auto",
    ) -> dict[str, Result]:
        """Runs the pipelines over data, to its end, and waits for the results. Ctrl-C interrupts it.

        Args:
            data: The rows, as for `Stream.run`; a mapping of names to rows if there are several streams.
            memory: See `Stream.run`, as for all other options.
            chain: See there.
            budget: See there.
            block_rows: See there.
            chunk_blocks: See there.
            workers: See there.
            policy: See there.
            mode: See there.
            on_error: See there.
            parallelism: See there.
            strategy: See there.

        Returns:
            The result of each output, by name. All of them have the counters of the whole run.

        Raises:
            DataError: The data does not fit the pipelines; the subclasses say how.
            ComputeError: An expression has no answer for some row.
            MemoryLimitExceeded: The pipelines need more memory than the budget.
            PlanError: An option has a value that it cannot have, or there is no data for some stream.
            TypeError: This is not Arrow data, or an option is of the wrong kind.

        Warns:
            LateRowsWarning: Rows came after their window had closed, and no output takes them.

        Example:
            >>> import penstock as ps
            >>> ps.outputs(prices=ps.stream({"price": "int64"})).run([])["prices"].rows_out
            0
        """
        options = read_options(
            workers=workers,
            policy=policy,
            mode=mode,
            memory=memory,
            chain=chain,
            budget=budget,
            block_rows=block_rows,
            chunk_blocks=chunk_blocks,
            usual_workers=1,
        )
        spreading = read_spreading(parallelism, strategy)
        return run_outputs(self._native, data, options, on_error=on_error, spreading=spreading, warn_above=3)

    def explain(
        self, workers: int | None = None, strategy: Strategy = "auto", *, physical: bool = False
    ) -> str:
        """Formats the plan as text, one operator per line; numbers say which operator reads which.

        Args:
            workers: With a number, the text also says how each operator with state would run on so many
                workers, and why.
            strategy: How it would be spread over them: see `Stream.run`.
            physical: Describes the tasks that the plans would run as instead: see `Stream.explain`.

        Returns:
            The text, which is also what `print(outputs)` shows.

        Example:
            >>> import penstock as ps
            >>> "stream" in ps.outputs(prices=ps.stream({"price": "int64"})).explain()
            True
        """
        if physical:
            spreading = read_spreading(1 if workers is None else workers, strategy)
            return self._native.explain_physical(read_options(usual_workers=1), spreading)
        if workers is None:
            return self._native.explain()
        return self._native.explain(read_spreading(workers, strategy))

    def to_json(self) -> str:
        """Serialises the pipelines as JSON, including lookup tables.

        Returns:
            The text, for `Outputs.from_json`.

        Example:
            >>> import penstock as ps
            >>> both = ps.outputs(prices=ps.stream({"price": "int64"}))
            >>> ps.Outputs.from_json(both.to_json()) == both
            True
        """
        return self._native.to_json()

    @staticmethod
    def from_json(text: str) -> "Outputs":
        """Makes pipelines from the output of `to_json`. They are checked like those built by hand.

        Args:
            text: The JSON text. It is data, never code.

        Returns:
            The pipelines.

        Raises:
            PlanError: The text is not that of pipelines.

        Example:
            >>> import penstock as ps
            >>> both = ps.outputs(prices=ps.stream({"price": "int64"}))
            >>> ps.Outputs.from_json(both.to_json()).names
            ['prices']
        """
        return Outputs(_penstock.Outputs.from_json(text))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outputs):
            return NotImplemented
        return self._native == other._native

    def __hash__(self) -> int:
        return hash(self.explain())

    def __reduce__(self) -> tuple[object, ...]:
        return _from_parts, self._native.to_parts()

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


def outputs(**streams: Stream) -> Outputs:
    """Combines pipelines to run as one, each with an output of its own.

    Steps that they share, such as the stream that they read, run once.

    Args:
        **streams: The pipelines, by the names of their outputs.

    Returns:
        The pipelines, for `Outputs.run` or `Engine.submit`.

    Raises:
        PlanError: There is none, or two of them read streams that cannot be told apart by name.
        TypeError: Something else than a pipeline is among them.

    Example:
        >>> import penstock as ps
        >>> prices = ps.stream({"price": "int64"})
        >>> ps.outputs(all=prices, dear=prices.filter(ps.col("price") > 1)).names
        ['all', 'dear']
    """
    for name, one in streams.items():
        if not isinstance(one, Stream):
            raise TypeError(f"outputs() takes streams, and {name}= is {type(one).__name__}")
    return Outputs(_penstock.Outputs([(name, one._plan) for name, one in streams.items()]))


def _from_parts(text: str, functions: list[tuple[str, Any]]) -> Outputs:
    return Outputs(_penstock.Outputs.from_parts(text, functions))
