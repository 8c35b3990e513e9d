"""Steps that change rows one by one: filters, columns, lookups, functions."""

import operator
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Literal, NoReturn, Self

from penstock import _penstock
from penstock.exceptions import PlanError
from penstock.expr._frozen import Frozen
from penstock.expr.expression import Expr, col
from penstock.expr.literals import Value
from penstock.io.protocols import ArrowData
from penstock.io.schemas import SchemaLike, read_schema
from penstock.io.sources import open_one
from penstock.plan._arguments import read_column, read_expr, read_names, read_predicate
from penstock.plan.functions import BatchFunction, MappedFunction
from penstock.plan.hints import missing_of_stream
from penstock.plan.predicates import predicate_hint

__all__ = ["ColumnSteps"]


class ColumnSteps(Frozen):
    """The part of a `Stream` that changes rows one by one.

    Example:
        >>> import penstock as ps
        >>> prices = ps.stream({"shop": "string", "price": "int64"})
        >>> prices.filter(ps.col("price") > 1).drop("shop").rename(price="cents").schema.names
        ['cents']
    """

    __slots__ = ()

    _plan: _penstock.Plan

    if not TYPE_CHECKING:  # a type checker is to know what is not there

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise missing_of_stream(self, name)

    def _then(self, plan: _penstock.Plan) -> Self:
        return type(self)(plan)  # type: ignore[call-arg]  # a Stream is made of its plan

    def filter(self, *predicates: Expr) -> Self:
        """Keeps the rows for which all predicates are true; null is not true.

        Args:
            *predicates: Boolean expressions. All of them are computed for every row; to compute one only
                where another is true, call `filter` twice.

        Returns:
            The longer pipeline.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: A predicate is not boolean, or its types do not go together.
            TypeError: A predicate is text, or a plain bool, as `col("price") is None` is for Python.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> dear = ps.stream({"price": "int64"}).filter(ps.col("price") > 1, ps.col("price") % 2 == 0)
            >>> dear.run(pa.table({"price": [1, 2, 3, None]})).to_pylist()
            [{'price': 2}]
        """
        for predicate in predicates:
            if isinstance(predicate, str):
                hint = predicate_hint(predicate, self._plan.schema.names)
                raise TypeError(f"filter() takes expressions, and {predicate!r} is text: {hint}")
        if not predicates:
            return self
        whole = reduce(operator.and_, (read_predicate("filter", predicate) for predicate in predicates))
        return self._then(self._plan.filter(whole._native))

    def select(self, /, *exprs: Expr | str, **named: Expr | Value) -> Self:
        """Makes rows of these columns only.

        Args:
            *exprs: Column names and expressions.
            **named: Expressions with the names they are to have. A string here is the name of a column, too.

        Returns:
            The longer pipeline. It has a time column as long as the old one is among the columns under its
            own name.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: The types of an expression do not go together.
            PlanError: Two columns would have the same name.

        Example:
            >>> import penstock as ps
            >>> prices = ps.stream({"shop": "string", "price": "int64"})
            >>> prices.select("shop", cents=ps.col("price") * 100).schema.names
            ['shop', 'cents']
        """
        if "*" in [item for item in exprs if isinstance(item, str)] and "*" not in self._plan.schema.names:
            raise PlanError(
                'select() has no "*": all columns are select(*stream.schema.names), and with_columns(...) '
                "keeps them and adds others"
            )
        chosen = [read_column("select", item) for item in exprs]
        chosen += [read_column("select", item).alias(name) for name, item in named.items()]
        return self._then(self._plan.select([item._native for item in chosen]))

    def with_columns(self, /, *exprs: Expr, **named: Expr | Value) -> Self:
        """Adds columns to the rows, or replaces those that have the same name.

        Args:
            *exprs: Expressions; `alias` gives them a name.
            **named: Expressions with the names they are to have.

        Returns:
            The longer pipeline.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: The types of an expression do not go together.
            PlanError: The time column would be replaced, or two new columns would have the same name.

        Example:
            >>> import penstock as ps
            >>> prices = ps.stream({"shop": "string", "price": "int64"})
            >>> prices.with_columns(cents=ps.col("price") * 100).schema.names
            ['shop', 'price', 'cents']
        """
        for item in (*exprs, *named.values()):
            # `select` reads a string as a column, an operator as a literal: here a reader could not tell.
            if isinstance(item, str):
                raise TypeError(f"with_columns() takes no bare strings: write col({item!r}) or lit({item!r})")
        chosen = [read_expr("with_columns", item) for item in exprs]
        chosen += [read_expr("with_columns", item).alias(name) for name, item in named.items()]
        return self._then(self._plan.with_columns([item._native for item in chosen]))

    def lookup(
        self,
        table: ArrowData,
        *,
        on: str | Sequence[str],
        how: Literal["inner", "left"] = "inner",
        name: str | None = None,
    ) -> Self:
        """Adds the columns of the matching row of a table.

        Args:
            table: The table, as any kind of Arrow data. It is read now and becomes part of the pipeline. Each
                key may occur in it once.
            on: The key: a column, or several, that the stream and the table both have. Null matches nothing.
            how: What becomes of a row without a match: "inner" drops it, "left" fills in nulls.
            name: What it is called, for `Query.replace_lookup`. Only needed if there are several.

        Returns:
            The longer pipeline, with the columns of the table (other than the key) at the end.

        Raises:
            UnknownColumnError: The stream or the table has no such column.
            TypeMismatchError: The key has different types in the two.
            PlanError: A key occurs twice in the table, or a column of the table has a name that is taken.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> shops = pa.table({"shop": [1, 2], "city": ["Graz", "Linz"]})
            >>> sales = ps.stream({"shop": "int64"}).lookup(shops, on="shop")
            >>> sales.run(pa.table({"shop": [2, 3]})).to_pylist()
            [{'shop': 2, 'city': 'Linz'}]
        """
        return self._then(self._plan.lookup(open_one(table, "table"), read_names("on", on), how, name))

    def rename(self, names: Mapping[str, str] | None = None, /, **named: str) -> Self:
        """Gives columns other names.

        Args:
            names: The new name of each column that gets one, by the old name.
            **named: The same as keywords: `rename(price="cents")` makes "price" be called "cents".

        Returns:
            The longer pipeline, with the same columns in the same order. A renamed time column stays the time
            column.

        Raises:
            UnknownColumnError: The stream has no such column.
            PlanError: Two columns would have the same name.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"shop": "string", "price": "int64"}).rename(price="cents").schema.names
            ['shop', 'cents']
        """
        new_names = {**(names or {}), **named}
        for name in (*new_names, *new_names.values()):
            if not isinstance(name, str):
                raise TypeError(
                    f"rename() maps column names to column names, not {type(name).__name__} {name!r}"
                )
        self._check_columns(new_names)
        columns = [col(name).alias(new_names.get(name, name)) for name in self._plan.schema.names]
        return self._then(self._plan.select([column._native for column in columns]))

    def drop(self, *columns: str) -> Self:
        """Leaves columns out.

        Args:
            *columns: The names of the columns that go.

        Returns:
            The longer pipeline, with the other columns in the same order.

        Raises:
            UnknownColumnError: The stream has no such column.
            PlanError: No column would be left.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"shop": "string", "price": "int64"}).drop("shop").schema.names
            ['price']
        """
        for name in columns:
            if not isinstance(name, str):
                raise TypeError(f"drop() takes column names, not {type(name).__name__} {name!r}")
        self._check_columns(columns)
        kept = [col(name)._native for name in self._plan.schema.names if name not in columns]
        if not kept:
            raise PlanError("drop() would leave no column")
        return self._then(self._plan.select(kept))

    def cast(self, types: Mapping[str, str] | None = None, /, **named: str) -> Self:
        """Gives columns other types. A value that does not fit the new type is a `ComputeError`.

        Args:
            types: The new type of each column that gets one, by its name: see `Expr.cast`.
            **named: The same as keywords: `cast(price="float64")`.

        Returns:
            The longer pipeline, with the same columns in the same order.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: There is no way from the old type to the new one.
            PlanError: The type of the time column would change.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"price": "int32"}).cast(price="float64").schema.types
            ['float64']
        """
        new_types = {**(types or {}), **named}
        self._check_columns(new_types)
        columns = [col(name).cast(kind).alias(name) for name, kind in new_types.items()]
        return self._then(self._plan.with_columns([column._native for column in columns]))

    def map_batches(self, function: BatchFunction, *, schema: SchemaLike | None = None) -> Self:
        """Calls a function of yours with batches of rows, and continues with what it returns.

        It is called on a worker of the engine, one call at a time, while other workers continue with
        everything else. It may run pipelines itself, on another engine, as `Stream.run` does; waiting for its
        own engine raises an `EngineError`. How rows are cut into batches is up to the engine, so the function
        should treat each row alike. What it raises ends the query and comes out of it as itself, with the row
        that it failed for as a note: to find that row, the function is called again with parts of the batch.
        With `on_error="skip"`, or a function there, only such rows are left out.

        Args:
            function: Takes a `Batch`, which any Arrow library reads, and gives Arrow data back: a table, a
                batch, a data frame.
            schema: The columns of what it gives back, as for `stream`; others are left out. Without it they
                are those of this stream, and another column is an error.

        Returns:
            The longer pipeline. It has a time column as long as the old one comes back under its own name
            and type; a row that comes back with an earlier time may be late.

        Raises:
            TypeError: This is not a function, or not a schema.
            UnsupportedTypeError: A column has a type that the engine does not process.
            SchemaMismatchError: When it runs: the function leaves a column out, or adds one without
                `schema=`.

        Example:
            >>> import pyarrow as pa
            >>> import pyarrow.compute as pc
            >>> import penstock as ps
            >>> def shout(batch: ps.Batch) -> pa.Table:
            ...     table = pa.table(batch)
            ...     return table.set_column(0, "word", pc.utf8_upper(table["word"]))
            >>> words = ps.stream({"word": "string"}).map_batches(shout)
            >>> words.run(pa.table({"word": ["hush"]})).to_pylist()
            [{'word': 'HUSH'}]
        """
        if not callable(function):
            raise TypeError(f"map_batches() takes a function, not {type(function).__name__}")
        columns = self._plan.schema if schema is None else read_schema(schema)
        name = getattr(function, "__qualname__", None) or type(function).__name__
        mapped = MappedFunction(function, declares_all=schema is None)
        return self._then(self._plan.map_batches(name, mapped, columns))

    def _check_columns(self, names: Mapping[str, object] | Sequence[str]) -> None:
        """Lets the engine find the first name that is not there, with the closest match."""
        known = self._plan.schema.names
        unknown = [name for name in names if name not in known]
        if unknown:
            self._plan.select([col(unknown[0])._native])
