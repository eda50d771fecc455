"""Pictures that stand on both sides of a split, before they are taken for skill."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from lookalike import threads as processors
from lookalike.arrays import Vectors, label_key, unit
from lookalike.errors import ImageError, InputError
from lookalike.evaluate.question import Question
from lookalike.evaluate.sides import Side
from lookalike.images.load import load
from lookalike.index.exact import topk

Level: TypeAlias = Literal["self", "bytes", "pixels", "similar", "identity"]

AT_LEAST = 0.97
"""Cosine from which two pictures count as near-duplicates; stated wherever it is used."""
SAMPLE = 2_000  # queries looked at for the summary in a report; the verb `leaks` looks at all
BLOCK = 1_024

MEANING: dict[Level, str] = {
    "self": "the same item on both sides",
    "bytes": "the same bytes under two names",
    "pixels": "the same pixels in two files",
    "similar": "near-duplicates by cosine",
    "identity": "one identity on both sides",
}


@dataclass(frozen=True)
class Leak:
    """One pair that should not be split: who asks, who answers, and how alike they are (NaN for an identity)."""

    level: Level
    query: str
    gallery: str
    cosine: float


def find_leaks(
    queries: Side,
    gallery: Side,
    *,
    identity: str | None = None,
    at_least: float = AT_LEAST,
    threads: int | None = None,
) -> list[Leak]:
    """List every leaking pair once, at its strongest level, strongest levels first.

    Where both sides are the same object the pairs are those within it, and an item is no leak of itself. `identity`
    names a column whose values must not stand on both sides, as in a split for training. Files are compared only where
    the sides have paths, and decoded only where the vectors are near.

    Raises:
        InputError: a threshold outside -1..1, or a column that is not there.
    """
    if not -1 <= at_least <= 1:
        raise InputError(f"at_least={at_least}: a cosine lies between -1 and 1.")
    same = queries is gallery
    near = _near(unit(queries.vectors), unit(gallery.vectors), min(at_least, AT_LEAST), same, threads)
    equal = _same_bytes(queries, gallery, same)
    found = [Leak("bytes", *_names(queries, gallery, pair), float("nan")) for pair in sorted(equal)]
    for row, item, cosine in near:
        pair = (row, item)
        names = _names(queries, gallery, pair)
        if not same and queries.ids[row] == gallery.ids[item]:
            found.append(Leak("self", *names, cosine))
        elif pair in equal:
            continue
        elif _same_pixels(queries, gallery, pair):
            found.append(Leak("pixels", *names, cosine))
        elif cosine >= at_least:
            found.append(Leak("similar", *names, cosine))
    if identity is not None and not same:
        found += _shared_identities(queries, gallery, identity)
    order = list(MEANING)
    return sorted(found, key=lambda leak: (order.index(leak.level), leak.query, leak.gallery))


def counts(leaks: Sequence[Leak]) -> dict[str, int]:
    """Count the leaks of each level, every level named.

    >>> counts([Leak("bytes", "a", "b", 1.0)])["bytes"]
    1
    """
    tally = Counter(leak.level for leak in leaks)
    return {level: tally[level] for level in MEANING}


def summary(question: Question, *, at_least: float = AT_LEAST, threads: int | None = None) -> dict[str, Any]:
    """Say how many queries have a near-duplicate left in their own gallery: a number for every report.

    The query itself, and what else the protocol removes, is no leak. Beyond 2,000 queries a seeded sample is looked
    at, and the report says so.
    """
    everyone = np.flatnonzero(question.truth.evaluated)
    rng = np.random.default_rng(question.protocol.seed)
    chosen = everyone if len(everyone) <= SAMPLE else np.sort(rng.choice(everyone, SAMPLE, replace=False))
    _, removed = question.truth.rows(chosen)
    unwanted = np.split(removed.items, removed.offsets[1:-1])
    near = 0
    if len(chosen):
        nearest = topk(question.queries.vectors[chosen], question.gallery.vectors, 1, exclude=unwanted, threads=threads)
        near = sum(bool(len(scores) and scores[0] >= at_least) for _, scores in nearest)
    sampled = len(chosen) < len(everyone)
    return {"near_duplicates": near, "queries_checked": len(chosen), "at_least": at_least, "sampled": sampled}


def _near(
    left: Vectors, right: Vectors, at_least: float, same: bool, threads: int | None
) -> Iterator[tuple[int, int, float]]:
    with processors.blas(threads):
        for start in range(0, len(left), BLOCK):
            scores = left[start : start + BLOCK] @ right.T
            rows, items = np.nonzero(scores >= at_least)
            keep = items > rows + start if same else slice(None)
            for row, item in zip(rows[keep].tolist(), items[keep].tolist(), strict=True):
                yield row + start, item, min(float(scores[row, item]), 1.0)


def _same_bytes(queries: Side, gallery: Side, same: bool) -> set[tuple[int, int]]:
    """Return pairs of files with equal bytes; only files of equal size are read."""
    if not queries.paths or not gallery.paths:
        return set()
    asked, held = _by_size(queries), _by_size(gallery)
    pairs = set()
    for size in asked.keys() & held.keys():
        left, right = _by_hash(queries, asked[size]), _by_hash(gallery, held[size])
        for digest in left.keys() & right.keys():
            for row in left[digest]:
                pairs |= {
                    (row, item)
                    for item in right[digest]
                    if (row < item if same else queries.ids[row] != gallery.ids[item])
                }
    return pairs


def _by_size(side: Side) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = defaultdict(list)
    for row, path in enumerate(side.paths):
        try:
            rows[os.stat(path).st_size].append(row)  # noqa: PTH116 - paths may not be UTF-8
        except OSError:  # a file that has gone since it was embedded is no duplicate of anything
            continue
    return rows


def _by_hash(side: Side, rows: Sequence[int]) -> dict[Hashable, list[int]]:
    hashes: dict[Hashable, list[int]] = defaultdict(list)
    for row in rows:
        hashes[hashlib.blake2b(Path(side.paths[row]).read_bytes()).digest()].append(row)
    return hashes


def _same_pixels(queries: Side, gallery: Side, pair: tuple[int, int]) -> bool:
    if not queries.paths or not gallery.paths:
        return False
    try:
        left, right = load(queries.paths[pair[0]]).pixels, load(gallery.paths[pair[1]]).pixels
    except ImageError:
        return False
    return np.array_equal(left, right)


def _shared_identities(queries: Side, gallery: Side, column: str) -> Iterator[Leak]:
    held = {label_key(value) for value in gallery.column(column)} - {None}
    shared = {label_key(value) for value in queries.column(column)} & held
    for value in sorted(str(value) for value in shared):
        yield Leak("identity", value, value, float("nan"))


def _names(queries: Side, gallery: Side, pair: tuple[int, int]) -> tuple[str, str]:
    return queries.names[pair[0]], gallery.names[pair[1]]
