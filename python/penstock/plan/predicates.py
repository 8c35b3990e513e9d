"""Suggests expressions for predicates that were written as text, as other libraries take them."""

import ast
import re
from collections.abc import Sequence

__all__ = ["predicate_hint"]

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
# What SQL and other languages write otherwise than Python. Text in quotes is left as it is.
_TOKENS = re.compile(r"""'[^']*'|"[^"]*"|<>|&&|\|\||[<>=!]=|=|[^\W\d]\w*""")
_WORDS = {
    "<>": "!=",
    "=": "==",
    "&&": " and ",
    "||": " or ",
    "and": "and",
    "or": "or",
    "not": "not",
    "is": "is",
    "in": "in",
    "null": "None",
    "none": "None",
    "true": "True",
    "false": "False",
}


class _OtherError(Exception):
    """The text is something else than a predicate over columns."""


def predicate_hint(text: str, columns: Sequence[str]) -> str:
    """Says how a predicate that was written as text is written as an expression.

    Args:
        text: What was written, such as "price > 3".
        columns: The columns of the stream.

    Returns:
        What to write instead.

    Example:
        >>> from penstock.plan.predicates import predicate_hint
        >>> predicate_hint("price > 3 and shop is null", ["price", "shop"])
        'write (col("price") > 3) & col("shop").is_null()'
    """
    if text in columns:
        return f'a column is written col("{text}")'
    try:
        parsed = ast.parse(_in_python(text, columns), mode="eval").body
        if isinstance(parsed, ast.Compare | ast.BoolOp | ast.UnaryOp):
            return f"write {_condition(parsed, columns)}"
    except (_OtherError, SyntaxError, ValueError, RecursionError, MemoryError):
        pass  # it is not Python, or far too long
    return 'a predicate is written with col("..."), as in col("price") > 3'


def _in_python(text: str, columns: Sequence[str]) -> str:
    """Rewrites operators and words of SQL as those of Python."""

    def word(found: re.Match[str]) -> str:
        token = found[0]
        return token if token in columns else _WORDS.get(token.lower(), token)

    return _TOKENS.sub(word, text.strip())


def _condition(node: ast.expr, columns: Sequence[str]) -> str:
    """Writes a condition that stands on its own."""
    match node:
        case ast.BoolOp(op=op, values=values):
            sign = " & " if isinstance(op, ast.And) else " | "
            return sign.join(_enclosed(value, columns) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"~{_enclosed(operand, columns)}"
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [left, *others]
            parts = [_compared(*pair, columns) for pair in zip(sides, ops, sides[1:], strict=False)]
            return parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)
        case ast.Name():
            return _value(node, columns)
    raise _OtherError


def _enclosed(node: ast.expr, columns: Sequence[str]) -> str:
    """Writes a condition as an operand, in parentheses if it needs them."""
    text = _condition(node, columns)
    stands_alone = isinstance(node, ast.Name) or (text.endswith("()") and " " not in text)
    return text if stands_alone else f"({text})"


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, columns: Sequence[str]) -> str:
    if _is_none(left):
        left, right = right, left
    if _is_none(right) and not _is_none(left):
        if isinstance(op, ast.Eq | ast.Is):
            return f"{_part(left, columns)}.is_null()"
        if isinstance(op, ast.NotEq | ast.IsNot):
            return f"{_part(left, columns)}.is_not_null()"
    if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.List | ast.Tuple | ast.Set):
        values = ", ".join(_constant(value) for value in right.elts)
        return f"{'~' if isinstance(op, ast.NotIn) else ''}{_part(left, columns)}.is_in([{values}])"
    sign = _COMPARISONS.get(type(op))
    if sign is None or not any(isinstance(one, ast.Name) for side in (left, right) for one in ast.walk(side)):
        raise _OtherError
    return f"{_value(left, columns)} {sign} {_value(right, columns)}"


def _part(node: ast.expr, columns: Sequence[str]) -> str:
    """Writes a value on which a method is called."""
    return _value(node, columns) if isinstance(node, ast.Name) else f"({_value(node, columns)})"


def _value(node: ast.expr, columns: Sequence[str]) -> str:
    match node:
        case ast.Name(id=name) if name in columns:
            return f'col("{name}")'
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            sides = [_value(side, columns) for side in (left, right)]
            nested = [isinstance(side, ast.BinOp) for side in (left, right)]
            first, second = (f"({one})" if deep else one for one, deep in zip(sides, nested, strict=True))
            return f"{first} {_ARITHMETIC[type(op)]} {second}"
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            return f"-{_part(operand, columns)}"
    return _constant(node)


def _constant(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return repr(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return repr(-value)
    raise _OtherError


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
