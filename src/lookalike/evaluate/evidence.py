"""What a saved run shows besides its numbers: the lists behind them, made only when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.evaluate.relevance import Truth
from lookalike.evaluate.sides import Side
from lookalike.index.exact import topk
from lookalike.index.neighbours import Metric, Neighbours, higher_is_better, pair_scores


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Both sides of a run, the truth about them and, where it was re-ranked, the pools after that.

    Rows of a list are rows of the gallery; what the protocol removes from a query's gallery is in none.
    """

    queries: Side
    gallery: Side
    truth: Truth
    metric: Metric
    vectors: Vectors
    """(q, d) what was searched with: the queries' own vectors, or the expanded ones."""
    pools: Neighbours | None = None
    """The re-ranked first candidates of every query; behind them the plain order goes on."""
    threads: int | None = None

    @property
    def staged(self) -> bool:
        """Whether a list holds scores of two kinds, the re-ranker's and the search's."""
        return self.pools is not None

    def lists(self, rows: Ids, depth: int) -> list[tuple[Ids, Scores]]:
        """Return the first `depth` gallery rows of these queries with their scores, best first."""
        found = topk(
            self.vectors[rows], self.gallery.vectors, depth, metric=self.metric, exclude=self._unwanted(rows),
            threads=self.threads,
        )  # fmt: skip
        if self.pools is None:
            return list(found)
        return [_joined(self.pools[row], plain, depth) for row, plain in zip(rows.tolist(), found, strict=True)]

    def relevant(self, row: int) -> Ids:
        """Return the gallery rows that are right for one query, what the protocol removes left out."""
        return self.truth.rows(np.array([row]))[0].items

    def first_right(self, row: int) -> int | None:
        """Return the gallery row of the first right answer; None where there is none."""
        right = self.relevant(row)
        if not right.size:
            return None
        if self.pools is not None:
            ids, _ = self.pools[row]
            inside = ids[np.isin(ids, right)]
            if inside.size:
                return int(inside[0])
        scores = pair_scores(self.vectors[row], self.gallery.vectors[right], self.metric)
        return int(right[np.argmax(scores if higher_is_better(self.metric) else -scores)])  # the first of equal ones

    def _unwanted(self, rows: Ids) -> list[Ids]:
        _, removed = self.truth.rows(rows)
        return np.split(removed.items, removed.offsets[1:-1])


def _joined(pool: tuple[Ids, Scores], plain: tuple[Ids, Scores], depth: int) -> tuple[Ids, Scores]:
    behind = ~np.isin(plain[0], pool[0])
    ids, scores = (np.concatenate([pool[part], plain[part][behind]])[:depth] for part in (0, 1))
    return ids, scores
