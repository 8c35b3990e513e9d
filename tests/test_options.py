"""Options of a run: by argument and by environment, and a clear word about each that cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.plan.options import read_options

TABLE = pa.table({"t": [1, 2, 3], "x": [1, 2, 3]})
STREAM = ps.stream(TABLE.schema, time="t").filter(ps.col("x") > 1)
VARIABLES = ["MEMORY", "CHAIN", "BUDGET", "BLOCK_ROWS", "CHUNK_BLOCKS", "PLATFORM"]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set by whoever runs these tests."""
    for name in VARIABLES:
        monkeypatch.delenv(f"PENSTOCK_{name}", raising=False)


def memory_of(**options: Any) -> dict[str, int]:
    result = STREAM.run(TABLE, **options)
    assert len(result) == 2
    return result.memory


GOOD: list[dict[str, Any]] = [
    {"memory": "blocks"}, {"memory": "queue"}, {"chain": "auto"}, {"chain": "off"}, {"budget": 2**20},
    {"budget": "1MiB"}, {"budget": " 1.5 gb "}, {"budget": "18446744073709551615"}, {"block_rows": 1},
    {"block_rows": 65_536}, {"chunk_blocks": 1}, {"chunk_blocks": 65_536},
    {"memory": None, "chain": None, "budget": None, "block_rows": None, "chunk_blocks": None},
    {"memory": "queue", "chain": "off", "budget": "8MiB", "block_rows": 7, "chunk_blocks": 3},
]  # fmt: skip


