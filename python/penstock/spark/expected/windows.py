"""Windows in Spark: half-open, aligned to time 0, and only those that hold rows.

Times and lengths are whole numbers: microseconds for timestamps, seconds for LRB. A row at time t lies in all
windows `[start, start + size)` whose start is a multiple of the slide in `(t - size, t]`, also before time 0.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

__all__ = [
    "SECOND",
    "as_timestamp",
    "each_start",
    "epoch_micros",
    "floor_to",
    "running_sums",
    "sliding_starts",
    "sliding_steps",
    "sliding_sums",
    "with_bounds",
]

SECOND = 1_000_000


def epoch_micros(time: Column) -> Column:
    """Microseconds since 1970 of a timestamp without a time zone. The session's time zone must be UTC.

    Args:
        time: The timestamp.

    Returns:
        A whole number.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import epoch_micros
        >>> from pyspark.sql import functions as F
        >>> times = session().sql("select timestamp_ntz '1969-12-31 23:59:59.5' as at")
        >>> times.select(epoch_micros(F.col("at")).alias("micros")).collect()
        [Row(micros=-500000)]
    """
    return F.unix_micros(time.cast("timestamp"))


def as_timestamp(micros: Column) -> Column:
    """Converts microseconds since 1970 to a timestamp without a time zone: the inverse of `epoch_micros`.

    Args:
        micros: Microseconds since 1970.

    Returns:
        A timestamp without a time zone.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import as_timestamp
        >>> from pyspark.sql import functions as F
        >>> str(session().range(1).select(as_timestamp(F.lit(-500_000))).first()[0])
        '1969-12-31 23:59:59.500000'
    """
    return F.timestamp_micros(micros).cast("timestamp_ntz")


def floor_to(time: Column, step: int) -> Column:
    """Rounds `time` down to a multiple of `step`; exact, also for times before 0.

    Args:
        time: The time, a whole number.
        step: The distance of two multiples.

    Returns:
        A whole number.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import floor_to
        >>> from pyspark.sql import functions as F
        >>> times = session().createDataFrame([(-1,), (0,), (9,), (10,)], "at bigint")
        >>> [row.start for row in times.select(floor_to(F.col("at"), 10).alias("start")).collect()]
        [-10, 0, 0, 10]
    """
    return time - F.pmod(time, F.lit(step))


def sliding_starts(time: Column, size: int, slide: int) -> Column:
    """Returns an array of the starts of all sliding windows that contain a time. The slide divides the size.

    Args:
        time: The time, a whole number.
        size: The length of a window.
        slide: The distance from one window to the next.

    Returns:
        An array of whole numbers.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import sliding_starts
        >>> from pyspark.sql import functions as F
        >>> session().range(1).select(sliding_starts(F.lit(7), 10, 5).alias("starts")).first().starts
        [0, 5]
    """
    last = floor_to(time, slide)
    return F.sequence(last - (size - slide), last, F.lit(slide))


def sliding_sums(
    rows: DataFrame, *, time: Column, size: int, slide: int, keys: Sequence[str], values: Sequence[str] = ()
) -> DataFrame:
    """Computes the number of rows of each sliding window per key, and the sums of some columns.

    A row comes into the windows at one start and is out of them again at a later one. The changes are put in
    order and added up, so the cost goes by the rows and by the results, not by the windows of each row. As
    values are subtracted again, they must be exact: whole numbers or decimals.

    Args:
        rows: The rows.
        time: Their time, a whole number.
        size: The length of a window, a multiple of `slide`.
        slide: The distance from one window to the next.
        keys: Columns to group by; none for one group.
        values: Columns to add up.

    Returns:
        A DataFrame with the columns `start`, the keys, `n` and the values.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import sliding_sums
        >>> from pyspark.sql import functions as F
        >>> rows = session().createDataFrame([(7, "a", 1), (11, "a", 2)], "at bigint, key string, m bigint")
        >>> sums = sliding_sums(rows, time=F.col("at"), size=10, slide=5, keys=["key"], values=["m"])
        >>> [tuple(row) for row in sums.orderBy("start").collect()]
        [(0, 'a', 1, 1), (5, 'a', 2, 3), (10, 'a', 1, 2)]
    """
    steps = sliding_steps(rows, time=time, size=size, slide=slide, keys=keys, values=values)
    return each_start(steps, slide)


def sliding_steps(
    rows: DataFrame, *, time: Column, size: int, slide: int, keys: Sequence[str], values: Sequence[str] = ()
) -> DataFrame:
    """Computes `sliding_sums`, with one row for all consecutive windows that contain the same rows.

    Args:
        rows: The rows.
        time: Their time, a whole number.
        size: The length of a window, a multiple of `slide`.
        slide: The distance from one window to the next.
        keys: Columns to group by; none for one group.
        values: Columns to add up.

    Returns:
        A DataFrame with the columns `start` and `end`, the keys, `n` and the values: those of the windows
        whose start lies in `[start, end)`.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import sliding_steps
        >>> from pyspark.sql import functions as F
        >>> rows = session().createDataFrame([(7,), (107,)], "at bigint")
        >>> steps = sliding_steps(rows, time=F.col("at"), size=100, slide=10, keys=[])
        >>> [tuple(row) for row in steps.orderBy("start").collect()]
        [(-90, 10, 1), (10, 110, 1)]
    """
    panes = rows.groupBy(floor_to(time, slide).alias("pane"), *keys).agg(
        F.count("*").alias("n"), *(F.sum(name).alias(name) for name in values)
    )
    sums = ["n", *values]
    pane = F.col("pane")
    enter = panes.select((pane - (size - slide)).alias("start"), *keys, *sums)
    leave = panes.select((pane + slide).alias("start"), *keys, *((-F.col(name)).alias(name) for name in sums))
    return running_sums(enter.unionByName(leave), keys=keys, values=sums).where(F.col("n") > 0)


def each_start(steps: DataFrame, slide: int) -> DataFrame:
    """Expands a row for all windows from `start` to `end` into one row for each window.

    Args:
        steps: What `sliding_steps` gives.
        slide: The distance from one window to the next.

    Returns:
        The same columns without `end`.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import each_start
        >>> steps = session().createDataFrame([(0, 6, 9)], "start bigint, end bigint, n bigint")
        >>> [tuple(row) for row in each_start(steps, 2).collect()]
        [(0, 9), (2, 9), (4, 9)]
    """
    others = [name for name in steps.columns if name not in ("start", "end")]
    starts = F.sequence(F.col("start"), F.col("end") - slide, F.lit(slide))
    return steps.select(F.explode(starts).alias("start"), *others)


def running_sums(changes: DataFrame, *, keys: Sequence[str], values: Sequence[str]) -> DataFrame:
    """Computes running sums of changes.

    Args:
        changes: The columns `start`, which says when, the keys, and the values, which say by how much.
        keys: Columns to group by; none for one group.
        values: Columns to add up.

    Returns:
        A DataFrame with the columns `start` and `end`, the keys and the values: what holds in
        `[start, end)`. The end is null after the last change.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import running_sums
        >>> changes = session().createDataFrame([(1, 5), (4, -3), (1, 1)], "start bigint, n bigint")
        >>> steps = running_sums(changes, keys=[], values=["n"])
        >>> [tuple(row) for row in steps.orderBy("start").collect()]
        [(1, 4, 6), (4, None, 3)]
    """
    at_once = changes.groupBy("start", *keys).agg(*(F.sum(name).alias(name) for name in values))
    ordered = Window.partitionBy(*keys).orderBy("start")
    so_far = ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return at_once.select(
        "start",
        F.lead("start").over(ordered).alias("end"),
        *keys,
        *(F.sum(name).over(so_far).alias(name) for name in values),
    )


def with_bounds(start: Column, size: int) -> list[Column]:
    """Adds the columns `window_start` and `window_end`, from a start in microseconds.

    Args:
        start: Where a window begins, in microseconds.
        size: The length of a window.

    Returns:
        The two columns.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.windows import SECOND, with_bounds
        >>> from pyspark.sql import functions as F
        >>> session().range(1).select(with_bounds(F.lit(0), SECOND)).dtypes
        [('window_start', 'timestamp_ntz'), ('window_end', 'timestamp_ntz')]
    """
    return [as_timestamp(start).alias("window_start"), as_timestamp(start + size).alias("window_end")]
