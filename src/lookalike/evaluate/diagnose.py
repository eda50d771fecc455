"""From the numbers to the next step, with the reason in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PERFECT = 0.999  # recall@1 above this on real pictures is nearly always a leak
LOW = 0.5  # below this at K = 10 the encoder does not see what the labels mean
GAP = 0.15  # a rise of recall from 1 to 10 by more than this is room for a re-ranker
MANY_ALIKE = 0.05  # share of queries with a look-alike from which the number says more about copies than about skill
FEW_QUERIES = 100  # below this the 95 % interval of a recall is about ±0.1 or wider


def diagnose(
    metrics: Mapping[str, float],
    *,
    num_queries: int,
    num_evaluated: int,
    excluded: Mapping[str, int],
    measured: bool,
    leaks: Mapping[str, Any] | None = None,
) -> list[str]:
    """Say what the numbers ask for next, one sentence a finding, the reason in brackets.

    `metrics` maps `recall@K` to its value; `measured` is False where self-matches were kept on purpose; `leaks` counts
    the queries with a near-copy in their gallery, as `leaks.Copies` gives them.

    >>> diagnose({"recall@1": 0.4, "recall@10": 0.9}, num_queries=500, num_evaluated=500, excluded={}, measured=True)
    ['The right pictures are near but not first (recall@1 0.400, recall@10 0.900): re-rank the first candidates.']
    """
    if not measured:
        return ["Not a measurement: every query may find itself, so recall@1 says only that the vectors load."]
    if num_evaluated == 0:
        return [f"Nothing was evaluated: {_nothing(excluded, num_queries)}"]
    return [*_quality(metrics), *_copies(metrics, leaks or {}), *_size(num_evaluated, num_queries, excluded)]


def _quality(metrics: Mapping[str, float]) -> list[str]:
    ks = sorted(int(name.removeprefix("recall@")) for name in metrics if name.startswith("recall@"))
    first, last = metrics[f"recall@{ks[0]}"], metrics[f"recall@{ks[-1]}"]
    reason = f"(recall@{ks[0]} {first:.3f}, recall@{ks[-1]} {last:.3f})"
    if ks[0] == 1 and first >= PERFECT:
        return [f"Nearly perfect at rank 1 (recall@1 {first:.3f}): probably a leak; look for copies with `leaks`."]
    if last < LOW:
        return [f"Low everywhere {reason}: try another encoder, or fine-tune this one on such labels."]
    if last - first > GAP:
        return [f"The right pictures are near but not first {reason}: re-rank the first candidates."]
    return []


def _copies(metrics: Mapping[str, float], leaks: Mapping[str, Any]) -> list[str]:
    """Say what recall is without the queries whose answer is nearly the query itself."""
    alike, checked = leaks.get("alike", 0), leaks.get("queries_checked", 0)
    if not alike or alike < MANY_ALIKE * checked:
        return []
    name = min((name for name in metrics if name.startswith("recall@")), key=lambda name: int(name[7:]))
    others = leaks["recall_others"]
    without = "no query has another answer" if others is None else f"{others:.3f} for the others"
    return [
        f"{alike} of {checked} queries ({alike / checked:.0%}) have an answer so alike that it may be another shot of "
        f"the same scene (cosine {leaks['alike_at_least']:g} or more): {name} is {leaks['recall_alike']:.3f} for them, "
        f"{without}. Split by scene, or list the pairs with `leaks --at-least {leaks['alike_at_least']:g}`."
    ]


def _size(num_evaluated: int, num_queries: int, excluded: Mapping[str, int]) -> list[str]:
    sentences = []
    if num_evaluated < FEW_QUERIES:
        sentences.append(f"Few queries ({num_evaluated}): read the interval, not the number.")
    left_out = num_queries - num_evaluated
    if left_out > num_queries / 10:
        listed = ", ".join(f"{reason} {count}" for reason, count in excluded.items() if count)
        sentences.append(
            f"{left_out} of {num_queries} queries could not be evaluated ({listed}): the number is of the rest."
        )
    return sentences


_REASONS: Mapping[str, str] = {
    "self_only": "each query is the only picture with its label, and a picture is not its own match",
    "label_absent": "no query label occurs in the gallery",
    "label_missing": "no query has a label",
    "camera_rule": "every relevant picture was taken by the query's own camera, and the camera rule removes those",
    "junk_only": "every relevant picture is on the junk list",
}


def _nothing(excluded: Mapping[str, int], num_queries: int) -> str:
    if num_queries == 0:
        return "there is no query."
    reason, count = max(excluded.items(), key=lambda item: item[1], default=("", 0))
    return f"{_REASONS.get(reason, 'no query has a relevant picture')} ({reason} {count} of {num_queries})."
