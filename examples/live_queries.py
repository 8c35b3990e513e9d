"""An engine that runs for as long as you like: three queries share one source, and come and go while it runs.

Shows `Engine`, a shared source that is pushed to, results as they come, a function as a sink, and what the
counters say. Needs pyarrow for making the data. Run it with `python examples/live_queries.py`.
"""

from typing import Any

import pyarrow as pa

import penstock as ps
from penstock import col

SCHEMA = pa.schema({"second": pa.int64(), "shop": pa.string(), "price": pa.int64()})
SHOPS = ["Graz", "Linz", "Wien"]


def sales(minute: int) -> pa.RecordBatch:
    """One minute of sales: one per second, each shop in turn."""
    seconds = range(60 * minute, 60 * (minute + 1))
    columns = {
        "second": list(seconds),
        "shop": [SHOPS[second % 3] for second in seconds],
        "price": [1 + second % 50 for second in seconds],
    }
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


def take(query: ps.Query, count: int) -> list[dict[str, Any]]:
    """So many rows of the results, as soon as they are there."""
    rows: list[dict[str, Any]] = []
    for batch in query:
        rows += batch.to_pylist()
        if len(rows) >= count:
            break
    return rows


def main() -> None:
    stream = ps.stream(SCHEMA, time="second")
    turnover = stream.window(ps.tumbling(60), by="shop").agg(sold=ps.count(), total=ps.sum("price"))

    with ps.Engine(workers=2) as engine, ps.PushSource() as tills:
        # The rows are taken in once. Every query reads them at its own pace.
        source = engine.source(stream, tills, name="tills")
        minutes = engine.submit(turnover, source=source, name="turnover")
        alarms: list[dict[str, Any]] = []
        alarm = engine.submit(
            stream.filter(col("price") >= 50),
            source=source,
            sink=lambda batch: alarms.extend(batch.to_pylist()),
            name="alarm",
        )
        print("running:", ", ".join(query.name for query in engine.queries))

        # A window closes when a row of the next minute comes, and its results are there at once.
        for minute in range(3):
            tills.push(sales(minute))
        rows = take(minutes, 2 * len(SHOPS))
        for row in sorted(rows, key=lambda row: (row["window_start"], row["shop"])):
            print(f"minute {row['window_start'] // 60}: {row['shop']} sold {row['sold']} for {row['total']}")

        # A query that comes later starts with the rows that come next.
        fourth_minute = stream.filter(col("shop") == "Wien", col("second") >= 180)
        late = engine.submit(fourth_minute, source=source, sink="collect", name="late")
        tills.push(sales(3))

        # The source ends, the windows close, and the queries finish.
        tills.close()
        rest = [row for batch in minutes for row in batch.to_pylist()]
        alarm.wait()
        print("rest:", sum(row["total"] for row in rest), "in", len(rest), "windows")
        print("alarms at", [row["second"] for row in alarms])
        print("sales in Wien in the fourth minute:", len(late.result()))

        metrics = minutes.metrics()
        print(f"turnover: {minutes.status}, {metrics['rows_in']} rows in, {metrics['rows_out']} out")

    assert metrics["rows_in"] == 240
    assert metrics["rows_out"] == 12
    assert [row["second"] for row in alarms] == [49, 99, 149, 199]
    assert len(late.result()) == 20
    assert {minutes.status, alarm.status, late.status} == {"finished"}


if __name__ == "__main__":
    main()
