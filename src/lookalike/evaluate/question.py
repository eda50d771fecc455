"""What is asked: two sides, which answers are right, and the protocol that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import label_key
from lookalike.errors import InputError
from lookalike.evaluate.protocol import Protocol, SelfRule, items_digest
from lookalike.evaluate.relevance import CameraRule, SameLabel, Truth, build_truth
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

    @property
    def measured(self) -> bool:
        """Whether the answer is a measurement: not where every query may find itself."""
        return self.protocol.self_rule != KEPT


KEPT: SelfRule = "kept: not a measurement"


def ask(
    queries: Side,
    gallery: Side,
    *,
    relevance: str = "label",
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
    rule = f"same value in column {relevance!r}"
    if camera:
        rule += f", without the query's own camera (column {camera!r})"
    protocol = Protocol(
        relevance=rule, metric=metric, self_rule=_self_rule(queries, gallery, self_match), ks=cuts, split=split,
        seed=seed, items=_items(queries, gallery, [column for column in (relevance, camera) if column]),
    )  # fmt: skip
    return Question(
        queries=queries,
        gallery=gallery,
        truth=_truth(queries, gallery, relevance, camera, self_match),
        protocol=protocol,
        groups=None if cluster is None else queries.column(cluster),
    )


def _cut_offs(ks: Sequence[int]) -> tuple[int, ...]:
    cuts = tuple(sorted({int(k) for k in ks}))
    if not cuts or cuts[0] < 1:
        raise InputError(f"ks={tuple(ks)}: at least one cut-off, each of at least 1, is needed.")
    return cuts


def _truth(queries: Side, gallery: Side, relevance: str, camera: str | None, self_match: bool) -> Truth:
    if not len(queries) or not len(gallery):
        raise InputError(f"There are {len(queries)} queries and {len(gallery)} gallery items; both are needed.")
    asked, held = queries.column(relevance), gallery.column(relevance)
    labels = {label_key(label) for label in (*asked, *held)} - {None}
    if len(labels) < 2:
        only = f"one value, {labels.pop()!r}" if labels else "no value"
        raise InputError(
            f"Column {relevance!r} holds {only}: every answer would be right.", hint="Two labels at least are needed."
        )
    return build_truth(
        SameLabel(asked, held, name=relevance),
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
