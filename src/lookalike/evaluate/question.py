"""What is asked: two sides, which answers are right, and the protocol that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from lookalike.arrays import label_key
from lookalike.errors import InputError
from lookalike.evaluate.protocol import Protocol, SelfRule, items_digest
from lookalike.evaluate.relevance import (
    CameraRule,
    LabelSets,
    ListedPairs,
    Relevance,
    Revisited,
    SameLabel,
    Truth,
    build_truth,
)
from lookalike.evaluate.sides import Side
from lookalike.index.neighbours import Metric, check_metric


@dataclass(frozen=True, kw_only=True)
class Question:
    """Queries and gallery in id order, the truth about them, and the protocol. Rows of one side are the same object."""

    queries: Side
    gallery: Side
    truth: Truth
    protocol: Protocol
    groups: Sequence[Any] | None = None
    """(q,) the group each query is resampled with, where one is declared."""
    classes: Classes | None = None
    """The labels of each query, where relevance goes by labels."""

    @property
    def measured(self) -> bool:
        """Whether the answer is a measurement: not where every query may find itself."""
        return self.protocol.self_rule != KEPT


@dataclass(frozen=True)
class Classes:
    """What the results are broken down by: a column, and (q,) the labels of each query in it; none, one or several."""

    column: str
    labels: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Declared:
    """A relevance, in words for the protocol, and the columns it reads, which enter the digest."""

    words: str
    relevance: Relevance
    columns: tuple[str, ...] = ()
    classes: Classes | None = None


Declare: TypeAlias = Callable[[Side, Side], Declared]
"""Queries and gallery in, what is relevant out; it is called once both are in id order."""

Setup: TypeAlias = Literal["easy", "medium", "hard"]

KEPT: SelfRule = "kept: not a measurement"


def ask(
    queries: Side,
    gallery: Side,
    *,
    relevance: str | Declare = "label",
    camera: str | None = None,
    cluster: str | None = None,
    metric: Metric = "cosine",
    ks: Sequence[int] = (1, 5, 10),
    split: str = "queries against gallery",
    seed: int = 0,
    self_match: bool = False,
) -> Question:
    """Declare what is relevant, what is removed, and how it is called; see `evaluate.run.measure`.

    Raises:
        InputError: a column that is not there, a cut-off below 1, fewer than two labels, no query or no gallery.
    """
    check_metric(metric)
    cuts = _cut_offs(ks)
    same = queries is gallery
    queries = queries.by_id()
    gallery = queries if same else gallery.by_id()
    declared = same_value(queries, gallery, relevance) if isinstance(relevance, str) else relevance(queries, gallery)
    rule = declared.words
    if camera:
        rule += f", without the query's own camera (column {camera!r})"
    protocol = Protocol(
        relevance=rule, metric=metric, self_rule=_self_rule(queries, gallery, self_match), ks=cuts, split=split,
        seed=seed, items=_items(queries, gallery, [*declared.columns, *([camera] if camera else [])]),
    )  # fmt: skip
    return Question(
        queries=queries,
        gallery=gallery,
        truth=_truth(queries, gallery, declared.relevance, camera, self_match),
        protocol=protocol,
        groups=None if cluster is None else queries.column(cluster),
        classes=declared.classes,
    )


def _cut_offs(ks: Sequence[int]) -> tuple[int, ...]:
    cuts = tuple(sorted({int(k) for k in ks}))
    if not cuts or cuts[0] < 1:
        raise InputError(f"ks={tuple(ks)}: at least one cut-off, each of at least 1, is needed.")
    return cuts


def same_value(queries: Side, gallery: Side, column: str) -> Declared:
    """Declare as relevant what has the query's value in a column.

    Raises:
        InputError: a column that is not there, without any value, or with the same one everywhere.
    """
    asked, held = queries.column(column), gallery.column(column)
    found = {label_key(label) for label in (*asked, *held)}
    labels = found - {None}
    if not labels or (found == labels and len(labels) < 2):  # an item without a label is a wrong answer
        only = f"one value, {labels.pop()!r}" if labels else "no value"
        raise InputError(
            f"Column {column!r} holds {only}: every answer would be right.", hint="Two labels at least are needed."
        )
    classes = Classes(column, [() if (key := label_key(label)) is None else (key,) for label in asked])
    return Declared(f"same value in column {column!r}", SameLabel(asked, held, name=column), (column,), classes)


def shared_labels(
    queries: Side, gallery: Side, column: str, *, separator: str, match: Literal["any", "all"]
) -> Declared:
    """Declare several labels a picture, written in one column: relevant where one is shared, or all the query's are.

    Raises:
        InputError: a column that is not there.
    """
    sets = [
        [
            [label.strip() for label in str(value or "").split(separator) if label.strip()]
            for value in side.column(column)
        ]
        for side in (queries, gallery)
    ]
    words = f"{match} label shared in column {column!r} (separated by {separator!r})"
    classes = Classes(column, [tuple(dict.fromkeys(labels)) for labels in sets[0]])
    return Declared(words, LabelSets(sets[0], sets[1], match), (column,), classes)


def listed_pairs(queries: Side, gallery: Side, pairs: Iterable[tuple[str, str]]) -> Declared:
    """Declare relevant pairs by the names of query and gallery item.

    Raises:
        InputError: a name that is on neither side.
    """
    listed = list(pairs)
    digest = items_digest(sorted(f"{query}\0{item}" for query, item in listed))
    relevance = ListedPairs.from_names(listed, queries.names, gallery.names)
    return Declared(f"listed pairs (digest {digest})", relevance)


def revisited(queries: Side, gallery: Side, positions: Mapping[str, list[list[int]]], setup: Setup) -> Declared:
    """Declare the revisited Oxford and Paris lists; `positions` holds easy, hard and junk (Radenović et al., 2018)."""
    lists = Revisited(positions["easy"], positions["hard"], positions["junk"], setup)
    return Declared(f"revisited, setup {setup}", lists)


def _truth(queries: Side, gallery: Side, relevance: Relevance, camera: str | None, self_match: bool) -> Truth:
    if not len(queries) or not len(gallery):
        raise InputError(f"There are {len(queries)} queries and {len(gallery)} gallery items; both are needed.")
    return build_truth(
        relevance,
        num_queries=len(queries),
        num_gallery=len(gallery),
        query_ids=None if self_match else queries.ids,
        gallery_ids=None if self_match else gallery.ids,
        camera=CameraRule(queries.column(camera), gallery.column(camera)) if camera else None,
    )


def _self_rule(queries: Side, gallery: Side, self_match: bool) -> SelfRule:
    if not np.isin(queries.ids, gallery.ids).any():
        return "queries are not in the gallery"
    return KEPT if self_match else "removed by id"


def _items(queries: Side, gallery: Side, columns: Sequence[str]) -> str:
    """Digest names and labels of both sides, in order of name, so that the order of the input changes nothing."""
    parts: list[list[Any]] = []
    for side in (queries, gallery):
        order = sorted(range(len(side)), key=side.names.__getitem__)
        parts.append([side.names[row] for row in order])
        parts.extend([side.column(name)[row] for row in order] for name in columns)
    return items_digest(*parts)
