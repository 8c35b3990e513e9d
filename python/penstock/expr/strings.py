"""Functions of text: the methods under `.str` of an expression. Null stays null."""

from typing import TYPE_CHECKING, final

from penstock.expr._frozen import Frozen

if TYPE_CHECKING:
    from penstock.expr.expression import Expr

__all__ = ["StringFunctions"]


@final
class StringFunctions(Frozen):
    """Functions of a string expression, as `expr.str`.

    Example:
        >>> import penstock as ps
        >>> ps.col("name").str.upper().str.starts_with("A")
        col("name").str.upper().str.starts_with("A")
    """

    __slots__ = ("_expr",)

    _expr: "Expr"

    def __init__(self, expr: "Expr") -> None:
        self._fill(_expr=expr)

    def length(self) -> "Expr":
        """Counts characters: Unicode code points, as `len` does.

        Returns:
            An int64 expression.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"s": ["", "né"]})
            >>> made = ps.stream(table.schema).select(n=ps.col("s").str.length())
            >>> pa.table(made.run(table))["n"].to_pylist()
            [0, 2]
        """
        return self._expr._call("str.length")

    def byte_length(self) -> "Expr":
        """Counts the bytes of the text in UTF-8. Faster than `length`.

        Returns:
            An int64 expression.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"s": ["", "né"]})
            >>> lengths = ps.stream(table.schema).select(n=ps.col("s").str.byte_length())
            >>> pa.table(lengths.run(table))["n"].to_pylist()
            [0, 3]
        """
        return self._expr._call("str.byte_length")

    def lower(self) -> "Expr":
        """Converts to lower case by Unicode's full case mapping, like `str.lower`.

        Returns:
            An expression of the same type. It does not depend on a language or a locale.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"s": ["ÀB"]})
            >>> made = ps.stream(table.schema).select(s=ps.col("s").str.lower())
            >>> pa.table(made.run(table))["s"].to_pylist()
            ['àb']
        """
        return self._expr._call("str.lower")

    def upper(self) -> "Expr":
        """Converts to upper case by Unicode's full case mapping, like `str.upper`: "ß" becomes "SS".

        Returns:
            An expression of the same type. It does not depend on a language or a locale.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"s": ["weiß"]})
            >>> made = ps.stream(table.schema).select(s=ps.col("s").str.upper())
            >>> pa.table(made.run(table))["s"].to_pylist()
            ['WEISS']
        """
        return self._expr._call("str.upper")

    def contains(self, pattern: "Expr | str") -> "Expr":
        """Tests whether the text contains another. There are no wildcards, and case matters.

        Args:
            pattern: The text to look for, the same for all rows, or a string expression. Every text holds "".

        Returns:
            A boolean expression; null where either is null.

        Raises:
            TypeError: The pattern is neither.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"s": ["watermark", "mark", "Mark"]})
            >>> found = ps.stream(table.schema).select(r=ps.col("s").str.contains("mark"))
            >>> pa.table(found.run(table))["r"].to_pylist()
            [True, True, False]
        """
        return self._expr._match("str.contains", pattern)

    def starts_with(self, pattern: "Expr | str") -> "Expr":
        """Tests whether the text begins with another.

        Args:
            pattern: The text to begin with, the same for all rows, or a string expression.

        Returns:
            A boolean expression; null where either is null.

        Raises:
            TypeError: The pattern is neither.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"s": ["watermark", "mark"]})
            >>> found = ps.stream(table.schema).select(r=ps.col("s").str.starts_with("water"))
            >>> pa.table(found.run(table))["r"].to_pylist()
            [True, False]
        """
        return self._expr._match("str.starts_with", pattern)

    def ends_with(self, pattern: "Expr | str") -> "Expr":
        """Tests whether the text ends with another.

        Args:
            pattern: The text to end with, the same for all rows, or a string expression.

        Returns:
            A boolean expression; null where either is null.

        Raises:
            TypeError: The pattern is neither.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"s": ["watermark", "marked"]})
            >>> found = ps.stream(table.schema).select(r=ps.col("s").str.ends_with("mark"))
            >>> pa.table(found.run(table))["r"].to_pylist()
            [True, False]
        """
        return self._expr._match("str.ends_with", pattern)
