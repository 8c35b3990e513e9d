"""The engine: queries that run side by side, their results, and the sources that they share."""

from penstock.engine.engine import Engine, OnExit, Sink, Source
from penstock.engine.query import Query
from penstock.engine.results import Results
from penstock.engine.shared import OnLag, SharedSource

__all__ = [
    "Engine",
    "OnExit",
    "OnLag",
    "Query",
    "Results",
    "SharedSource",
    "Sink",
    "Source",
]
