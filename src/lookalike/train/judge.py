"""Held-out identities: how well they are found, and whether better than by the frozen encoder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import Codes, Scores, Vectors, factorise
from lookalike.evaluate.confidence import RESAMPLES, intervals, paired
from lookalike.evaluate.metrics import mean, per_query
from lookalike.evaluate.protocol import RECALL_DEFINITION, Protocol, items_digest
from lookalike.evaluate.ranks import relevant_ranks
from lookalike.evaluate.relevance import SameLabel, build_truth
from lookalike.evaluate.splits import Split

KS = (1, 5, 10)
METRICS = (*(f"recall@{k}" for k in KS), "map")


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The numbers of one split with one set of vectors."""

    per_query: Mapping[str, Scores]
    """Metric -> (q,) values, NaN where a query is not evaluated."""
    groups: Codes
    """(q,) identity of each query: queries of one identity stand and fall together."""
    seed: int

    @property
    def means(self) -> dict[str, float | None]:
        """Metric -> mean over evaluated queries, None where there is none."""
        found = {name: mean(values) for name, values in self.per_query.items()}
        return {name: value if math.isfinite(value) else None for name, value in found.items()}

    def intervals(self, *, resamples: int = RESAMPLES) -> dict[str, tuple[float, float] | None]:
        """Metric -> 95 % interval, resampling whole identities; None where no query is evaluated."""
        found = intervals(self.per_query, groups=self.groups, seed=self.seed, resamples=resamples)
        return {name: pair if math.isfinite(pair[0]) else None for name, pair in found.items()}


class Judge:
    """Ranks one split, again and again, with whatever vectors it is handed."""

    def __init__(self, split: Split, labels: Sequence[str | None], names: Sequence[str], *, seed: int = 0) -> None:
        self.query = np.array(split.query, dtype=np.int64)
        self.gallery = np.array(split.gallery, dtype=np.int64)
        self.rows = np.union1d(self.query, self.gallery)
        """Rows whose vectors are asked for."""
        asked, answers = [labels[i] for i in self.query], [labels[i] for i in self.gallery]
        self._truth = build_truth(
            SameLabel(asked, answers),
            num_queries=len(asked),
            num_gallery=len(answers),
            query_ids=self.query,
            gallery_ids=self.gallery,
        )
        self._groups = factorise(asked)[0]
        self._seed = seed
        self.protocol = Protocol(
            relevance="same label",
            metric="cosine",
            self_rule="removed by id" if np.isin(self.query, self.gallery).any() else "queries are not in the gallery",
            ks=KS,
            split=split.description,
            seed=seed,
            items=items_digest([names[i] for i in self.query], asked, [names[i] for i in self.gallery], answers),
        )

    def measure(self, vectors: Vectors) -> Measured:
        """(len(rows), d) vectors of `rows`, in that order -> the numbers."""
        queries = vectors[np.searchsorted(self.rows, self.query)]
        same = self.query.shape == self.gallery.shape and bool((self.query == self.gallery).all())
        gallery = queries if same else vectors[np.searchsorted(self.rows, self.gallery)]
        ranks = relevant_ranks(queries, gallery, self._truth, gallery_ids=self.gallery)
        return Measured(
            per_query={name: per_query(ranks, name) for name in METRICS}, groups=self._groups, seed=self._seed
        )

    def counts(self) -> dict[str, Any]:
        """Return how many pictures and identities are asked."""
        evaluated = self._truth.evaluated
        return {
            "num_queries": len(self.query),
            "num_evaluated": int(evaluated.sum()),
            "num_gallery": len(self.gallery),
            "identities": int(np.unique(self._groups[evaluated]).size),
            "excluded": self._truth.excluded,
        }


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The trained vectors against the frozen ones, on the same questions."""

    before: Mapping[str, float | None]
    after: Mapping[str, float | None]
    paired: Mapping[str, Mapping[str, Any]]
    """Metric -> difference, interval, p, won, lost, tied."""
    better: bool
    """Only where the whole interval of recall@1's or mAP's difference lies above 0 and neither lies below."""
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "before": dict(self.before),
            "after": dict(self.after),
            "paired": {name: dict(values) for name, values in self.paired.items()},
            "better": self.better,
            "verdict": self.sentence,
            "definition": RECALL_DEFINITION,
        }


def compare(before: Measured, after: Measured) -> Verdict:
    """Pair two measurements query by query and say no more than their intervals allow."""
    pairs = {name: _pair(before, after, name) for name in METRICS}
    signs = {name: _sign(pairs[name]["interval"]) for name in ("recall@1", "map")}
    better = max(signs.values()) > 0 and min(signs.values()) >= 0
    words = "; ".join(_words(name, before.means[name], after.means[name], pairs[name]) for name in signs)
    if better:
        lead = "Better than the frozen encoder on identities it has not seen"
    elif min(signs.values()) < 0:
        lead = (
            "Worse than the frozen encoder" if max(signs.values()) <= 0 else "Better in one number and worse in another"
        )
    else:
        lead = "Not shown to be better than the frozen encoder: the intervals include 0"
    return Verdict(before=before.means, after=after.means, paired=pairs, better=better, sentence=f"{lead} ({words}).")


def _pair(before: Measured, after: Measured, name: str) -> dict[str, Any]:
    """Return the difference of one metric with its interval, or Nones where no query is evaluated."""
    found = paired(before.per_query[name], after.per_query[name], groups=before.groups, seed=before.seed)
    known = math.isfinite(found.difference)
    return {
        "difference": found.difference if known else None,
        "interval": (found.low, found.high) if known else None,
        "p": found.p if known else None,
        "won": found.won,
        "lost": found.lost,
        "tied": found.tied,
    }


def _words(name: str, before: float | None, after: float | None, pair: Mapping[str, Any]) -> str:
    if before is None or after is None or pair["interval"] is None:
        return f"{name} has no evaluated query"
    low, high = pair["interval"]
    return f"{name} {before:.3f} → {after:.3f}, {pair['difference']:+.3f}, 95 % {low:+.3f} to {high:+.3f}"


def _sign(interval: tuple[float, float] | None) -> int:
    if interval is None:
        return 0
    return int(interval[0] > 0) - int(interval[1] < 0)
