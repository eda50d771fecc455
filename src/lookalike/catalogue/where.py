"""The filter language: `category = 'shoe' and (price < 50 or price is null)`, parsed here and bound, never pasted.

    filter     = all ("or" all)*
    all        = term ("and" term)*
    term       = "not" term | "(" filter ")" | comparison
    comparison = column ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
               | column ["not"] "in" "(" value ("," value)* ")"
               | column ["not"] ("like" | "contains") text
               | column "is" ["not"] "null"
    column     = a name, or any text in "double quotes" or `backticks`
    value      = 'text' ('' is one quote) | "text" | number | true | false

A missing value satisfies nothing but `is null`, as in SQL. `like` (% any text, _ any character) and `contains`
disregard the case of ASCII letters; `=` does not.
"""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lookalike.arrays import Mask
from lookalike.catalogue.conditions import (
    Chain,
    Compare,
    Condition,
    Field,
    Like,
    Missing,
    Not,
    OneOf,
    Operator,
    Type,
    Value,
    as_sql,
)
from lookalike.catalogue.tokens import Token, tokens
from lookalike.errors import InputError

__all__ = ["Field", "Filter", "FilterError", "Type", "Value", "mask", "parse", "tree"]

MAX_VALUES = 900
"""SQLite builds of the last ten years bind at least 999 values a statement."""
MAX_DEPTH = 100
MAX_COMPARISONS = 800
"""Together with MAX_DEPTH below SQLite's limit of 1,000 levels in one expression."""
_SHOWN = 200
"""Characters of a filter that an error repeats."""
_COMPARISONS: Mapping[str, Operator] = {
    "=": "=", "==": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_KEYWORDS = frozenset(["and", "or", "not", "in", "like", "contains", "is", "null", "true", "false"])


class FilterError(InputError):
    """A filter that cannot be understood; the message shows the place."""

    def __init__(self, text: str, position: int, message: str, *, hint: str = "") -> None:
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        super().__init__(f"Filter {shown!r}: {message} at character {position + 1}.", hint=hint)
        self.position = position


@dataclass(frozen=True)
class Filter:
    """A parsed filter: an SQL condition with one `?` for each of `values`."""

    sql: str
    values: tuple[Value, ...]


def parse(text: str, fields: Mapping[str, Field]) -> Filter:
    """Parse a filter over these columns.

    Raises:
        FilterError: a column, a word or a value that does not belong there, with its place and the closest names.

    >>> parse("label in ('mug', 'cup') and not year < 2020", {"label": Field("c1", "text"), "year": Field("c2", "integer")})
    Filter(sql='(c1 IN (?, ?) AND NOT (c2 < ?))', values=('mug', 'cup', 2020))
    """  # noqa: E501 - a doctest line
    return Filter(*as_sql(tree(text, fields)))


def tree(text: str, fields: Mapping[str, Field]) -> Condition:
    """Parse a filter over these columns into its tree, for engines that are not SQLite.

    Raises:
        FilterError: as `parse`.
    """
    return _Parser(text, fields).whole()


def mask(text: str, columns: Mapping[str, Sequence[Any]], types: Mapping[str, Type]) -> Mask:
    """Apply a filter to columns in memory: (n,) True where the row passes.

    The same words give the same rows as in a catalogue, because the same engine compares them.

    >>> mask("year >= 2020", {"year": [2019, 2020, None]}, {"year": "integer"}).tolist()
    [False, True, False]
    """
    fields = {name: Field(f"c{i}", types[name]) for i, name in enumerate(columns)}
    condition = parse(text, fields)
    n = len(next(iter(columns.values()), ()))
    connection = sqlite3.connect(":memory:")
    try:
        names = ["row", *(f"c{i}" for i in range(len(columns)))]
        connection.execute(f"CREATE TABLE t ({', '.join(names)})")
        rows = zip(range(n), *columns.values(), strict=True)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", rows)
        found = connection.execute(f"SELECT row FROM t WHERE {condition.sql}", condition.values)
        passed = np.zeros(n, dtype=np.bool_)
        passed[[row for (row,) in found]] = True
    finally:
        connection.close()
    return passed


class _Parser:
    def __init__(self, text: str, fields: Mapping[str, Field]) -> None:
        self._text = text
        self._fields = fields
        self._tokens = tokens(text, self._fail)
        self._at = 0
        self._depth = 0
        self._comparisons = 0
        self._values = 0

    def whole(self) -> Condition:
        if self._next.kind == "end":
            raise self._fail(0, "there is nothing to compare", "Write for example: label = 'shoe'")
        condition = self._any()
        self._end()
        return condition

    def _end(self) -> None:
        if self._next.kind != "end":
            raise self._unexpected("'and', 'or' or the end")

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        self._at += 1
        return token

    def _word(self, *words: str) -> bool:
        """Take the next token if it is one of these unquoted words."""
        if self._next.kind == "word" and self._next.text.lower() in words:
            self._at += 1
            return True
        return False

    def _symbol(self, symbol: str) -> bool:
        if self._next.kind == "symbol" and self._next.text == symbol:
            self._at += 1
            return True
        return False

    def _any(self) -> Condition:
        return self._chain("or", lambda: self._chain("and", self._term))

    def _chain(self, word: Literal["and", "or"], part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self._word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Chain(word, tuple(parts))

    def _term(self) -> Condition:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._fail(self._next.start, f"more than {MAX_DEPTH} parentheses or 'not' inside each other")
        try:
            if self._word("not"):
                return Not(self._term())
            if self._symbol("("):
                inside = self._any()
                if not self._symbol(")"):
                    raise self._unexpected("'and', 'or' or ')'")
                return inside
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Condition:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise self._fail(self._next.start, f"more than {MAX_COMPARISONS} comparisons")
        field = self._column()
        return self._null_or_list(field) if self._next.kind == "word" else self._ordered(field)

    def _ordered(self, field: Field) -> Condition:
        if self._next.kind == "symbol" and self._next.text in _COMPARISONS:
            operator = _COMPARISONS[self._take().text]
            return Compare(field, operator, self._value(field))
        raise self._unexpected("a comparison (=, !=, <, in, like, is null)")

    def _null_or_list(self, field: Field) -> Condition:
        if self._word("is"):
            negated = self._word("not")
            if not self._word("null"):
                raise self._unexpected("'null'")
            return Missing(field, negated)
        negated = self._word("not")
        if self._word("in"):
            return OneOf(field, self._list(field), negated)
        if self._word("like"):
            return Like(field, str(self._value(Field(field.sql, "text"))), negated=negated)
        if self._word("contains"):
            literal = str(self._value(Field(field.sql, "text")))
            for special in "\\%_":
                literal = literal.replace(special, "\\" + special)
            return Like(field, f"%{literal}%", escaped=True, negated=negated)
        raise self._unexpected(
            "'in', 'like' or 'contains'" if negated else "a comparison (=, !=, <, in, like, is null)"
        )

    def _column(self) -> Field:
        token = self._next
        quoted = token.kind == "name" or (token.kind == "text" and token.quote == '"')
        if not quoted and (token.kind != "word" or token.text.lower() in _KEYWORDS):
            raise self._unexpected("a column")
        self._at += 1
        if token.text in self._fields:
            return self._fields[token.text]
        folded = [name for name in self._fields if name.lower() == token.text.lower()]
        if len(folded) == 1:
            return self._fields[folded[0]]
        close = difflib.get_close_matches(token.text, list(self._fields), n=2, cutoff=0.5)
        guess = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
        raise self._fail(
            token.start, f"there is no column {token.text!r}", f"{guess}Columns: {', '.join(self._fields)}."
        )

    def _list(self, field: Field) -> tuple[Value, ...]:
        if not self._symbol("("):
            raise self._unexpected("'(' and a list of values")
        values = [self._value(field)]
        while self._symbol(","):
            values.append(self._value(field))
        if not self._symbol(")"):
            raise self._unexpected("',' or ')'")
        return tuple(values)

    def _value(self, field: Field) -> Value:
        """Take a value, in the type of its column, so that 7 and '7' mean what the column means by them."""
        token = self._next
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._fail(token.start, f"more than {MAX_VALUES} values")
        if self._word("null"):
            raise self._fail(token.start, "nothing equals null", "Write: is null, or: is not null")
        boolean = token.kind == "word" and token.text.lower() in ("true", "false")
        if token.kind not in ("text", "number") and not boolean:
            hint = f"Text stands in quotes: '{token.text}'" if token.kind == "word" else ""
            raise self._unexpected("a value", hint)
        self._at += 1
        try:
            value: Value = _READ[field.type](token.text)
        except ValueError:
            kind = _NOUNS[field.type]
            raise self._fail(token.start, f"the column holds {kind}, and {token.text!r} is not of them") from None
        return value

    def _unexpected(self, expected: str, hint: str = "") -> FilterError:
        token = self._next
        found = "the filter ends" if token.kind == "end" else f"{token.text!r} stands"
        return self._fail(token.start, f"{found} where {expected} was expected", hint)

    def _fail(self, position: int, message: str, hint: str = "") -> FilterError:
        return FilterError(self._text, position, message, hint=hint)


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "1"):
        return True
    if text.lower() in ("false", "0"):
        return False
    raise ValueError(text)


def _integer(text: str) -> int | float:
    try:
        value = int(text)
    except ValueError:
        return _real(text)  # year < 2020.5 means what it says
    return value if -(2**63) <= value < 2**63 else float(value)


def _real(text: str) -> float:
    value = float(text)
    if value != value:
        raise ValueError(text)
    return value


_READ: Mapping[Type, Any] = {"text": str, "integer": _integer, "real": _real, "boolean": _boolean}
_NOUNS: Mapping[Type, str] = {
    "text": "text",
    "integer": "whole numbers",
    "real": "numbers",
    "boolean": "true or false",
}
