"""How each workload is generated to be checked: so that any number of rows makes windows worth comparing.

As they are meant for benchmarks, the generators put a million rows into a second of event time, in order. An
answer over them has one window, and hardly a mistake of the engine would show. Here the rows lie far enough
apart for many windows of every query, some are out of order, and some up to a minute late.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from penstock.workloads import catalog

__all__ = ["SAMPLES", "Sample", "sample_options"]


@dataclass(frozen=True)
class Sample:
    """What a workload is generated with.

    Attributes:
        seconds: The event time that the rows are spread over; None where they are by themselves.
        least_rate: Rows per second of event time, at least: few rows take fewer seconds, as the results of a
            window that slides by a second go by the seconds.
        options: The options of the generators beside the rate.

    Example:
        >>> from penstock.spark.samples import Sample
        >>> Sample(seconds=600, least_rate=20).rate(1_000_000), Sample(seconds=600, least_rate=20).rate(1_000)
        (1666, 20)
    """

    seconds: int | None
    least_rate: int = 1
    options: Mapping[str, catalog.Option] = field(default_factory=dict)

    def rate(self, rows: int) -> int | None:
        """Returns the rows per second of event time, for a total number of rows.

        Args:
            rows: The rows of all tables together.

        Returns:
            The option `rate`, or None where there is none.

        Example:
            >>> from penstock.spark.samples import Sample
            >>> Sample(seconds=100).rate(5_000)
            50
        """
        return None if self.seconds is None else max(self.least_rate, rows // self.seconds)


_DISORDER = {"out_of_order_ms": 3_000, "late_every": 1_000}

SAMPLES: Mapping[str, Sample] = MappingProxyType(
    {
        # Windows of 10 s: 60 of them.
        "ysb": Sample(600, 20, _DISORDER),
        "ysb-strings": Sample(600, 20, _DISORDER),
        # Windows of up to 300 s, some of them every second. Traffic grows with time, and so do the rows of a
        # second: a million are three quarters of an hour, with tolls, and with accidents that waive some.
        "lrb": Sample(
            None,
            options={
                "cars_per_second": 100,
                "accident_every": 300,
                "queries_every": 20,
                "out_of_order_s": 3,
                "late_every": 1_000,
            },
        ),
        # Windows of 2 s.
        "nyt": Sample(300, 20, _DISORDER),
        # Windows of 10 s, some of them before 1970, and pauses of 10 s between two bids of a person.
        "nexmark": Sample(600, 200, {**_DISORDER, "first_event_time_ms": -12_345}),
        # Windows of 60 s, every second; enough failures for CM2, which looks at nothing else.
        "cm": Sample(900, 50, {**_DISORDER, "fail_share": 0.05}),
        # Windows of an hour and of 128 s, every second, the latter for each of about 50 plugs of a house.
        "sg": Sample(5_400, 50, {**_DISORDER, "houses": 2}),
        # Windows of 60 s, every second.
        "me": Sample(3_600, 20, _DISORDER),
        # Windows of 1 s; each of the two tables has half of the rows, in half of the time. Some seconds have
        # many times the rows of others.
        "ipq": Sample(240, 100, {**_DISORDER, "keys": 500, "variable": True}),
    }
)
"""What each workload is generated with, by its name."""


def sample_options(workload: str, rows: int) -> dict[str, catalog.Option]:
    """Returns the options that a workload is generated with to be checked.

    Args:
        workload: The name of the workload.
        rows: How many rows there will be, in all tables together.

    Returns:
        The options for `penstock.spark.write_dataset`.

    Raises:
        ValueError: There is no such workload.

    Example:
        >>> from penstock.spark.samples import sample_options
        >>> sample_options("ysb", 1_000_000)
        {'rate': 1666, 'out_of_order_ms': 3000, 'late_every': 1000}
    """
    sample = SAMPLES[catalog.workload(workload).name]
    rate = sample.rate(rows)
    return {**({} if rate is None else {"rate": rate}), **sample.options}
