"""Traffic on two expressways, with accidents that are known beforehand, and the answers of LRB by SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from reference.aggregates import Approximate
from reference.engine import rows_of
from reference.types import Value

DELAY = 2
SEGMENT_FEET = 5280
LAST_FOOT = 100 * SEGMENT_FEET - 1
REPORTS_PER_CAR = 14
COLUMNS = (
    "time", "type", "vid", "speed", "xway", "lane", "dir", "seg", "pos",
    "qid", "sinit", "send", "dow", "tod", "day",
)  # fmt: skip


@dataclass(frozen=True)
class Stop:
    """A vehicle that stands somewhere: the times of its reports."""

    vid: int
    xway: int
    dir: int
    lane: int
    pos: int
    times: tuple[int, ...]
    speed: int = 0
    type: int = 0

    @property
    def place(self) -> tuple[int, ...]:
        return self.xway, self.dir, self.pos // SEGMENT_FEET, self.lane, self.pos


@dataclass(frozen=True)
class Traffic:
    """Rows in the order in which they arrive, and who stands where in them."""

    rows: pa.Table
    stops: Sequence[Stop]
    minute: int


def crashes(rng: np.random.Generator, until: int, every: int) -> list[Stop]:
    """Accidents, where two or three vehicles stand for four to eight reports, and what looks like one."""
    made: list[Stop] = []
    vids = iter(range(10_000_000, 20_000_000))

    def stand(start: int, count: int, where: tuple[int, int, int, int], **others: int) -> None:
        times = tuple(start + every * n for n in range(count))
        made.append(Stop(next(vids), *where, times, **others))

    def somewhere(low: int = 36, high: int = 50) -> tuple[int, int, int, int]:
        feet = int(rng.integers(low * SEGMENT_FEET, high * SEGMENT_FEET))
        return int(rng.integers(0, 2)), int(rng.integers(0, 2)), int(rng.integers(1, 4)), feet

    for low, high in [(38, 48)] * (8 + until // (10 * every)) + [(0, 1), (2, 4), (96, 98), (99, 100)]:
        where, start = somewhere(low, high), int(rng.integers(0, until)) // every * every
        for _ in range(int(rng.integers(2, 4))):
            stand(start + int(rng.integers(0, every)), int(rng.integers(4, 9)), where)

    def nearly() -> tuple[int, tuple[int, int, int, int]]:
        return int(rng.integers(0, until)) // every * every, somewhere()

    start, where = nearly()
    stand(start, 9, where)  # alone
    start, where = nearly()
    stand(start, 3, where)  # two that go on too early
    stand(start + 1, 3, where)
    start, where = nearly()
    stand(start, 8, where)  # one that does, beside one that does not
    stand(start + 1, 3, where)
    start, (xway, direction, _, pos) = nearly()
    for lane in range(5):  # side by side
        stand(start + lane, 8, (xway, direction, lane, pos))
    for lane in (0, 4):  # on the ramps
        start, (xway, direction, _, pos) = nearly()
        stand(start, 8, (xway, direction, lane, pos))
        stand(start + 1, 8, (xway, direction, lane, pos))
    start, (_, _, lane, pos) = nearly()
    for xway, direction in ((0, 0), (0, 1), (1, 0), (1, 1)):  # on different roads
        stand(start, 8, (xway, direction, lane, pos))
    start, where = nearly()
    stand(start, 4, where)  # one after the other
    stand(start + 4 * every, 4, where)
    start, where = nearly()
    stand(start, 8, where)  # not quite standing
    stand(start + 1, 8, where, speed=1)
    start, where = nearly()
    stand(start, 8, where)  # no position report
    stand(start + 1, 8, where, type=2)
    return made


def traffic(rows: int, seed: int, minute: int = 60) -> Traffic:
    """About so many rows. Cars report every half minute.

    More than half of the cars crawl through some segments, where tolls are due; a quarter go in one column,
    many and fast; the others are all over the place. One row in a hundred says speed 0 while the car moves,
    and a few are no position reports.
    """
    rng = np.random.default_rng(seed)
    every = minute // 2
    cars = rows // REPORTS_PER_CAR
    # So that about sixty cars crawl in a segment at any time.
    until = int(max(4 * minute, cars * REPORTS_PER_CAR * every * 0.55 / 2000))
    kind = rng.choice(3, cars, p=[0.55, 0.25, 0.2])
    column = kind == 1
    xway = np.where(column, 0, rng.integers(0, 2, cars))
    direction = np.where(column, 0, rng.integers(0, 2, cars))
    feet = np.choose(kind, [rng.uniform(40, 45, cars), rng.uniform(70, 71, cars), rng.uniform(0, 100, cars)])
    speed = np.choose(kind, [rng.uniform(3, 35, cars), rng.uniform(50, 70, cars), rng.uniform(20, 75, cars)])
    begin = rng.integers(0, until, cars)
    lane = rng.integers(1, 4, cars)
    report = np.arange(REPORTS_PER_CAR)

    moved = np.outer(speed * SEGMENT_FEET / 3600 * np.where(direction == 0, 1, -1), report * every)
    pos = np.clip(feet[:, None] * SEGMENT_FEET + moved, 0, LAST_FOOT).astype(np.int64)
    told = np.clip(speed[:, None] + rng.normal(0, 4, pos.shape), 1, 100).astype(np.int64)
    lanes = np.where(report == 0, 0, np.where(report == REPORTS_PER_CAR - 1, 4, lane[:, None]))

    def each(values: np.ndarray) -> np.ndarray:
        return np.repeat(values, REPORTS_PER_CAR)

    columns = {
        "time": (begin[:, None] + report * every).ravel(),
        "type": np.where(rng.random(pos.size) < 0.03, rng.choice([2, 3, 4], pos.size), 0),
        "vid": each(np.arange(cars)),
        "speed": np.where(rng.random(pos.size) < 0.01, 0, told.ravel()),
        "xway": each(xway), "lane": lanes.ravel(), "dir": each(direction),
        "seg": pos.ravel() // SEGMENT_FEET, "pos": pos.ravel(),
    }  # fmt: skip
    stops = crashes(rng, until, every)
    standing = [(time, s.type, s.vid, s.speed, s.xway, s.lane, s.dir, s.pos // SEGMENT_FEET, s.pos)
                for s in stops for time in s.times]  # fmt: skip
    both = {name: np.concatenate([values, [row[place] for row in standing]])
            for place, (name, values) in enumerate(columns.items())}  # fmt: skip
    both |= {name: np.where(both["type"] == 0, -1, 1) for name in COLUMNS[9:]}
    order = np.argsort(both["time"] + rng.integers(0, DELAY + 1, len(both["time"])), kind="stable")
    arrays = {
        name: pa.array(both[name][order], pa.int64() if name == "time" else pa.int32()) for name in COLUMNS
    }
    return Traffic(pa.table(arrays), stops, minute)


def planted_accidents(traffic: Traffic) -> list[dict[str, Value]]:
    """What `accidents` must find, from the stops alone, window by window."""
    size, slide = 2 * traffic.minute, traffic.minute // 2
    stopped: Counter[tuple[int, ...]] = Counter()
    for stop in traffic.stops:
        if stop.speed or stop.type or not 1 <= stop.lane <= 3:
            continue
        for start in range(stop.times[0] // slide * slide - size, stop.times[-1] + 1, slide):
            if sum(start <= time < start + size for time in stop.times) >= 4:
                stopped[start, start + size, *stop.place] += 1
    names = ("window_start", "window_end", "xway", "dir", "seg", "lane", "pos")
    return [
        {**dict(zip(names, window, strict=True)), "vehicles": count}
        for window, count in stopped.items()
        if count >= 2
    ]


VIEWS = """
create view reports as select * from input where type = 0;

