"""The tree of a filter, and what it is in the words of a database: parsed once, said in every dialect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Type: TypeAlias = Literal["text", "integer", "real", "boolean"]
Value: TypeAlias = str | int | float | bool | None
Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]

OPPOSITE: Mapping[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_INT64 = 2**63


@dataclass(frozen=True)
class Field:
    """A column that may be named in a filter: its SQL expression (trusted) and the type of its values."""

    sql: str
    type: Type


@dataclass(frozen=True)
class Compare:
    """`column < value`; a missing value satisfies nothing."""

    field: Field
    operator: Operator
    value: Value


@dataclass(frozen=True)
class OneOf:
    """`column in (value, …)`, or not; a missing value satisfies neither. Of no values at all: nothing passes."""

    field: Field
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True)
class Like:
    """`column like pattern` with the case of ASCII letters disregarded; `escaped`: a backslash takes % and _ as is."""

    field: Field
    pattern: str
    escaped: bool = False
    negated: bool = False


@dataclass(frozen=True)
class Missing:
    """`column is null`, or not."""

    field: Field
    negated: bool = False


@dataclass(frozen=True)
class Not:
    """What its part says, turned round; unknown stays unknown."""

    part: Condition


@dataclass(frozen=True)
class Chain:
    """Several conditions joined by `and`, or by `or`."""

    word: Literal["and", "or"]
    parts: tuple[Condition, ...]


Condition: TypeAlias = Compare | OneOf | Like | Missing | Not | Chain


def as_sql(condition: Condition) -> tuple[str, tuple[Value, ...]]:
    """Say a condition to SQLite: text with one `?` for each of the values.

    >>> as_sql(Not(Compare(Field("c2", "integer"), "<", 2020)))
    ('NOT (c2 < ?)', (2020,))
    """
    values: list[Value] = []
    return _sql(condition, values), tuple(values)


def _sql(condition: Condition, values: list[Value]) -> str:
    if isinstance(condition, Chain):
        return f"({f' {condition.word.upper()} '.join([_sql(part, values) for part in condition.parts])})"
    if isinstance(condition, Not):
        return f"NOT ({_sql(condition.part, values)})"
    name, negation = condition.field.sql, "NOT " if getattr(condition, "negated", False) else ""
    if isinstance(condition, Missing):
        return f"{name} IS {negation}NULL"
    if isinstance(condition, Compare):
        values.append(condition.value)
        return f"{name} {condition.operator} ?"
    if isinstance(condition, OneOf):
        values.extend(condition.values)
        return f"{name} {negation}IN ({', '.join('?' * len(condition.values))})"
    values.append(condition.pattern)
    return f"{name} {negation}LIKE ?" + (" ESCAPE '\\'" if condition.escaped else "")


def settled(condition: Condition) -> Condition:
    """Return the same condition without `Not`, with values of exactly the column's type.

    For engines whose `not` does not know the unknown, or whose numbers lose digits: what passes is the same, because
    by De Morgan a negation goes down to the comparisons, where SQL's three values make it the opposite comparison.
    Booleans are compared as 0 and 1, whole numbers with whole numbers: `year < 2020.5` is `year <= 2020`.

    >>> year = Field("c2", "integer")
    >>> settled(Not(Chain("and", (Compare(year, "<", 2020.5), Missing(year)))))
    Chain(word='or', parts=(Compare(field=Field(sql='c2', type='integer'), operator='>=', value=2021), \
Missing(field=Field(sql='c2', type='integer'), negated=True)))
    """
    return _settled(condition, turned=False)


def _settled(condition: Condition, *, turned: bool) -> Condition:
    if isinstance(condition, Not):
        return _settled(condition.part, turned=not turned)
    if isinstance(condition, Chain):
        word: Literal["and", "or"] = condition.word if not turned else "or" if condition.word == "and" else "and"
        return Chain(word, tuple(_settled(part, turned=turned) for part in condition.parts))
    return _LEAVES[type(condition)](condition, turned)


def _compare(leaf: Compare, turned: bool) -> Condition:
    operator = OPPOSITE[leaf.operator] if turned else leaf.operator
    value, field = leaf.value, leaf.field
    if isinstance(value, bool):
        value = int(value)
    if field.type != "integer" or not isinstance(value, float):
        return Compare(field, operator, value)
    never, always = OneOf(field, ()), Missing(field, negated=True)
    if not -_INT64 <= value < _INT64:  # also the infinities: every whole number lies on one side
        above = value > 0
        return always if operator == "<>" or operator in (("<", "<=") if above else (">", ">=")) else never
    if value.is_integer():
        return Compare(field, operator, int(value))
    if operator in ("=", "<>"):
        return always if operator == "<>" else never
    return (
        Compare(field, "<=", math.floor(value)) if operator in ("<", "<=") else Compare(field, ">=", math.ceil(value))
    )


def _one_of(leaf: OneOf, turned: bool) -> Condition:
    negated = leaf.negated != turned
    values = tuple(int(value) if isinstance(value, bool) else value for value in leaf.values)
    if leaf.field.type == "integer":
        whole = (value for value in values if not isinstance(value, float) or value.is_integer())
        values = tuple(int(value) for value in whole if value is not None and -_INT64 <= float(value) < _INT64)
    if not values and negated:
        return Missing(leaf.field, negated=True)
    return OneOf(leaf.field, values, negated)


def _like(leaf: Like, turned: bool) -> Condition:
    return Like(leaf.field, leaf.pattern, leaf.escaped, leaf.negated != turned)


def _missing(leaf: Missing, turned: bool) -> Condition:
    return Missing(leaf.field, leaf.negated != turned)


_LEAVES: Mapping[type, Callable[..., Condition]] = {
    Compare: _compare, OneOf: _one_of, Like: _like, Missing: _missing,
}  # fmt: skip


def folded(text: str) -> str:
    """Return the text with ASCII letters in lower case, as SQLite's `like` sees it.

    >>> folded("MUG Ü")
    'mug Ü'
    """
    return text.translate(_LOWER)


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
