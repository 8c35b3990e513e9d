"""Windows: how the time axis is cut into pieces that are aggregated one by one."""

from dataclasses import dataclass

from penstock.durations import Duration, normalise_duration

__all__ = ["Window", "tumbling"]


@dataclass(frozen=True, slots=True, repr=False)
class Window:
    """A way to cut time into windows. Made by `tumbling`, taken by `Stream.window`.

    Two windows are equal when their sizes are spelt alike: "60s" and "1m" differ here, and are the same to
    the engine.

    Attributes:
        size: The length of a window: a string with a unit, or a whole number in units of the time column.

    Example:
        >>> import penstock as ps
        >>> ps.tumbling("10s").size
        '10s'
    """

    size: str | int

    def __repr__(self) -> str:
        return f"tumbling({self.size!r})"


def tumbling(size: Duration) -> Window:
    """Windows of one size, side by side: each row belongs to exactly one.

    They are aligned to the epoch: a window is `[k * size, (k + 1) * size)` for a whole number k, also before
    1970.

    Args:
        size: How long a window is: "10s", "1h30m", a timedelta, or a whole number in units of the time
            column, which is the only way if that is a column of whole numbers.

    Returns:
        The window, for `Stream.window`.

    Raises:
        TypeError: The size is not a duration. (One that makes no sense, such as "0s", is a `DurationError` of
            `Stream.window`.)

    Example:
        >>> from datetime import timedelta
        >>> import penstock as ps
        >>> ps.tumbling("10s")
        tumbling('10s')
        >>> ps.tumbling(timedelta(minutes=1))
        tumbling('60000000us')
    """
    return Window(normalise_duration(size, "the size of a window"))