create view accidents as
with stops as (
    select xway, dir, seg, lane, pos, vid, (time // ($minute // 2) + nth) * ($minute // 2) as window_end
    from reports, range(1, 5) as ends(nth) where lane in (1, 2, 3) and speed = 0
), standing as (
    select xway, dir, seg, lane, pos, vid, window_end from stops group by all having count(*) >= 4
)
select window_end - 2 * $minute as window_start, window_end, xway, dir, seg, lane, pos, count(*) as vehicles
from standing group by all having count(*) >= 2;

create view lav as
with by_vehicle as (
    select time // $minute as m, xway, dir, seg, vid, avg(speed) as speed from reports group by all
), by_minute as (
    select m, xway, dir, seg, avg(speed) as speed from by_vehicle group by all
)
select (m + nth - 5) * $minute as window_start, (m + nth) * $minute as window_end, xway, dir, seg,
    avg(speed) as lav
from by_minute, range(1, 6) as ends(nth) group by all;

create view vehicles as
select time // $minute * $minute as window_start, window_start + $minute as window_end, xway, dir, seg,
    count(distinct vid) as vehicles
from reports group by all;

create view tolls as
select v.window_start, window_end, xway, dir, seg, lav, vehicles,
    case when lav < 40 and vehicles > 50 then 2 * (vehicles - 50) * (vehicles - 50) else 0 end as toll
from vehicles v join lav using (window_end, xway, dir, seg);

create view query as
with judged as (
    select *, exists (
        from accidents a
        where a.xway = t.xway and a.dir = t.dir
            and a.window_end > t.window_start and a.window_end <= t.window_end
            and case t.dir when 0 then a.seg - t.seg else t.seg - a.seg end between 0 and 4
    ) as accident
    from tolls t
)
select * exclude (toll), case when accident then 0 else toll end as toll from judged;
"""


def answer(pipeline: str, traffic: Traffic) -> list[dict[str, Value]]:
    """What "accidents", "lav", "vehicles", "tolls" or "query" gives."""
    with duckdb.connect() as connection:
        connection.register("input", traffic.rows)
        connection.execute(VIEWS.replace("$minute", str(traffic.minute)))
        rows = rows_of(connection.table(pipeline).to_arrow_table())
    for row in rows:
        lav = row.get("lav")
        if isinstance(lav, float):
            row["lav"] = Approximate(lav, lav)
    return rows
