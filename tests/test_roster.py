"""What an engine holds of its queries: adding one looks at a few others, however many there are."""

import gc
from types import SimpleNamespace
from typing import Any
from weakref import ref

from penstock.engine._roster import FEW, Roster


class Looked:
    """Stands for a query, and counts how often its status is read."""

    looks = 0

    def __init__(self) -> None:
        self.now = "running"
        self._native = SimpleNamespace(has_failed_unseen=False)

    @property
    def status(self) -> str:
        Looked.looks += 1
        return self.now


def add(roster: Any, one: Looked) -> int:
    """Returns how many looks adding this one takes."""
    before = Looked.looks
    roster.add_query(one)
    return Looked.looks - before


def filled(size: int) -> tuple[Roster, list[Looked]]:
    roster, queries = Roster(), [Looked() for _ in range(size)]
    for query in queries:
        add(roster, query)
    return roster, queries


def test_adding_looks_at_a_few_however_many_there_are() -> None:
    roster, _ = filled(10)
    assert 0 < add(roster, Looked()) <= 2 * FEW
    roster, _ = filled(1_000)
    assert 0 < add(roster, Looked()) <= 2 * FEW


def test_adding_looks_at_a_few_of_those_that_have_ended() -> None:
    roster, queries = filled(1_000)
    for query in queries:
        query.now = "finished"
    assert add(roster, Looked()) <= 2 * FEW


def test_a_query_that_ends_soon_is_dropped_by_the_next() -> None:
    roster, _queries = filled(1_000)
    for _ in range(20):
        short = Looked()
        add(roster, short)
        short.now = "finished"
        weak = ref(short)
        del short
        add(roster, Looked())
        gc.collect()
        assert weak() is None


def test_each_query_has_its_turn() -> None:
    roster, queries = filled(100)
    for query in queries:
        query.now = "finished"
    weak = [ref(query) for query in queries]
    del query, queries
    for _ in range(100 // FEW + 1):
        add(roster, Looked())
    gc.collect()
    assert [one() for one in weak] == [None] * 100


def test_a_turn_comes_again() -> None:
    roster, queries = filled(50)
    for _ in range(100):
        add(roster, Looked())
    first = queries[0]
    first.now = "finished"
    for _ in range(150):
        add(roster, Looked())
    assert id(first) not in map(id, roster.queries())


def test_the_ended_are_listed_in_the_order_of_their_ends() -> None:
    roster, queries = filled(3)
    queries[2].now = "finished"
    assert [*map(id, roster.listed())] == [*map(id, (queries[0], queries[1], queries[2]))]
    queries[0].now = "failed"
    assert [*map(id, roster.listed())] == [*map(id, (queries[1], queries[2], queries[0]))]


def test_a_query_with_news_is_held() -> None:
    roster, queries = filled(1)
    queries[0].now, queries[0]._native.has_failed_unseen = "failed", True
    weak = ref(queries[0])
    queries.clear()
    add(roster, Looked())
    gc.collect()
    assert weak() is not None
    weak()._native.has_failed_unseen = False  # type: ignore[union-attr]
    add(roster, Looked())
    gc.collect()
    assert weak() is None
