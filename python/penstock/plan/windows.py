"""Windows: how the time axis is cut into pieces that are aggregated one by one."""

from dataclasses import dataclass, field

from penstock import _penstock
from penstock.expr.durations import Duration, normalise_duration

__all__ = ["Window", "session", "sliding", "tumbling"]


@dataclass(frozen=True, slots=True, repr=False)
class Window:
    """A way to cut time into windows. Made by `tumbling`, `sliding` or `session`, taken by `Stream.window`.

    Two windows are equal when they are spelt alike: "60s" and "1m" differ here, and are the same to the
    engine.

    Attributes:
        kind: "tumbling", "sliding" or "session".
        size: The length of a window, or the gap that ends a session: a string with a unit, or a whole number
            in units of the time column.
        slide: From the start of one window to that of the next, for sliding windows.
        offset: How far windows are moved from the epoch.

    Example:
        >>> import penstock as ps
        >>> ps.tumbling("10s").size
        '10s'
    """

    kind: str
    size: str | int
    slide: str | int | None = None
    offset: str | int = 0
    _native: _penstock.Window = field(init=False, compare=False)

    def __post_init__(self) -> None:
        match self.kind:
            case "tumbling":
                native = _penstock.Window.tumbling(self.size, self.offset)
            case "sliding" if self.slide is not None:
                native = _penstock.Window.sliding(self.size, self.slide, self.offset)
            case "session":
                native = _penstock.Window.session(self.size)
            case _:
                raise TypeError("a Window is not made directly: use tumbling(), sliding() or session()")
        object.__setattr__(self, "_native", native)

    def __reduce__(self) -> tuple[object, ...]:
        return Window, (self.kind, self.size, self.slide, self.offset)

    def __repr__(self) -> str:
        slide = "" if self.slide is None else f", {self.slide!r}"
        offset = "" if self.offset == 0 else f", offset={self.offset!r}"
        return f"{self.kind}({self.size!r}{slide}{offset})"


def tumbling(size: Duration, *, offset: Duration = 0) -> Window:
    """Makes windows of one size without overlap: each row belongs to exactly one.

    They are aligned to the epoch: a window is `[k * size, (k + 1) * size)` for a whole number k, also before
    1970.

    Args:
        size: How long a window is: "10s", "1h30m", a timedelta, or a whole number in units of the time
            column, which is the only way if that is a column of whole numbers.
        offset: How far they are moved from there: days that begin at six o'clock are
            `tumbling("1d", offset="6h")`. A whole number may be negative.

    Returns:
        The window, for `Stream.window`.

    Raises:
        TypeError: The size is not a duration.
        DurationError: It cannot be read. (One that makes no sense, such as "0s", is a `DurationError` of
            `Stream.window`.)

    Example:
        >>> from datetime import timedelta
        >>> import penstock as ps
        >>> ps.tumbling("10s")
        tumbling('10s')
        >>> ps.tumbling(timedelta(minutes=1))
        tumbling('60000000us')
    """
    return Window(
        "tumbling",
        normalise_duration(size, "the size of a window"),
        None,
        normalise_duration(offset, "offset"),
    )


def sliding(size: Duration, slide: Duration, *, offset: Duration = 0) -> Window:
    """Makes overlapping windows: one begins every `slide`, and a row is in each that contains its time.

    A window is `[k * slide, k * slide + size)` for a whole number k. Rows are aggregated once, however many
    windows they belong to.

    Args:
        size: How long a window is: see `tumbling`.
        slide: From the start of one window to that of the next; at most the size.
        offset: How far they are moved from the epoch.

    Returns:
        The window, for `Stream.window`.

    Raises:
        TypeError: An argument is not a duration.
        DurationError: It cannot be read.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> clicks = ps.stream({"at": "int64"}, time="at")
        >>> counts = clicks.window(ps.sliding(10, 5)).agg(clicks=ps.count())
        >>> [(row["window_start"], row["clicks"]) for row in counts.run(pa.table({"at": [3, 7]})).to_pylist()]
        [(-5, 1), (0, 2), (5, 1)]
    """
    return Window(
        "sliding",
        normalise_duration(size, "the size of a window"),
        normalise_duration(slide, "the slide of a window"),
        normalise_duration(offset, "offset"),
    )


def session(gap: Duration) -> Window:
    """Makes windows of activity: a pause of `gap` or more between rows of a key ends one.

    A session is `[first, last + gap)`, by the times of its first and last row. The order in which rows come
    does not matter: a row between two sessions makes them one. So a session is given out when no row that is
    on time can reach it any more, which is one gap after its end. A row is late if the session that it would
    begin by itself is over: if its time plus the gap is at or before the watermark.

    Args:
        gap: How long the pause is: see `tumbling`.

    Returns:
        The window, for `Stream.window`.

    Raises:
        TypeError: The gap is not a duration.
        DurationError: It cannot be read.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> clicks = ps.stream({"at": "int64"}, time="at", delay=100)
        >>> visits = clicks.window(ps.session(10)).agg(clicks=ps.count())
        >>> rows = visits.run(pa.table({"at": [1, 30, 8]})).to_pylist()
        >>> [(row["window_start"], row["window_end"], row["clicks"]) for row in rows]
        [(1, 18, 2), (30, 40, 1)]
    """
    return Window("session", normalise_duration(gap, "the gap of a session"))
