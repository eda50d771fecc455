"""What one search sees of an index, and how it is answered: by a scan or by widening."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lookalike.arrays import Ids, Mask, Scores
from lookalike.index.kinds import Hnsw
from lookalike.index.neighbours import Metric, Neighbours
from lookalike.index.queries import Queries
from lookalike.index.rescore import in_order, nearest_of, true_scores
from lookalike.index.scan import Gallery, scan
from lookalike.index.structure import Effort, Structure, selector

EXACT_ROWS, EXACT_SHARE = 1_000, 0.02  # a filter that leaves this little is scanned: cheaper than probing, and exact
GRAPH_VISITS = 16  # distances a graph computes per place in its beam, measured; it decides when scanning is cheaper
ROUNDS, WIDER = 2, 4  # a query short of k looks 4 times, then 16 times as far, and is then answered by a scan
FEW_DEAD = 256  # a flat scan fetches this many more rather than copying the live rows together

Answer: TypeAlias = tuple[Ids, Scores, Ids | None]


@dataclass(frozen=True)
class View:
    """One consistent version of an index under one filter."""

    gallery: Gallery
    ids: Ids
    structure: Structure | None
    effort: Effort
    wanted: Mask | None
    """(n,) True for the rows that may be returned; None: all."""
    count: int
    """How many those are."""
    tail: Gallery
    tail_ids: Ids
    chosen: Any
    """FAISS selector of `wanted`, and the bits it reads; None where there is no filter or the rows are scanned."""

    @classmethod
    def of(
        cls, gallery: Gallery, ids: Ids, structure: Structure | None, effort: Effort, wanted: Mask | None, tail: Any
    ) -> View:
        """Count the rows left, and prepare the selector where they are not going to be scanned."""
        count = len(ids) if wanted is None else int(np.count_nonzero(wanted))
        if structure is not None and count <= _scanned_below(structure, effort, len(ids)):
            structure = None
        chosen = None if wanted is None or structure is None else selector(wanted)
        tail_gallery, tail_ids = tail
        return cls(gallery, ids, structure, effort, wanted, count, tail_gallery, tail_ids, chosen)

    def answer(self, queries: Queries, k: int, need: int, barred: Sequence[Ids] | None) -> Answer:
        """Return (q, m) ids and scores, best first, and the (q,) number of them that count (None: all).

        `need` is k and the longest of the exclusions together.
        """
        rows, scores = self._indexed(queries, min(need, self.count))
        ids = self.ids[rows]
        if len(self.tail_ids):
            fresh, fresh_scores = scan(queries, self.tail, min(need, len(self.tail_ids)))
            ids = np.concatenate([ids, self.tail_ids[fresh]], axis=1)
            ids, scores = in_order(ids, np.concatenate([scores, fresh_scores], axis=1), self.gallery.metric)
        if barred is None:
            return ids[:, :k], scores[:, :k], None
        keep = np.array([~np.isin(row, out) for row, out in zip(ids, barred, strict=True)]).reshape(ids.shape)
        first = np.argsort(~keep, axis=1, kind="stable")[:, :k]  # the kept ones to the front, in the order they had
        ids, scores = np.take_along_axis(ids, first, 1), np.take_along_axis(scores, first, 1)
        return ids, scores, np.minimum(keep.sum(axis=1), k)

    def _indexed(self, queries: Queries, m: int) -> tuple[Ids, Scores]:
        """Return the (q, m) best rows and their true scores; m rows exist."""
        if self.structure is None or m == 0:
            return self._scanned(queries, m)
        structure = self.structure
        fetch, effort = min(m + 1, structure.n), self._first_effort(m)
        rows, scores, open_ = self._round(structure, queries, m, fetch, effort)
        if not open_.any():
            return rows, scores
        for _ in range(ROUNDS):
            effort = Effort(effort.reach * WIDER, effort.k_factor)
            fetch = min(fetch * WIDER, structure.n)
            at = np.flatnonzero(open_)
            if at.size:
                rows[at], scores[at], open_[at] = self._round(structure, queries.at(at), m, fetch, effort)
        at = np.flatnonzero(open_)
        if at.size:
            rows[at], scores[at] = self._scanned(queries.at(at), m)
        return rows, scores

    def _round(
        self, structure: Structure, queries: Queries, m: int, fetch: int, effort: Effort
    ) -> tuple[Ids, Scores, Mask]:
        """Search once; the mask is True for queries with fewer than m rows, or with a tie across the cut."""
        metric = self.gallery.metric
        chosen = None if self.chosen is None else self.chosen[0]
        if structure.refines_outside and self.gallery.ready is not None:
            pool = min(fetch * effort.k_factor, structure.n)
            wide = structure.search(queries.scaled, pool, effort, chosen)
            rows = nearest_of(queries.scaled, self.gallery.ready, wide, fetch, metric)
        else:
            rows = structure.search(queries.scaled, fetch, effort, chosen)
        rows, scores = in_order(rows, true_scores(queries, self.gallery.vectors, rows, metric), metric)
        worst = scores[:, m - 1]
        # a tie across the cut; also where both are infinite, which is to say missing
        open_ = worst == scores[:, m] if m < min(fetch, self.count) else ~np.isfinite(worst)
        return rows[:, :m], scores[:, :m], open_

    def _first_effort(self, m: int) -> Effort:
        """Return the effort asked for, raised where a filter or a large m would leave it short."""
        structure, share = self.structure, self.count / len(self.ids)
        if structure is None or (share == 1 and m <= self.effort.reach):
            return self.effort
        if isinstance(structure.settings, Hnsw):
            return Effort(max(m, round(self.effort.reach / share)))
        enough = 2 * m / self.count * structure.most_reach  # cells that hold twice what is wanted, on average
        reach = max(self.effort.reach / math.sqrt(share), enough)
        return Effort(math.ceil(reach), self.effort.k_factor)

    def _scanned(self, queries: Queries, m: int) -> tuple[Ids, Scores]:
        if self.wanted is None or m == 0:
            return scan(queries, self.gallery, m)
        unwanted = len(self.ids) - self.count
        if unwanted > FEW_DEAD:
            return scan(queries, self.gallery, m, rows=np.flatnonzero(self.wanted))
        rows, scores = scan(queries, self.gallery, m + unwanted)
        first = np.argsort(~self.wanted[rows], axis=1, kind="stable")[:, :m]
        return np.take_along_axis(rows, first, 1), np.take_along_axis(scores, first, 1)


def _scanned_below(structure: Structure, effort: Effort, n: int) -> int:
    few = max(EXACT_ROWS, int(EXACT_SHARE * n))
    if isinstance(structure.settings, Hnsw):
        # a graph looks at reach / share places, so the two costs meet where count² = visits · reach · n
        return max(few, min(n // 2, math.isqrt(GRAPH_VISITS * effort.reach * n)))
    return min(few, n)


def joined(parts: list[Answer], metric: Metric) -> Neighbours:
    """Join what `View.answer` returned for consecutive chunks of queries."""
    if not parts:
        return Neighbours.from_rows([], metric)
    ids, scores, lengths = parts[0]
    if len(parts) > 1:
        ids = np.concatenate([part[0] for part in parts])
        scores = np.concatenate([part[1] for part in parts])
        lengths = None if lengths is None else np.concatenate([part[2] for part in parts if part[2] is not None])
    q, m = ids.shape
    if lengths is None:
        return Neighbours(ids.ravel(), scores.ravel(), np.arange(q + 1) * m, metric)
    offsets = np.zeros(q + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    keep = np.arange(m) < lengths[:, None]
    return Neighbours(ids[keep], scores[keep], offsets, metric)
