"""Conditions in Milvus's words: a comparison says itself that the value is there, and `like` asks a folded copy."""

from __future__ import annotations

import math

from lookalike.catalogue.conditions import Chain, Compare, Condition, Like, Missing, Not, OneOf, Value, folded
from lookalike.errors import InputError

FOLD = "_fold"
"""Ending of the field that holds a text with its ASCII letters in lower case: Milvus has no `like` without case."""
_NEVER = "(id < 0 and id > 0)"
_OPERATORS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def as_milvus(condition: Condition) -> str:
    """Say a settled condition.

    The surprise: versions of Milvus differ in what `not in` and `!=` say of a missing value, so each asks for it.

    >>> from lookalike.catalogue.conditions import Field
    >>> as_milvus(OneOf(Field("c1", "text"), ("mug",), negated=True))
    '(c1 is not null and c1 not in ["mug"])'
    >>> as_milvus(Like(Field("path", "text"), "Mug%"))
    '(path_fold like "mug%")'

    Raises:
        InputError: a value Milvus has no word for.
    """
    if isinstance(condition, Chain):
        return f"({f' {condition.word} '.join([as_milvus(part) for part in condition.parts])})"
    if isinstance(condition, Not):
        raise InputError("A condition is settled before it is said to Milvus.")  # a mistake of ours
    name = condition.field.sql
    there = "" if name in ("id", "path") else f"{name} is not null and "  # these two are never missing
    if isinstance(condition, Missing):
        if not there:
            return "(id >= 0)" if condition.negated else _NEVER
        return f"({name} is {'not ' if condition.negated else ''}null)"
    if isinstance(condition, Compare):
        return f"({there}{name} {_OPERATORS[condition.operator]} {_literal(condition.value)})"
    if isinstance(condition, OneOf):
        listed = ", ".join(map(_literal, condition.values))
        return f"({there}{name} {'not ' if condition.negated else ''}in [{listed}])" if condition.values else _NEVER
    return _like(condition, name, there)


def _like(condition: Like, name: str, there: str) -> str:
    pattern = folded(condition.pattern)
    if not condition.escaped:  # a backslash is a sign like any other
        pattern = pattern.replace("\\", "\\\\")
    found = f"{name}{FOLD} like {_literal(pattern)}"
    return f"({there}not ({found}))" if condition.negated else f"({there}{found})"


def _literal(value: Value) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped.translate(_CONTROLS)}"'
    if isinstance(value, float) and not math.isfinite(value):
        return "1.7976931348623157e308" if value > 0 else "-1.7976931348623157e308"
    return repr(value)


_CONTROLS = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
