"""Pictures that stand on both sides of a split, before they are taken for skill."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from lookalike import threads as processors
from lookalike.arrays import Ids, Scores, Vectors, label_key, unit
from lookalike.errors import ImageError, InputError
from lookalike.evaluate.metrics import mean
from lookalike.evaluate.question import Question
from lookalike.evaluate.sides import Side
from lookalike.images.load import load
from lookalike.index.exact import topk

Level: TypeAlias = Literal["self", "bytes", "pixels", "similar", "identity"]

AT_LEAST = 0.97
"""Cosine from which two pictures count as near-duplicates; stated wherever it is used."""
ALIKE = 0.9
"""Cosine from which an answer may be another shot of the same scene, by an encoder such as the built-in one."""
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


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Which queries have an answer so like themselves that finding it says little; counted for every report."""

    rows: Ids
    """(c,) the queries looked at."""
    nearest: Scores
    """(c,) cosine to the nearest item left in their gallery; NaN where that is empty."""
    same_bytes: int | None
    """Queries whose nearest item is the same file; None where there are no files."""
    sampled: bool

    def to_dict(self, values: Scores) -> dict[str, Any]:
        """Return the counts, and the mean of (q,) values for queries with a look-alike and for the others."""
        alike = self.nearest >= ALIKE
        with_one, others = mean(values[self.rows[alike]]), mean(values[self.rows[~alike]])
        return {
            "near_duplicates": int((self.nearest >= AT_LEAST).sum()),
            "same_bytes": self.same_bytes,
            "queries_checked": len(self.rows),
            "at_least": AT_LEAST,
            "sampled": self.sampled,
            "alike": int(alike.sum()),
            "alike_at_least": ALIKE,
            "recall_alike": None if np.isnan(with_one) else with_one,
            "recall_others": None if np.isnan(others) else others,
        }


def look_for_copies(question: Question, *, threads: int | None = None) -> Copies:
    """Find the nearest item left in each query's own gallery: a number for every report.

    The query itself, and what else the protocol removes, is no leak. Beyond 2,000 queries a seeded sample is looked
    at, and the report says so. Only near-duplicates are compared byte by byte.
    """
    everyone = np.flatnonzero(question.truth.evaluated)
    rng = np.random.default_rng(question.protocol.seed)
    chosen = everyone if len(everyone) <= SAMPLE else np.sort(rng.choice(everyone, SAMPLE, replace=False))
    _, removed = question.truth.rows(chosen)
    unwanted = np.split(removed.items, removed.offsets[1:-1])
    queries, gallery = question.queries, question.gallery
    nearest, equal = np.full(len(chosen), np.nan), 0
    if len(chosen):
        found = topk(queries.vectors[chosen], gallery.vectors, 1, exclude=unwanted, threads=threads)
        for place, (items, scores) in enumerate(found):
            if len(items):
                nearest[place] = scores[0]
                equal += scores[0] >= AT_LEAST and _equal_files(queries, gallery, (int(chosen[place]), int(items[0])))
    files = bool(queries.paths and gallery.paths)
    return Copies(
        rows=chosen, nearest=nearest, same_bytes=int(equal) if files else None, sampled=len(chosen) < len(everyone)
    )


def pooled(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Add up what `Copies.to_dict` says of several disjoint sets of queries; None where there is none."""
    if not parts:
        return None
    total = {name: sum(part[name] for part in parts) for name in ("near_duplicates", "queries_checked", "alike")}
    files = [part["same_bytes"] for part in parts if part["same_bytes"] is not None]
    others = [part["queries_checked"] - part["alike"] for part in parts]
    return {
        **parts[0],
        **total,
        "same_bytes": sum(files) if files else None,
        "sampled": any(part["sampled"] for part in parts),
        "recall_alike": _weighted([part["recall_alike"] for part in parts], [part["alike"] for part in parts]),
        "recall_others": _weighted([part["recall_others"] for part in parts], others),
    }


def _weighted(values: Sequence[float | None], weights: Sequence[int]) -> float | None:
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    count = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / count if count else None


def _equal_files(queries: Side, gallery: Side, pair: tuple[int, int]) -> bool:
    if not queries.paths or not gallery.paths:
        return False
    left, right = Path(queries.paths[pair[0]]), Path(gallery.paths[pair[1]])
    try:
        return left.stat().st_size == right.stat().st_size and left.read_bytes() == right.read_bytes()
    except OSError:  # a file that has gone since it was embedded is no duplicate of anything
        return False


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
