"""Conditions in PostgreSQL's words, where text compares by its bytes and `like` folds ASCII only, as in SQLite."""

from __future__ import annotations

from typing import Any

from lookalike.catalogue.conditions import Chain, Compare, Condition, Like, Missing, Not, OneOf, folded


def as_postgresql(condition: Condition) -> tuple[str, tuple[Any, ...]]:
    r"""Say a settled condition: text with one `%s` for each of the values.

    >>> from lookalike.catalogue.conditions import Field
    >>> as_postgresql(OneOf(Field("c1", "text"), ("mug", "cup"), negated=True))
    ('"c1" <> ALL(%s)', (['mug', 'cup'],))
    >>> as_postgresql(Like(Field("path", "text"), "Mug%"))
    ('lower("path" COLLATE "C") LIKE %s ESCAPE \'\'', ('mug%',))
    """
    values: list[Any] = []
    return _said(condition, values), tuple(values)


def _said(condition: Condition, values: list[Any]) -> str:
    if isinstance(condition, Chain):
        return f"({f' {condition.word.upper()} '.join([_said(part, values) for part in condition.parts])})"
    if isinstance(condition, Not):
        return f"NOT ({_said(condition.part, values)})"
    name = f'"{condition.field.sql}"'
    if isinstance(condition, Missing):
        return f"{name} IS {'NOT ' if condition.negated else ''}NULL"
    if isinstance(condition, Compare):
        values.append(condition.value)
        return f"{name} {condition.operator} %s"
    if isinstance(condition, OneOf):
        if not condition.values:
            return "FALSE"
        values.append(list(condition.values))
        return f"{name} <> ALL(%s)" if condition.negated else f"{name} = ANY(%s)"
    return _like(condition, name, values)


def _like(condition: Like, name: str, values: list[Any]) -> str:
    values.append(folded(condition.pattern))
    negation, escape = "NOT " if condition.negated else "", "\\" if condition.escaped else ""
    return f"lower({name} COLLATE \"C\") {negation}LIKE %s ESCAPE '{escape}'"
