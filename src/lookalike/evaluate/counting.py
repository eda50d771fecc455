"""How the ranks are counted: tiles of float32 products, exact scores where they are close, one worker a thread.

Three ways, one answer. Query = gallery with small classes: each tile is computed once and read along its rows and
along its columns. Otherwise: whole rows of scores for a block of queries. Classes so large that a row would be
compared with hundreds of thresholds: the row's exact scores, sorted.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import local
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lookalike import threads as thread_counts
from lookalike.arrays import Ids, Mask, Scores, Vectors
from lookalike.evaluate import kernels
from lookalike.evaluate.bounds import Filter, make_filter, wide_products
from lookalike.evaluate.pairs import Csr
from lookalike.evaluate.ranks import Ranks
from lookalike.evaluate.relevance import Truth
from lookalike.index.neighbours import Metric

TILE = 1024  # side of a symmetric tile: 4 MB of scores, and as much for its transpose
MOST_THRESHOLDS = 512  # beyond this many relevant items, sorting a row's exact scores is cheaper than counting
_PAIR_BYTES = 96  # what one counted pair holds in memory while it is worked on
_CODES: Mapping[Metric, int] = {"cosine": kernels.COSINE, "ip": kernels.IP, "l2": kernels.L2}
_NAMES = {code: name for name, code in _CODES.items()}
_OTHER, _RELEVANT, _REMOVED = 0, 1, 2
States: TypeAlias = npt.NDArray[np.int8]
"""(n,) what each gallery item is to one query."""
T = TypeVar("T")
R = TypeVar("R")
_log = logging.getLogger("lookalike")


@dataclass(frozen=True)
class Job:
    """One set of queries against one gallery, ready to be counted."""

    rows: kernels.Rows
    filter: Filter
    truth: Truth
    first_only: bool

    @classmethod
    def prepare(
        cls, queries: Vectors, gallery: Vectors, truth: Truth, metric: Metric, ids: Ids, *, first_only: bool
    ) -> Job:
        """Make the filter rows and the exact lengths."""
        _notice()
        prepared = make_filter(queries, gallery, metric)
        query_norms = kernels.norms(queries)
        gallery_norms = query_norms if queries is gallery else kernels.norms(gallery)
        rows = kernels.Rows(queries, gallery, query_norms, gallery_norms, ids, _CODES[metric])
        return cls(rows, prepared, truth, first_only)

    def take(self, queries: Ids) -> Job:
        """Return the same job for some of the queries, in that order; its truth still speaks of all."""
        rows = self.rows._replace(queries=self.rows.queries[queries], query_norms=self.rows.query_norms[queries])
        part = Filter(self.filter.queries[queries], self.filter.gallery, self.filter.margin[queries])
        return Job(rows, part, self.truth, self.first_only)


def run(job: Job, *, block: int | None, threads: int | None, memory_budget: int) -> Iterator[Ranks]:
    """Yield the ranks of consecutive blocks of queries."""
    workers = thread_counts.resolve(threads)
    counts = np.where(job.truth.evaluated, job.truth.num_relevant, 0)
    small = counts.sum() * _PAIR_BYTES <= memory_budget and counts.max(initial=0) <= MOST_THRESHOLDS
    with thread_counts.blas(1):  # one worker a thread, each with a single-threaded product of its own tile
        if job.filter.symmetric and small:
            yield _symmetric(job, min(block or TILE, TILE), workers)
        else:
            size = block or _block_size(len(job.rows.gallery), counts, workers, memory_budget)
            yield from _by_rows(job, size, workers)


def _block_size(num_gallery: int, counts: Ids, workers: int, budget: int) -> int:
    most = int(counts.max(initial=0))
    per_query = (4 if most <= MOST_THRESHOLDS else 12) * num_gallery + _PAIR_BYTES * most + 1
    return int(np.clip(budget // (workers * per_query), 1, 256))


def _symmetric(job: Job, tile: int, workers: int) -> Ranks:
    num = len(job.rows.queries)
    everyone = np.arange(num)
    relevant, removed = _truth_rows(job.truth, everyone)
    thresholds = _thresholds(job, relevant)
    mine = local()
    totals: list[tuple[Ids, Mask, Vectors, Vectors]] = []

    def work(corner: tuple[int, int]) -> None:
        if not hasattr(mine, "state"):
            scores = np.empty((2, tile * tile), dtype=np.float32)
            mine.state = (np.zeros(len(thresholds.items), np.int64), np.zeros(num, bool), scores[0], scores[1])
            totals.append(mine.state)
        counts, tied, flat, turned = mine.state
        r0, c0 = corner
        r1, c1 = min(r0 + tile, num), min(c0 + tile, num)
        rows = job.filter.gallery
        scores = flat[: (r1 - r0) * (c1 - c0)].reshape(r1 - r0, c1 - c0)
        np.matmul(rows[r0:r1], rows[c0:c1].T, out=scores)
        lists = (job.rows, thresholds, *relevant, *removed, counts, tied)
        kernels.count_tile(scores, everyone[r0:r1], c0, *lists)
        if r0 != c0:
            columns = turned[: scores.size].reshape(c1 - c0, r1 - r0)
            kernels.transpose(scores, columns)
            kernels.count_tile(columns, everyone[c0:c1], r0, *lists)

    corners = ((r, c) for r in range(0, num, tile) for c in range(r, num, tile))
    for _ in _in_order(work, corners, workers):
        pass
    counts, tied = np.zeros(len(thresholds.items), np.int64), np.zeros(num, bool)
    for state in totals:
        counts += state[0]
        tied |= state[1]
    return _ranks(job, everyone, thresholds, removed, counts, tied)


def _by_rows(job: Job, size: int, workers: int) -> Iterator[Ranks]:
    num = len(job.rows.queries)
    starts = range(0, max(num, 1), size)
    blocks = (np.arange(start, min(start + size, num)) for start in starts)
    yield from _in_order(lambda queries: _block(job, queries), blocks, workers)


def _block(job: Job, queries: Ids) -> Ranks:
    many = job.truth.num_relevant[queries] > MOST_THRESHOLDS
    if job.first_only or not many.any():
        return _counted(job, queries)
    if many.all():
        return _sorted(job, queries)
    parts = [(np.flatnonzero(~many), _counted), (np.flatnonzero(many), _sorted)]
    ranks = [rank(job, queries[places]) for places, rank in parts]
    rows = np.concatenate([places[part.rows] for (places, _), part in zip(parts, ranks, strict=True)])
    found = np.concatenate([part.ranks for part in ranks])[np.argsort(rows, kind="stable")]
    tied = np.zeros(len(queries), dtype=bool)
    for (places, _), part in zip(parts, ranks, strict=True):
        tied[places] = part.tied
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(queries)))])
    return _answer(job.truth, queries, found, offsets, tied, first_only=False)


def _counted(job: Job, queries: Ids) -> Ranks:
    """Rank by counting the scores above each relevant item."""
    part = job.take(queries)
    relevant, removed = _truth_rows(job.truth, queries)
    scores = np.matmul(part.filter.queries, part.filter.gallery.T)
    local_rows = np.arange(len(queries))
    if job.first_only:
        best = np.empty(len(queries), dtype=np.int64)
        kernels.best_items(part.rows, scores, part.filter.margin, *relevant, best)
        thresholds = _thresholds(part, Csr(np.concatenate([[0], np.cumsum(best >= 0)]), best[best >= 0]))
    else:
        thresholds = _thresholds(part, relevant)
    counts, tied = np.zeros(len(thresholds.items), np.int64), np.zeros(len(queries), bool)
    kernels.count_tile(scores, local_rows, 0, part.rows, thresholds, *relevant, *removed, counts, tied)
    return _ranks(part, queries, thresholds, removed, counts, tied)


def _sorted(job: Job, queries: Ids) -> Ranks:
    """Rank by sorting whole rows of float64 products, close ones made exact first."""
    part = job.take(queries)
    relevant, removed = _truth_rows(job.truth, queries)
    products, margins = wide_products(part.rows.queries, part.rows.gallery, _NAMES[part.rows.metric])
    found, tied = [], np.zeros(len(queries), dtype=bool)
    state = np.empty(len(part.rows.gallery), dtype=np.int8)
    for row, keys in enumerate(products):
        state[:] = _OTHER
        state[relevant.items[relevant.offsets[row] : relevant.offsets[row + 1]]] = _RELEVANT
        state[removed.items[removed.offsets[row] : removed.offsets[row + 1]]] = _REMOVED
        ranks, tied[row] = _row_ranks(part.rows, row, keys, margins[row], state)
        found.append(ranks)
    offsets = np.concatenate([[0], np.cumsum([len(ranks) for ranks in found])]).astype(np.int64)
    return _answer(part.truth, queries, np.concatenate(found), offsets, tied, first_only=False)


def _row_ranks(rows: kernels.Rows, row: int, keys: Scores, margin: float, state: States) -> tuple[Ids, bool]:
    """Return the ranks of the relevant items of one row, and whether they depend on a tie."""
    right, others = _split(keys, state)
    reach = 2 * margin
    doubtful = right[np.searchsorted(others, right - reach) != np.searchsorted(others, right + reach, side="right")]
    if doubtful.size:
        _make_exact(rows, row, keys, reach, doubtful)
        right, others = _split(keys, state)
    right = right[::-1]
    above = len(others) - np.searchsorted(others, right, side="right")
    equal = len(others) - np.searchsorted(others, right, side="left") > above
    for value in np.unique(right[equal]):
        same = keys == value
        ours, theirs = np.sort(rows.ids[same & (state == _RELEVANT)]), np.sort(rows.ids[same & (state == _OTHER)])
        above[right == value] += np.searchsorted(theirs, ours)
    return np.arange(1, len(right) + 1) + above, bool(equal.any())


def _split(keys: Scores, state: States) -> tuple[Scores, Scores]:
    return np.sort(keys[state == _RELEVANT]), np.sort(keys[state == _OTHER])


def _make_exact(rows: kernels.Rows, row: int, keys: Scores, reach: float, doubtful: Scores) -> None:
    """Replace products within reach of a doubtful one by exact scores.

    What stays a product is further from every relevant item than both can be wrong.
    """
    place = np.searchsorted(doubtful, keys)
    above, below = doubtful[np.minimum(place, doubtful.size - 1)], doubtful[np.maximum(place - 1, 0)]
    near = np.flatnonzero((np.abs(keys - above) <= reach) | (np.abs(keys - below) <= reach))
    keys[near] = kernels.pair_keys(rows, np.full(len(near), row), near)


def _truth_rows(truth: Truth, queries: Ids) -> tuple[Csr, Csr]:
    """Return relevant and removed items; queries that are not evaluated have neither."""
    kept = truth.evaluated[queries]
    csrs = truth.rows(queries[kept])
    sizes = np.zeros((2, len(queries)), dtype=np.int64)
    sizes[:, kept] = [csr.counts for csr in csrs]
    offsets = np.concatenate([np.zeros((2, 1), np.int64), np.cumsum(sizes, axis=1)], axis=1)
    return Csr(offsets[0], csrs[0].items), Csr(offsets[1], csrs[1].items)


def _thresholds(job: Job, relevant: Csr) -> kernels.Thresholds:
    queries, items = relevant.rows, relevant.items
    keys = kernels.pair_keys(job.rows, queries, items)
    offsets = relevant.offsets.astype(np.int64)
    if job.first_only:
        order = np.lexsort((job.rows.ids[items], -keys, queries))
        best = order[offsets[:-1][np.diff(offsets) > 0]]
        offsets = np.concatenate([[0], np.cumsum(np.diff(offsets) > 0)]).astype(np.int64)
        queries, items, keys = queries[best], items[best], keys[best]
    middle = kernels.pair_dots(job.filter.queries, job.filter.gallery, queries, items)
    margin = job.filter.margin[queries]
    low = np.nextafter((middle - margin).astype(np.float32), np.float32(-np.inf))
    high = np.nextafter((middle + margin).astype(np.float32), np.float32(np.inf))
    order = np.lexsort((low, queries))
    return kernels.Thresholds(offsets, items[order], keys[order], low[order], high[order])


def _ranks(job: Job, queries: Ids, thresholds: kernels.Thresholds, removed: Csr, counts: Ids, tied: Mask) -> Ranks:
    kernels.removed_above(job.rows, thresholds, *removed, counts)
    rows = np.repeat(np.arange(len(queries)), np.diff(thresholds.offsets))
    ranks = counts[np.lexsort((counts, rows))] + 1
    return _answer(job.truth, queries, ranks, thresholds.offsets, tied, first_only=job.first_only)


def _answer(truth: Truth, queries: Ids, ranks: Ids, offsets: Ids, tied: Mask, *, first_only: bool) -> Ranks:
    return Ranks(
        ranks,
        offsets,
        truth.num_relevant[queries],
        truth.gallery_sizes[queries],
        truth.reasons[queries],
        tied,
        first_only=first_only,
    )


def _in_order(work: Callable[[T], R], tasks: Iterator[T], workers: int) -> Iterator[R]:
    """Yield results in the order of the tasks, with at most two tasks a worker waiting."""
    if workers == 1:
        yield from map(work, tasks)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[R]] = deque()
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _notice() -> None:
    """Say once that the kernels are being compiled, where no compiled copy lies on disk."""
    stats = kernels.count_tile.stats  # type: ignore[attr-defined]
    if not kernels.count_tile.signatures and not any(Path(stats.cache_path or ".").glob("kernels.count_tile*.nbi")):  # type: ignore[attr-defined]
        _log.info("Compiling the ranking kernels, once (a few seconds).")
