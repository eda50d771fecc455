"""One evaluation: from vectors to a report, and from pictures to a report."""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, same_length
from lookalike.embed.encoder import Card
from lookalike.embed.pipeline import embed_all
from lookalike.embed.registry import EncoderLike
from lookalike.embed.registry import encoder as find_encoder
from lookalike.embed.sources import Item, name_of
from lookalike.errors import InputError
from lookalike.evaluate.answer import answer
from lookalike.evaluate.chosen import expanded, metric_names
from lookalike.evaluate.evidence import Evidence
from lookalike.evaluate.leaks import look_for_copies
from lookalike.evaluate.metrics import needs_all
from lookalike.evaluate.paired import compare_values
from lookalike.evaluate.question import Declare, Question, ask
from lookalike.evaluate.ranks import rank_blocks
from lookalike.evaluate.report import Report
from lookalike.evaluate.sides import Side
from lookalike.evaluate.staged import Stages, staged_ranks
from lookalike.images.load import Failure
from lookalike.index.neighbours import Metric

logger = logging.getLogger("lookalike")

MANY_RANKS = 50_000_000  # half a minute on one processor


def measure(
    queries: Side,
    gallery: Side,
    *,
    relevance: str | Declare = "label",
    camera: str | None = None,
    cluster: str | None = None,
    metric: Metric = "cosine",
    ks: Sequence[int] = (1, 5, 10),
    metrics: Sequence[str] | None = None,
    split: str = "queries against gallery",
    seed: int = 0,
    self_match: bool = False,
    stages: Stages | None = None,
    card: Card | None = None,
    failures: Sequence[Failure] = (),
    timings: Mapping[str, float] | None = None,
    threads: int | None = None,
) -> Report:
    """Rank the gallery for every query and report how often, and how early, a relevant item comes.

    Relevant means: the same value in column `relevance`, or what a function of both sides declares. An item whose id is
    also the query's is the query itself and is removed from its gallery, unless `self_match` asks for the check that
    every picture finds itself, which the report then calls no measurement. `camera` names the column of the same-camera
    rule of re-identification, `cluster` the column by which the bootstrap resamples whole groups of queries. `metrics`
    names what is computed besides recall@K, by default everything: where recall, cmc and mrr are enough, large classes
    are much quicker. With
    `stages` (query expansion, a re-ranker) the report is of the run with them, and its `plain` is the same report
    without, compared query by query.

    Raises:
        InputError: a column that is not there, a cut-off below 1, fewer than two labels, no query or no gallery.
        NonFiniteError: NaN, infinity or a zero vector; the rows are named.

    >>> vectors = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]]
    >>> side = Side(vectors=vectors, ids=np.arange(4), columns={"label": list("aabb")})
    >>> measure(side, side).recall
    {1: 1.0, 5: 1.0, 10: 1.0}
    """
    question = ask(
        queries, gallery, relevance=relevance, camera=camera, cluster=cluster, metric=metric, ks=ks, split=split,
        seed=seed, self_match=self_match,
    )  # fmt: skip
    asks, answers = question.queries, question.gallery
    names = metric_names(question.protocol.ks) if metrics is None else expanded(metrics, question.protocol.ks)
    first_only = not needs_all(names)
    _announce(question, first_only)
    spent = dict(timings or {})
    started = time.perf_counter()
    # where self-matches are kept every query's first answer is itself, which is no copy
    copies = look_for_copies(question, threads=threads) if question.measured else None
    blocks = rank_blocks(
        asks.vectors, answers.vectors, question.truth, metric=metric, first_only=first_only, threads=threads
    )
    evidence = Evidence(
        queries=asks, gallery=answers, truth=question.truth, metric=metric, vectors=asks.vectors, threads=threads
    )
    plain = answer(question, blocks, names=names, card=card, failures=failures, copies=copies, evidence=evidence)
    plain = dataclasses.replace(plain, timings={**spent, "measure_s": time.perf_counter() - started})
    if not stages:
        return plain
    staged = staged_ranks(asks, answers, question.truth, stages, metric=metric, threads=threads)
    after = answer(
        question, [staged.ranks], names=names, card=card, failures=failures, timings={**spent, **staged.timings},
        copies=copies, stages=str(stages),
        evidence=dataclasses.replace(
            evidence, vectors=staged.vectors, gallery=staged.gallery, pools=staged.pools
        ),
    )  # fmt: skip
    paired = compare_values(plain.per_query, after.per_query, groups=question.groups, seed=seed)
    return dataclasses.replace(after, plain=plain, paired=paired)


def _announce(question: Question, first_only: bool) -> None:
    """Say beforehand where large classes will take their time, and what would be quicker."""
    wanted = int(question.truth.num_relevant.sum())
    if not first_only and wanted > MANY_RANKS:
        logger.info(
            "%s ranks are counted, every right answer of every query; --metrics mrr looks for the first one alone.",
            f"{wanted:,}",
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
