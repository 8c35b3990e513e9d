"""Models of pydantic are schemas, and their objects are rows. Penstock knows them by what they have."""

from __future__ import annotations

import datetime as dt
import decimal
import subprocess
import sys
import textwrap
from typing import Annotated

import pydantic
import pytest

import penstock as ps

AT = dt.datetime(2024, 5, 1)


class Sale(pydantic.BaseModel):
    """A row."""

    at: dt.datetime
    price: float | None = None
    small: Annotated[int, "int16"] = 0
    amount: decimal.Decimal = pydantic.Field(default=decimal.Decimal(0), max_digits=12, decimal_places=3)
    count: int = pydantic.Field(default=1, gt=0)


class Taxed(Sale):
    """A row with another column."""

    rate: float = 0.2


def test_a_model_is_a_schema() -> None:
    schema = ps.stream(Sale, time="at").schema
    assert schema.names == ["at", "price", "small", "amount", "count"]
    assert schema.types == ["timestamp[us]", "float64", "int16", "decimal128(12, 3)", "int64"]
    assert schema.nullable == [False, True, False, False, False]
    assert ps.stream(Taxed).schema.names == [*schema.names, "rate"]


def test_objects_of_a_model_are_rows() -> None:
    rows = [Sale(at=AT, small=3), Sale(at=AT, price=1.5, amount=decimal.Decimal("1.250"), count=2)]
    expected = [row.model_dump() for row in rows]
    assert ps.stream(Sale).run(rows).to_pylist() == expected
    assert ps.stream(Sale).run(iter(rows)).to_pylist() == expected
    with ps.Engine(workers=1) as engine, ps.PushSource() as source:
        query = engine.submit(ps.stream(Sale), source=source, sink="collect")
        for row in rows:
            assert source.push([row])
        source.close()
        assert query.result().to_pylist() == expected


def test_an_object_leads_to_its_model() -> None:
    with pytest.raises(TypeError, match="not Sale: use the class, Sale$"):
        ps.stream(Sale(at=AT))  # type: ignore[arg-type]


def test_a_model_within_a_model_is_refused() -> None:
    class Order(pydantic.BaseModel):
        """Rows in rows."""

        sale: Sale

    with pytest.raises(TypeError, match="columns are not nested"):
        ps.stream(Order)


CHILD = """
    import sys

    class Refusing:
        def find_spec(self, name, path=None, target=None):
            assert not name.startswith("pydantic"), name

    sys.meta_path.insert(0, Refusing())
    import penstock as ps

    class Field:
        annotation, metadata = int, ()

    class Model:
        model_fields = {"price": Field()}

        def __init__(self, price):
            self.price = price

        def model_dump(self):
            return {"price": self.price}

    assert ps.stream(Model).schema.types == ["int64"]
    assert ps.stream(Model).run([Model(1)]).to_pylist() == [{"price": 1}]
    try:
        ps.stream(Model(1))
    except TypeError as error:
        assert "use the class" in str(error)
    assert not [name for name in sys.modules if name.startswith("pydantic")]
    print("done")
"""


def test_pydantic_is_not_imported() -> None:
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (child.stdout, child.stderr) == ("done\n", "")
