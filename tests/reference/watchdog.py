"""Ends a test that hangs, and says what the engine was doing."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import penstock as ps

HANG_SECONDS = 30.0


def state_of(engine: ps.Engine, queries: list[ps.Query]) -> str:
    """All that the engine and its queries say about themselves."""
    lines = [f"engine: {json.dumps(engine.metrics(), default=str)}"]
    for query in {id(query): query for query in [*engine.queries, *queries]}.values():
        lines.append(f"query {query.name}: {query.status} {json.dumps(query.metrics(), default=str)}")
    return "\n".join(lines)


@contextmanager
def watched(engine: ps.Engine, seconds: float = HANG_SECONDS) -> Iterator[list[ps.Query]]:
    """Fails the test if the block takes longer, with the state of the engine and of the queries in the list.

    Whatever the main thread waits for in the engine is interrupted, as by Ctrl-C.
    """
    queries: list[ps.Query] = []
    fired = threading.Event()

    def bark() -> None:
        fired.set()
        print(f"-- after {seconds} s\n{state_of(engine, queries)}", file=sys.stderr, flush=True)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    timer = threading.Timer(seconds, bark)
    timer.daemon = True
    timer.start()
    try:
        yield queries
    except KeyboardInterrupt:
        if not fired.is_set():
            raise
        running = [query.name for query in queries if query.status == "running"]
        pytest.fail(f"not done after {seconds} s, and {running} run; see the state of the engine on stderr")
    finally:
        timer.cancel()
