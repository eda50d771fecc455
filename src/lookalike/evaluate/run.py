"""One evaluation: from vectors to a report, and from pictures to a report."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, label_key, same_length
from lookalike.embed.encoder import Card
from lookalike.embed.pipeline import embed_all
from lookalike.embed.registry import EncoderLike
from lookalike.embed.registry import encoder as find_encoder
from lookalike.embed.sources import Item, name_of
from lookalike.errors import InputError
from lookalike.evaluate import metrics
from lookalike.evaluate.confidence import intervals
from lookalike.evaluate.diagnose import diagnose
from lookalike.evaluate.protocol import Protocol, SelfRule, items_digest
from lookalike.evaluate.ranks import Ranks, rank_blocks
from lookalike.evaluate.relevance import CameraRule, SameLabel, Truth, build_truth
from lookalike.evaluate.report import Report
from lookalike.evaluate.sides import Side
from lookalike.images.load import Failure
from lookalike.index.neighbours import Metric, check_metric

VERSIONED = ("lookalike", "numpy", "onnxruntime", "pillow")
OTHER_METRICS = ("map@r", "r-precision", "map", "mrr", "minp")


def measure(
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
    card: Card | None = None,
    failures: Sequence[Failure] = (),
    timings: Mapping[str, float] | None = None,
    threads: int | None = None,
) -> Report:
    """Rank the gallery for every query and report how often, and how early, a relevant item comes.

    Relevant means: the same value in column `relevance`. An item whose id is also the query's is the query itself and
    is removed from its gallery, unless `self_match` asks for the check that every picture finds itself, which the
    report then calls no measurement. `camera` names the column of the same-camera rule of re-identification, `cluster`
    the column by which the bootstrap resamples whole groups of queries.

    Raises:
        InputError: a column that is not there, a cut-off below 1, fewer than two labels, no query or no gallery.
        NonFiniteError: NaN, infinity or a zero vector; the rows are named.

    >>> vectors = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]]
    >>> side = Side(vectors=vectors, ids=np.arange(4), columns={"label": list("aabb")})
    >>> measure(side, side).recall
    {1: 1.0, 5: 1.0, 10: 1.0}
    """
    started = time.perf_counter()
    check_metric(metric)
    cuts = _cut_offs(ks)
    truth = _truth(queries, gallery, relevance, camera, self_match)
    names = _metric_names(cuts)
    ties: list[int] = []
    blocks = rank_blocks(
        queries.vectors, gallery.vectors, truth, metric=metric, gallery_ids=gallery.ids, threads=threads
    )
    per_query = metrics.measure(_counting_ties(blocks, ties), names)
    means = {name: metrics.mean(values) for name, values in per_query.items()}
    groups = None if cluster is None else queries.column(cluster)
    num_evaluated = int(truth.evaluated.sum())
    protocol = Protocol(
        relevance=f"same value in column {relevance!r}"
        + (f", without the query's own camera (column {camera!r})" if camera else ""),
        metric=metric,
        self_rule=_self_rule(queries, gallery, self_match),
        ks=cuts,
        split=split,
        seed=seed,
        items=_items(queries, gallery, [column for column in (relevance, camera) if column]),
    )
    findings = diagnose(
        means, num_queries=len(queries), num_evaluated=num_evaluated, excluded=truth.excluded, measured=not self_match
    )
    return Report(
        num_queries=len(queries),
        num_evaluated=num_evaluated,
        excluded=truth.excluded,
        num_gallery=len(gallery),
        embedding_dim=queries.vectors.shape[1],
        metrics=means,
        intervals=intervals(per_query, groups=groups, seed=seed) if num_evaluated else {},
        protocol=protocol,
        encoder=card,
        index={"kind": "exact", "overlap": 1.0},
        timings={**(timings or {}), "measure_s": time.perf_counter() - started},
        diagnosis=tuple(findings),
        warnings=tuple(_warnings(truth, sum(ties), failures, num_evaluated, self_match)),
        failed=tuple(failures),
        query_names=queries.names,
        per_query=per_query,
        versions=_versions(),
    )


def evaluate(
    query_images: Sequence[Item] | npt.NDArray[Any],
    query_labels: Sequence[Any],
    gallery_images: Sequence[Item] | npt.NDArray[Any],
    gallery_labels: Sequence[Any],
    encoder: EncoderLike | None = "builtin:effnet-lite0",
    ks: Sequence[int] = (1, 5, 10),
    *,
    query_ids: npt.ArrayLike | None = None,
    gallery_ids: npt.ArrayLike | None = None,
    metric: Metric = "cosine",
    self_match: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> Report:
    """Measure recall@K of an encoder on labelled pictures, or of ready vectors where `encoder` is None.

    Pictures are paths, file bytes, uint8 arrays or Pillow images; ready vectors are (q, d) and (n, d) arrays. A path
    that stands on both sides is one picture, and is not its own answer; elsewhere `query_ids` and `gallery_ids` say
    so. A picture that cannot be read is left out, counted and listed in `failed`.

    Raises:
        InputError: query and gallery are the same and nothing says which item is which; lengths differ; K below 1.
        NonFiniteError: NaN, infinity or a zero vector; the rows are named.

    >>> vectors = np.eye(4)[[0, 0, 1, 1]]
    >>> labels, ids = ["a", "a", "b", "b"], [1, 2, 3, 4]
    >>> evaluate(vectors, labels, vectors, labels, None, (1,), query_ids=ids, gallery_ids=ids).recall
    {1: 1.0}
    """
    same_length(query_images=query_images, query_labels=query_labels)
    same_length(gallery_images=gallery_images, gallery_labels=gallery_labels)
    ids = _shared_ids(query_images, gallery_images, query_ids, gallery_ids, encoder is None, self_match)
    sides: list[Side] = []
    failures: list[Failure] = []
    card: Card | None = None
    started = time.perf_counter()
    for images, labels, numbers in zip(
        (query_images, gallery_images), (query_labels, gallery_labels), ids, strict=True
    ):
        side, failed, card = _embedded(images, labels, numbers, encoder, threads)
        sides.append(side)
        failures.extend(failed)
    unique = list(dict.fromkeys(failures))  # a picture on both sides fails once
    return measure(
        *sides, metric=metric, ks=ks, seed=seed, self_match=self_match, card=card, failures=unique,
        timings={"embed_s": time.perf_counter() - started}, threads=threads,
    )  # fmt: skip


def _embedded(
    images: Sequence[Item] | npt.NDArray[Any],
    labels: Sequence[Any],
    ids: Ids,
    encoder: EncoderLike | None,
    threads: int | None,
) -> tuple[Side, Sequence[Failure], Card | None]:
    if encoder is None:
        return Side(vectors=np.asarray(images), ids=ids, columns={"label": list(labels)}), (), None
    network = find_encoder(encoder, threads=threads)
    done = embed_all(images, network, threads=threads)
    if not len(done.positions):
        raise InputError("None of the pictures could be read.", hint=f"The first: {done.failures[0]}.")
    kept = done.positions.tolist()
    names = tuple(name_of(images[row], row) for row in kept)
    columns = {"label": [labels[row] for row in kept]}
    return Side(vectors=done.vectors, ids=ids[kept], columns=columns, names=names), done.failures, network.card


def _shared_ids(
    query_images: Sequence[Any] | npt.NDArray[Any],
    gallery_images: Sequence[Any] | npt.NDArray[Any],
    query_ids: npt.ArrayLike | None,
    gallery_ids: npt.ArrayLike | None,
    ready: bool,
    self_match: bool,
) -> tuple[Ids, Ids]:
    """Return ids under which the same picture has the same number on both sides."""
    if (query_ids is None) != (gallery_ids is None):
        raise InputError("query_ids and gallery_ids come together: one side alone says nothing about the other.")
    if query_ids is not None and gallery_ids is not None:
        return np.asarray(query_ids), np.asarray(gallery_ids)
    if ready or not all(isinstance(image, str) or hasattr(image, "__fspath__") for image in query_images):
        same = query_images is gallery_images or _equal(query_images, gallery_images)
        if same and not self_match:
            raise InputError(
                "Query and gallery are the same, so that every item would find itself.",
                hint="Pass query_ids and gallery_ids, or self_match=True for the check that it does.",
            )
        q, n = len(query_images), len(gallery_images)
        return np.arange(q), np.arange(q) if same else np.arange(q, q + n)
    numbers: dict[str, int] = {}
    sides = []
    for images in (query_images, gallery_images):
        places = [numbers.setdefault(_place(image), len(numbers)) for image in images]
        sides.append(np.array(places, dtype=np.int64))
    return sides[0], sides[1]


def _place(path: Any) -> str:
    return os.path.realpath(os.fsdecode(path))


def _equal(left: Any, right: Any) -> bool:
    return isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and np.array_equal(left, right)


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


def _metric_names(cuts: Sequence[int]) -> list[str]:
    deep = max(cuts)
    by_depth = (f"precision@{deep}", f"coverage@{deep}", f"ndcg@{deep}", f"map@{deep}/all", f"map@{deep}/min")
    return [*(f"recall@{k}" for k in cuts), *OTHER_METRICS, *by_depth]


def _counting_ties(blocks: Iterable[Ranks], ties: list[int]) -> Iterator[Ranks]:
    """Hand blocks on and note how many of their queries depend on a tie; ranks themselves are not kept."""
    for ranks in blocks:
        ties.append(int(ranks.tied.sum()))
        yield ranks


def _self_rule(queries: Side, gallery: Side, self_match: bool) -> SelfRule:
    if not np.isin(queries.ids, gallery.ids).any():
        return "queries are not in the gallery"
    return "kept: not a measurement" if self_match else "removed by id"


def _items(queries: Side, gallery: Side, columns: Sequence[str]) -> str:
    """Digest names and labels of both sides, in id order, so that the order of the input changes nothing."""
    parts: list[list[Any]] = []
    for side in (queries, gallery):
        order = np.argsort(np.array(side.names, dtype=object), kind="stable").tolist()
        parts.append([side.names[row] for row in order])
        parts.extend([side.column(name)[row] for row in order] for name in columns)
    return items_digest(*parts)


def _warnings(
    truth: Truth, num_tied: int, failures: Sequence[Failure], num_evaluated: int, self_match: bool
) -> Iterator[str]:
    if self_match:
        yield "Self-matches were kept: this is not a measurement."
    if not num_evaluated:
        yield "No query could be evaluated, so there is no number."
    if failures:
        yield f"{len(failures)} pictures could not be read and are in neither queries nor gallery."
    if num_tied:
        yield f"{num_tied} queries depend on a tie of scores, settled by id; equal vectors are often copies."
    for rule, count in truth.removed_by.items():
        if rule != "self" and count:
            yield f"The {rule} rule removed {count} pairs of query and gallery item."


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in VERSIONED}
