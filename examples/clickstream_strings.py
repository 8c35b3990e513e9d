"""Clicks in a shop, with text for keys: revenue per country and product group in windows of an hour.

Shows expressions, a left lookup whose misses are filled with null, several keys, dictionary-encoded text, and
a filter behind the window. Needs pyarrow for making the data.
Run it with `python examples/clickstream_strings.py`.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

import penstock as ps
from penstock import col

OPENING = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)

SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us", tz="UTC"),
        "action": pa.dictionary(pa.int32(), pa.string()),
        "country": pa.string(),
        "product": pa.string(),
        "pieces": pa.int32(),
        "price": pa.decimal128(8, 2),
    }
)

PRODUCTS = pa.table(
    {
        "product": ["boots", "sandals", "Zürich map"],
        "group": ["shoes", "shoes", "maps"],
        "taxed": [True, True, False],
    }
)

# Minutes after opening, action, country, product, pieces, price per piece.
CLICKS = [
    (1, "view", "AT", "boots", 0, "120.00"),
    (2, "buy", "AT", "boots", 1, "120.00"),
    (3, "buy", "AT", "sandals", 2, "35.50"),
    (4, "buy", "CH", "Zürich map", 3, "9.90"),
    (20, "buy", None, "boots", 1, "120.00"),
    (59, "buy", "CH", "umbrella", 1, "15.00"),  # a product that the table does not know
    (61, "buy", "AT", "boots", 1, "110.00"),
    (62, "buy", "AT", "boots", None, "110.00"),  # nobody knows how many
]


def clicks() -> pa.Table:
    names = SCHEMA.names
    rows = [
        dict(zip(names, (OPENING + timedelta(minutes=minute), *others, Decimal(price)), strict=True))
        for minute, *others, price in CLICKS
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def main() -> None:
    sales = (
        ps.stream(SCHEMA, time="at", delay="5m")
        .filter((col("action") == "buy") & col("pieces").is_not_null())
        .lookup(PRODUCTS, on="product", how="left")
        .with_columns(amount=col("pieces") * col("price"))
        .window(ps.tumbling("1h"), by=["country", "group"])
        .agg(ps.count().alias("sales"), revenue=ps.sum("amount"), first_product=ps.min("product"))
    )
    large = sales.filter(col("revenue") >= Decimal("25.00"))
    print(large.schema)
    print()

    result = large.run(clicks())
    rows = sorted(
        result.to_pylist(), key=lambda row: (row["window_start"], row["country"] or "", row["group"] or "")
    )
    for row in rows:
        print(
            f"{row['window_start']:%H:%M}  {row['country']}  {row['group']}  {row['sales']}  {row['revenue']}"
        )

    assert [tuple(row.values())[2:] for row in rows] == [
        (None, "shoes", 1, Decimal("120.00"), "boots"),
        ("AT", "shoes", 2, Decimal("191.00"), "boots"),
        ("CH", "maps", 1, Decimal("29.70"), "Zürich map"),
        ("AT", "shoes", 1, Decimal("110.00"), "boots"),
    ]
    assert len(sales.run(clicks())) == 5, "the umbrella is a sale too, of an unknown group"
    assert ps.Stream.from_json(large.to_json()) == large


if __name__ == "__main__":
    main()
