"""Agreement with independent implementations, where they are installed."""

from __future__ import annotations

import numpy as np
import pytest

from lookalike.evaluate.metrics import average_precision, mean, per_query, summarise
from lookalike.evaluate.ranks import relevant_ranks
from lookalike.evaluate.relevance import CameraRule, SameLabel, build_truth
from lookalike.index.exact import topk

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, not ours


def case(seed: int, *, ties: bool):
    """Queries and gallery without self-matches; with ties, most scores are equal to some other one."""
    rng = np.random.default_rng(seed)
    if ties:
        gallery = rng.integers(-1, 2, (120, 4)).astype(np.float32)
        queries = rng.integers(-1, 2, (30, 4)).astype(np.float32)
    else:
        gallery = rng.standard_normal((120, 16)).astype(np.float32)
        queries = rng.standard_normal((30, 16)).astype(np.float32)
    return queries, gallery, rng.integers(0, 12, 30), rng.integers(0, 12, 120)


def ranks_of(queries, gallery, q_labels, g_labels):
    truth = build_truth(SameLabel(q_labels, g_labels), num_queries=len(queries), num_gallery=len(gallery))
    return relevant_ranks(queries, gallery, truth, metric="ip")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ties", [False, True])
def test_pytorch_metric_learning_gives_the_same_map_at_r_r_precision_and_map(seed, ties):
    torch = pytest.importorskip("torch")
    pytest.importorskip("lookalike.train.metric_learning")  # first, so that faiss stays as it is
    accuracy = pytest.importorskip("pytorch_metric_learning.utils.accuracy_calculator")
    queries, gallery, q_labels, g_labels = case(seed, ties=ties)

    def neighbours(query, k, reference, reference_is_query):  # ours, so that ties are ordered alike
        found = topk(query.numpy(), reference.numpy(), k, metric="ip")
        shape = (len(query), k)
        return torch.from_numpy(found.scores.reshape(shape)), torch.from_numpy(found.ids.reshape(shape))

    names = ("precision_at_1", "r_precision", "mean_average_precision_at_r", "mean_average_precision")
    theirs = accuracy.AccuracyCalculator(include=names, k=None, device=torch.device("cpu"), knn_func=neighbours)
    want = theirs.get_accuracy(*map(torch.from_numpy, (queries, q_labels, gallery, g_labels)))
    ours = summarise(ranks_of(queries, gallery, q_labels, g_labels), ["recall@1", "r-precision", "map@r", "map"])
    assert list(ours.values()) == pytest.approx([want[name] for name in names], abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ties", [False, True])
def test_ranx_gives_the_same_map_ndcg_mrr_and_precision(seed, ties):
    ranx = pytest.importorskip("ranx")
    queries, gallery, q_labels, g_labels = case(seed, ties=ties)
    ranks = ranks_of(queries, gallery, q_labels, g_labels)
    found = topk(queries, gallery, len(gallery), metric="ip")
    kept = np.flatnonzero(ranks.evaluated)
    qrels = {str(q): {str(g): 1 for g in np.flatnonzero(g_labels == q_labels[q])} for q in kept}
    run = {str(q): {str(g): 1.0 / place for place, g in enumerate(found[int(q)][0], start=1)} for q in kept}
    names = {
        "map": "map",
        "map@10/all": "map@10",
        "ndcg@10": "ndcg@10",
        "mrr": "mrr",
        "precision@5": "precision@5",
        "coverage@5": "recall@5",
        "recall@5": "hit_rate@5",
        "r-precision": "r-precision",
    }
    want = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), list(names.values()))
    ours = summarise(ranks, list(names))
    assert list(ours.values()) == pytest.approx([want[name] for name in names.values()], abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_scikit_learn_gives_the_same_average_precision(seed):
    sklearn = pytest.importorskip("sklearn.metrics")
    queries, gallery, q_labels, g_labels = case(seed, ties=False)
    values = average_precision(ranks_of(queries, gallery, q_labels, g_labels))
    for query in np.flatnonzero(~np.isnan(values)):
        scores = gallery.astype(np.float64) @ queries[query].astype(np.float64)
        want = sklearn.average_precision_score(g_labels == q_labels[query], scores)
        assert values[query] == pytest.approx(want, abs=1e-9)


def market1501(scores, q_ids, g_ids, q_cameras, g_cameras):
    """The published protocol, transcribed: drop same identity in same camera, then AP and first hit of each query.

    Images of identity 0 are distractors; images of identity -1 are junk and are dropped too.
    """
    aps, firsts = [], []
    for q in range(len(q_ids)):
        order = np.argsort(-scores[q], kind="stable")
        junk = ((g_ids == q_ids[q]) & (g_cameras == q_cameras[q])) | (g_ids == -1)
        order = order[~junk[order]]
        hits = g_ids[order] == q_ids[q]
        if not hits.any():
            continue
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        aps.append(precision[hits].sum() / hits.sum())
        firsts.append(int(np.flatnonzero(hits)[0]) + 1)
    return float(np.mean(aps)), [float(np.mean([first <= k for first in firsts])) for k in (1, 5, 10)]


@pytest.mark.parametrize("ties", [False, True])
def test_a_literal_transcription_of_the_market_1501_protocol_gives_the_same_map_and_cmc(ties):
    queries, gallery, q_ids, g_ids = case(7, ties=ties)
    rng = np.random.default_rng(7)
    q_ids, g_ids = q_ids + 1, g_ids - 1  # identities -1 (junk), 0 (distractor), 1 ...
    q_cameras, g_cameras = rng.integers(0, 3, 30), rng.integers(0, 3, 120)
    scores = queries.astype(np.float64) @ gallery.astype(np.float64).T
    want_map, want_cmc = market1501(scores, q_ids, g_ids, q_cameras, g_cameras)
    kept = g_ids >= 0  # junk never enters the gallery
    truth = build_truth(
        SameLabel(q_ids, g_ids[kept], name="identity"),
        num_queries=30,
        num_gallery=int(kept.sum()),
        camera=CameraRule(q_cameras, g_cameras[kept]),
    )
    ranks = relevant_ranks(queries, gallery[kept], truth, metric="ip")
    assert mean(per_query(ranks, "map")) == pytest.approx(want_map, abs=1e-9)
    assert [mean(per_query(ranks, f"cmc@{k}")) for k in (1, 5, 10)] == pytest.approx(want_cmc, abs=1e-12)
