"""recall@K from vectors and labels: the one call most people need."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, as_ids, as_vectors, same_length
from lookalike.errors import InputError, InputTypeError
from lookalike.evaluate.metrics import mean, recall
from lookalike.evaluate.ranks import relevant_ranks
from lookalike.evaluate.relevance import Column, SameLabel, build_truth
from lookalike.index.neighbours import Metric


class NothingEvaluatedWarning(UserWarning):
    """No query had a relevant item in its gallery, so there is no number."""


def recall_at_k(
    query_emb: npt.ArrayLike,
    gallery_emb: npt.ArrayLike,
    q_labels: Column,
    g_labels: Column,
    ks: Sequence[int] = (1, 5, 10),
    query_ids: Column | None = None,
    gallery_ids: Column | None = None,
    *,
    metric: Metric = "cosine",
    self_match: bool = False,
    threads: int | None = None,
) -> dict[int, float]:
    """Return, for each K, the share of evaluated queries with a relevant item among their first K.

    query_emb (q, d), gallery_emb (n, d); labels are strings or whole numbers, one each. With ids (whole numbers or
    strings) a query is removed from its own gallery; with `self_match=True` it is not, and the result is not a
    measurement. A query whose label is missing, or stands nowhere else in its gallery, is not evaluated.

    Raises:
        InputError: a K below 1; or query and gallery are the same vectors, and neither ids nor `self_match=True` say
            what to do.
        ShapeError: lengths or dimensions that do not fit.
        NonFiniteError: NaN, infinity or (cosine) a zero vector; the rows are named.

    Where no query can be evaluated the values are NaN, never 0, and `NothingEvaluatedWarning` is issued.

    >>> vectors = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> labels, ids = ["a", "a", "b"], [0, 1, 2]
    >>> recall_at_k(vectors, vectors, labels, labels, ks=(1,), query_ids=ids, gallery_ids=ids)
    {1: 1.0}
    """
    cut_offs = [_cut_off(k) for k in ks]
    queries = as_vectors(query_emb, name="query_emb")
    same = query_emb is gallery_emb
    gallery = queries if same else as_vectors(gallery_emb, name="gallery_emb", dim=queries.shape[1])
    same_length(query_emb=queries, q_labels=q_labels, query_ids=query_ids)
    same_length(gallery_emb=gallery, g_labels=g_labels, gallery_ids=gallery_ids)
    same = same or (queries.shape == gallery.shape and np.array_equal(queries, gallery))
    if same and not self_match and (query_ids is None or gallery_ids is None):
        raise InputError(
            "Query and gallery are the same vectors, so every query would find itself.",
            hint="Pass query_ids and gallery_ids to leave each query out of its own gallery, "
            "or self_match=True to count self-matches (which is not a measurement).",
        )
    q_ids, g_ids = _shared_ids(query_ids, gallery_ids)
    truth = build_truth(
        SameLabel(q_labels, g_labels),
        num_queries=len(queries),
        num_gallery=len(gallery),
        query_ids=None if self_match else q_ids,
        gallery_ids=None if self_match else g_ids,
    )
    ranks = relevant_ranks(
        queries, queries if same else gallery, truth, metric=metric, gallery_ids=g_ids, first_only=True, threads=threads
    )
    if not ranks.evaluated.any():
        reasons = ", ".join(f"{reason} {count}" for reason, count in ranks.excluded.items()) or "no queries"
        warnings.warn(
            f"No query can be evaluated ({reasons}): recall@K has no value.", NothingEvaluatedWarning, stacklevel=2
        )
    return {k: mean(recall(ranks, k)) for k in cut_offs}


def _cut_off(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputTypeError(f"K must be a whole number, not {k!r}.")
    if k < 1:
        raise InputError(f"K={k}: recall@K needs a K of at least 1.")
    return int(k)


def _shared_ids(query_ids: Column | None, gallery_ids: Column | None) -> tuple[Ids | None, Ids | None]:
    """Turn ids into whole numbers that keep their order; text ids are numbered alphabetically over both sides."""
    columns = [None if ids is None else np.asarray(ids) for ids in (query_ids, gallery_ids)]
    if any(column is not None and column.dtype.kind not in "iu" for column in columns):
        texts = [None if column is None else [_text(value) for value in column.tolist()] for column in columns]
        number = {text: row for row, text in enumerate(sorted({t for column in texts for t in column or ()}))}
        columns = [None if column is None else np.array([number[t] for t in column], np.int64) for column in texts]
    queries, gallery = columns
    return (
        None if queries is None else as_ids(queries, len(queries), name="query_ids"),
        None if gallery is None else as_ids(gallery, len(gallery), name="gallery_ids"),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InputTypeError(f"Ids must all be whole numbers or all be text; one is {value!r}.")
    return value