@pytest.mark.parametrize("options", GOOD, ids=str)
def test_every_option_runs_by_argument_and_by_variable(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_argument = memory_of(**options)
    for name, value in options.items():
        if value is not None:
            monkeypatch.setenv(f"PENSTOCK_{name.upper()}", str(value))
    by_variable = memory_of()
    assert by_variable["budget_bytes"] == by_argument["budget_bytes"]


BAD: list[tuple[str, Any, type[Exception], list[str]]] = [
    ("memory", "block", ps.PlanError, ['"blocks" or "queue"', '"block"', 'did you mean "blocks"?']),
    ("memory", "zzzzzzzz", ps.PlanError, ['"blocks" or "queue"', '"zzzzzzzz"']),
    ("chain", "Off", ps.PlanError, ['"auto" or "off"', 'did you mean "off"?']),
    ("budget", "64M", ps.SizeError, ['"64M"', "MiB", 'did you mean "MB"?']),
    ("budget", "much", ps.SizeError, ['"much"', '"64MiB"']),
    ("budget", 0, ps.SizeError, ['"0"', "above zero"]),
    ("budget", -5, ps.SizeError, ['"-5"', "negative"]),
    ("budget", 2**64, ps.SizeError, ["too large"]),
    ("block_rows", 0, ps.PlanError, ["65,536 rows", "not 0"]),
    ("block_rows", -1, ps.PlanError, ["65,536 rows", "not -1"]),
    ("block_rows", 65_537, ps.PlanError, ["65,536 rows", "not 65537"]),
    ("block_rows", 2**70, ps.PlanError, ["65,536 rows"]),
    ("chunk_blocks", 0, ps.PlanError, ["65,536 blocks", "not 0"]),
    ("chunk_blocks", 10**9, ps.PlanError, ["65,536 blocks"]),
]


@pytest.mark.parametrize("by", ["argument", "variable"])
@pytest.mark.parametrize(("option", "value", "kind", "words"), BAD, ids=lambda value: str(value)[:20])
def test_a_bad_value_is_named_with_what_may_be(
    option: str,
    value: Any,
    kind: type[Exception],
    words: list[str],
    by: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if by == "argument":
        options, named = {option: value}, option
    else:
        options, named = {}, f"PENSTOCK_{option.upper()}"
        monkeypatch.setenv(named, str(value))
    with pytest.raises(kind) as caught:
        STREAM.run(TABLE, **options)
    assert type(caught.value) is kind
    assert isinstance(caught.value, ValueError)
    text = str(caught.value)
    assert text.startswith(named), text
    for word in words:
        assert word in text


WRONG_TYPES = [
    ("memory", 1), ("memory", b"blocks"), ("chain", True), ("budget", 1.5), ("budget", True),
    ("budget", b"1MiB"), ("block_rows", "7"), ("block_rows", 7.0), ("block_rows", True),
    ("chunk_blocks", "1"), ("chunk_blocks", False), ("chunk_blocks", [1]),
]  # fmt: skip


@pytest.mark.parametrize(("option", "value"), WRONG_TYPES, ids=str)
def test_a_value_of_the_wrong_kind_is_a_type_error(option: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{option} takes .*{type(value).__name__}"):
        STREAM.run(TABLE, **{option: value})


@pytest.mark.parametrize(
    ("variable", "value"),
    [("PENSTOCK_BLOCK_ROWS", "many"), ("PENSTOCK_CHUNK_BLOCKS", "1.5"), ("PENSTOCK_BLOCK_ROWS", "1e3")],
)
def test_a_variable_that_is_no_number_is_named(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ps.PlanError, match=f'{variable} is a whole number, not "{value}"'):
        STREAM.run(TABLE)


@pytest.mark.parametrize("value", ["native", "portable"])
def test_a_platform_is_chosen_by_variable(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PLATFORM", value)
    memory_of()
    memory_of(chain="off", memory="queue", block_rows=1)


def test_a_bad_platform_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PLATFORM", "portabel")
    with pytest.raises(ps.PlanError, match='PENSTOCK_PLATFORM is "native" or "portable", .* mean "portable"'):
        STREAM.run(TABLE)


def test_an_argument_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_BUDGET", "16MiB")
    assert memory_of()["budget_bytes"] == 16 << 20
    assert memory_of(budget="8MiB")["budget_bytes"] == 8 << 20
    for name in VARIABLES[:-1]:
        monkeypatch.setenv(f"PENSTOCK_{name}", "nonsense")
    memory_of(memory="blocks", chain="auto", budget=10**8, block_rows=5, chunk_blocks=2)


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = memory_of()["budget_bytes"]
    for name in VARIABLES:
        monkeypatch.setenv(f"PENSTOCK_{name}", " ")
    assert memory_of()["budget_bytes"] == usual


def test_the_environment_is_read_by_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ps.stream(TABLE.schema)
    for mebibytes in (3, 5):
        monkeypatch.setenv("PENSTOCK_BUDGET", f"{mebibytes}MiB")
        assert stream.run(TABLE).memory["budget_bytes"] == mebibytes << 20


def test_numbers_of_other_kinds_are_numbers() -> None:
    class Seven:
        def __index__(self) -> int:
            return 7

    memory_of(block_rows=Seven(), chunk_blocks=Seven())
    with pytest.raises(ps.MemoryLimitExceeded):
        memory_of(budget=Seven())


def test_a_bad_option_leaves_the_data_unread() -> None:
    read = []

    def batches() -> Iterator[pa.Table]:
        read.append(1)
        yield TABLE

    data = batches()
    with pytest.raises(ps.PlanError):
        STREAM.run(data, chain="on")  # type: ignore[arg-type]
    assert not read
    assert len(STREAM.run(data)) == 2


def test_options_come_by_name_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        STREAM.run(TABLE, "blocks")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="memry"):
        STREAM.run(TABLE, memry="blocks")  # type: ignore[call-arg]


UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}


@given(st.integers(1, 10**6), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " "]))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str, space: str) -> None:
    bytes_ = number * UNITS[unit]
    if bytes_ < 2**20:
        read_options(budget=f"{number}{space}{unit}")
    else:
        assert STREAM.run([], budget=f"{number}{space}{unit}").memory["budget_bytes"] == bytes_


@given(st.text(max_size=12) | st.integers())
def test_any_budget_is_a_size_or_an_error_that_says_so(budget: str | int) -> None:
    with suppress(ps.SizeError):
        read_options(budget=budget)
