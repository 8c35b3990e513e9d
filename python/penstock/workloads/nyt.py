"""NYT, the taxi trips of New York: trips and their mean distance per pick-up cell and window.

A row is a trip that has ended, in the columns of the published data. The query puts both ends of a trip on a
grid of cells of 250 m, keeps the trips of one vendor that are longer than a mile and lie on the grid with
both ends, and gives their number and mean distance per pick-up cell in windows of two seconds.

The grid has 600 rows, counted from the north, and 600 columns, counted from the west; (41.474937 N,
74.913583 W) is the centre of the first cell. Cells are numbered row by row from 1 to 360,000. Metres per
degree are constants all over the grid, so that every engine computes the same cell.
"""

from penstock import _penstock
from penstock.expr.aggregates import count, mean
from penstock.expr.durations import Duration
from penstock.expr.expression import Expr, col
from penstock.io.schemas import read_schema
from penstock.plan.declaration import stream
from penstock.plan.stream import Stream
from penstock.plan.windows import Window, tumbling
from penstock.workloads.generated import Generated, generate_table

__all__ = ["cell", "column", "generate", "query", "row", "schema", "trips"]

_SIDE = 600
_CELL_METRES = 250.0
_FIRST_LATITUDE = 41.474937
_FIRST_LONGITUDE = -74.913583
_METRES_PER_DEGREE_SOUTH = 111_194.93
# That times the cosine of the latitude of the first cell.
_METRES_PER_DEGREE_EAST = 83_312.3009533086

_COLUMNS = {
    "medallion": "string",
    "hack_license": "string",
    "vendor_id": "string",
    "pickup_datetime": "timestamp[ms]",
    "dropoff_datetime": "timestamp[ms]",
    "trip_time_in_secs": "int64",
    "trip_distance": "float64",
    "pickup_longitude": "float64",
    "pickup_latitude": "float64",
    "dropoff_longitude": "float64",
    "dropoff_latitude": "float64",
    "payment_type": "string",
    "fare_amount": "float64",
    "surcharge": "float64",
    "mta_tax": "float64",
    "tip_amount": "float64",
    "tolls_amount": "float64",
    "total_amount": "float64",
}


def generate(
    rows: int,
    *,
    seed: int = 7,
    start: int = 0,
    batch_rows: int = 65536,
    rate: int = 1_000_000,
    step_every_s: int = 0,
    out_of_order_ms: int = 0,
    late_every: int = 0,
    vts_share: float = 0.5,
    hot_share: float = 0.0,
) -> Generated:
    """Trips `[start, start + rows)` of an endless model of the published data.

    Args:
        rows: How many rows.
        seed: Which data set.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        rate: Trips that end per second of event time.
        step_every_s: Every so many seconds the rate changes: 1, 2, 6 and 12 times `rate` in turn, then
            from the start again; 0 is never.
        out_of_order_ms: By how many milliseconds at most trips are moved forward or back in time.
        late_every: One trip in so many is up to a minute late; 0 is none.
        vts_share: The share of taxis of the vendor VTS, which the query keeps.
        hot_share: The share of trips that are moved so that they start in one and the same cell.

    Returns:
        The data, to be read any number of times.

    Raises:
        ValueError: An option is out of bounds.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nyt.query().run(ps.workloads.nyt.generate(1000)).rows_in
        1000
    """
    return generate_table(
        "nyt",
        "trips",
        rows,
        seed,
        start,
        batch_rows,
        rate=rate,
        step_every_s=step_every_s,
        out_of_order_ms=out_of_order_ms,
        late_every=late_every,
        vts_share=vts_share,
        hot_share=hot_share,
    )


def schema() -> _penstock.Schema:
    """Returns the columns of the trips.

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nyt.schema().names[:3]
        ['medallion', 'hack_license', 'vendor_id']
    """
    return read_schema(_COLUMNS)


def trips(delay: Duration = "2s") -> Stream:
    """Declares the stream of trips. The time of a trip is its end, which is when it becomes known.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nyt.trips().time
        'dropoff_datetime'
    """
    return stream(schema(), time="dropoff_datetime", delay=delay)


def row(latitude: Expr) -> Expr:
    """Computes the row of the grid, from 1 in the north to 600 in the south; others are outside.

    Args:
        latitude: In degrees.

    Returns:
        A float64 expression of whole numbers: NaN and places far away are numbers, too.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> place = ps.stream({"north": "float64"}).select(row=ps.workloads.nyt.row(ps.col("north")))
        >>> place.run(pa.table({"north": [41.474937, 40.75, 42.0]})).to_pylist()
        [{'row': 1.0}, {'row': 323.0}, {'row': -233.0}]
    """
    return ((_FIRST_LATITUDE - latitude) * _METRES_PER_DEGREE_SOUTH / _CELL_METRES + 0.5).floor() + 1


def column(longitude: Expr) -> Expr:
    """Computes the column of the grid, from 1 in the west to 600 in the east; others are outside.

    Args:
        longitude: In degrees, negative in the west.

    Returns:
        A float64 expression of whole numbers, as for `row`.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> place = ps.stream({"east": "float64"}).select(column=ps.workloads.nyt.column(ps.col("east")))
        >>> place.run(pa.table({"east": [-74.913583, -74.0]})).to_pylist()
        [{'column': 1.0}, {'column': 305.0}]
    """
    return ((longitude - _FIRST_LONGITUDE) * _METRES_PER_DEGREE_EAST / _CELL_METRES + 0.5).floor() + 1


def cell(row: Expr, column: Expr) -> Expr:
    """Computes the number of a cell on the grid.

    Args:
        row: From 1 to 600.
        column: From 1 to 600.

    Returns:
        An int64 expression, from 1 to 360,000.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> cells = ps.stream({"row": "float64", "column": "float64"}).select(
        ...     cell=ps.workloads.nyt.cell(ps.col("row"), ps.col("column"))
        ... )
        >>> cells.run(pa.table({"row": [1.0, 2.0, 600.0], "column": [600.0, 1.0, 600.0]})).to_pylist()
        [{'cell': 600}, {'cell': 601}, {'cell': 360000}]
    """
    return ((row - 1) * _SIDE + column).cast("int64")


def query(delay: Duration = "2s", window: Window | None = None) -> Stream:
    """Builds the benchmark's query: trips and mean distance per pick-up cell and window.

    Args:
        delay: By how much rows may come out of order.
        window: The windows, if not tumbling ones of two seconds; Klink's variant is `sliding("2s", "1s")`.

    Returns:
        The pipeline, with the columns window_start, window_end, pickup_cell, trips and mean_distance.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nyt.query(window=ps.sliding("2s", "1s")).schema.names
        ['window_start', 'window_end', 'pickup_cell', 'trips', 'mean_distance']
    """
    places = ("pickup_row", "pickup_column", "dropoff_row", "dropoff_column")
    return (
        trips(delay)
        .select(
            "dropoff_datetime",
            "vendor_id",
            "trip_distance",
            pickup_row=row(col("pickup_latitude")),
            pickup_column=column(col("pickup_longitude")),
            dropoff_row=row(col("dropoff_latitude")),
            dropoff_column=column(col("dropoff_longitude")),
        )
        .filter(
            col("vendor_id") == "VTS",
            col("trip_distance") > 1,
            *(col(place).between(1, _SIDE) for place in places),
        )
        .window(
            tumbling("2s") if window is None else window,
            by=cell(col("pickup_row"), col("pickup_column")).alias("pickup_cell"),
        )
        .agg(trips=count(), mean_distance=mean("trip_distance"))
    )
