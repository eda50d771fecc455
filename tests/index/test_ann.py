"""Laws that every kind of index keeps."""

from __future__ import annotations

import numpy as np
import pytest

from lookalike.errors import InputError, InputTypeError, NonFiniteError, ShapeError, UnknownNameError
from lookalike.index.ann import AnnIndex, build
from lookalike.index.generated import clustered
from lookalike.index.kinds import KINDS, settings_for
from lookalike.index.neighbours import METRICS, Neighbours, pair_scores

N, D = 3_000, 32
EVERY = clustered(N + 40, D)
X, Q = EVERY[:N], EVERY[N:]
IDS = np.random.default_rng(5).permutation(10 * N)[:N].astype(np.int64) - 7  # unordered, with gaps, some negative
SMALL = {"nlist": 30, "nprobe": 12}
SETTINGS = {
    kind: settings_for(kind, {} if kind == "flat" else {"ef_search": 48} if kind.startswith("hnsw") else SMALL)
    for kind in KINDS
}
_BUILT: dict[tuple[str, str], AnnIndex] = {}


def fresh_index(kind: str, metric: str = "cosine") -> AnnIndex:
    return build(X, IDS, kind=SETTINGS[kind], metric=metric, seed=3, sample=0)


def built(kind: str, metric: str = "cosine") -> AnnIndex:
    """The same index for every test that only searches."""
    if (kind, metric) not in _BUILT:
        _BUILT[kind, metric] = fresh_index(kind, metric)
    return _BUILT[kind, metric]


def oracle(query: np.ndarray, items: np.ndarray, ids: np.ndarray, k: int, metric: str) -> tuple[list, list]:
    """Score every pair, sort by score and then by id."""
    scores = pair_scores(query, items, metric)
    order = sorted(range(len(ids)), key=lambda i: (scores[i] if metric == "l2" else -scores[i], ids[i]))[:k]
    return [int(ids[i]) for i in order], [float(scores[i]) for i in order]


def share(found: Neighbours, exact: list[list[int]]) -> float:
    return float(np.mean([np.isin(right, ids).mean() for (ids, _), right in zip(found, exact, strict=True)]))


def same(a: Neighbours, b: Neighbours) -> bool:
    return bool(
        np.array_equal(a.ids, b.ids) and np.array_equal(a.scores, b.scores) and np.array_equal(a.offsets, b.offsets)
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_original_pairs_to_the_bit(kind: str, metric: str) -> None:
    place = {int(i): row for row, i in enumerate(IDS)}
    for query, (ids, scores) in zip(Q, built(kind, metric).search(Q, 10), strict=True):
        rows = [place[int(i)] for i in ids]
        assert scores.tolist() == pair_scores(query, X[rows], metric).tolist()
        key = list(zip(scores if metric == "l2" else -scores, ids, strict=True))
        assert key == sorted(key)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_overlap_with_exact_search_is_high_and_total_for_flat(kind: str, metric: str) -> None:
    exact = [oracle(q, X, IDS, 10, metric)[0] for q in Q]
    found = share(built(kind, metric).search(Q, 10), exact)
    floor = {"flat": 1.0, "ivf-pq": 0.45, "ivf-rabitq": 0.9}.get(kind, 0.95)
    assert found >= floor, found


@pytest.mark.parametrize("metric", METRICS)
def test_flat_is_the_oracle_to_the_bit(metric: str) -> None:
    for query, (ids, scores) in zip(Q, built("flat", metric).search(Q, 25), strict=True):
        assert (ids.tolist(), scores.tolist()) == oracle(query, X, IDS, 25, metric)


@pytest.mark.parametrize("kind", KINDS)
def test_k_is_honoured_up_to_everything_there_is(kind: str) -> None:
    for k in (1, 7, 500, N, N + 50):
        found = built(kind).search(Q[:3], k)
        assert found.lengths.tolist() == [min(k, N)] * 3
        assert set(found.ids.tolist()) <= set(IDS.tolist())
        assert np.abs(found.scores).max() <= 1.0001
    assert sorted(built(kind).search(Q[:1], N + 50)[0][0].tolist()) == sorted(IDS.tolist())
    assert built(kind).why_fewer(N + 50) == f"{N + 50} neighbours were asked for and the index holds {N}."


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [0, 1, 5, 300, 1_600, 2_900])
def test_a_filter_returns_k_rows_whenever_k_exist(kind: str, left: int) -> None:
    allowed = np.random.default_rng(left).choice(IDS, left, replace=False)
    found = built(kind).search(Q, 20, allowed=allowed)
    assert found.lengths.tolist() == [min(20, left)] * len(Q)
    assert set(found.ids.tolist()) <= set(allowed.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_far_from_the_query_still_returns_k_rows(kind: str) -> None:
    for query in Q[:4]:
        order = np.argsort(pair_scores(query, X, "cosine"))
        allowed = IDS[order[:1_700]]  # the worst matches only: none of them in a cell or a beam near the query
        ids, _ = built(kind).search(query[None], 20, allowed=allowed)[0]
        assert len(ids) == 20
        assert np.isin(ids, allowed).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_filter_is_answered_exactly(kind: str) -> None:
    allowed = IDS[::5]
    found = built(kind).search(Q, 10, allowed=allowed)
    for query, (ids, scores) in zip(Q, found, strict=True):
        assert (ids.tolist(), scores.tolist()) == oracle(query, X[::5], allowed, 10, "cosine")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share_left", [0.9, 0.5])
def test_a_filter_costs_no_overlap(kind: str, share_left: float) -> None:
    keep = np.random.default_rng(8).random(N) < share_left
    exact = [oracle(q, X[keep], IDS[keep], 10, "cosine")[0] for q in Q]
    plain = [oracle(q, X, IDS, 10, "cosine")[0] for q in Q]
    filtered = share(built(kind).search(Q, 10, allowed=IDS[keep]), exact)
    assert filtered >= share(built(kind).search(Q, 10), plain) - 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_the_excluded_are_left_out_and_their_places_filled(kind: str) -> None:
    index = built(kind)
    plain = index.search(X[:30], 11)
    own = index.search(X[:30], 10, exclude=[[i] for i in IDS[:30]])
    assert own.lengths.tolist() == [10] * 30
    for i, (ids, _) in enumerate(own):
        assert IDS[i] not in ids
        if kind != "ivf-pq":
            assert ids.tolist() == [x for x in plain[i][0] if x != IDS[i]][:10]
    first = index.search(X[:2], N, exclude=[IDS[:5], []])
    assert first.lengths.tolist() == [N - 5, N]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_scores_come_back_in_id_order_even_across_the_cut(kind: str) -> None:
    copies = np.concatenate([X, np.repeat(X[:1], 40, axis=0)])
    ids = np.concatenate([IDS + 100, np.arange(40)[::-1] * 2 - 90])
    index = build(copies, ids, kind=SETTINGS[kind], seed=3, sample=0)
    twins = sorted([*(np.arange(40) * 2 - 90).tolist(), int(IDS[0]) + 100])
    for k in (1, 5, 39):
        assert index.search(X[:1], k)[0][0].tolist() == twins[:k]


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_k_changes_no_later_search(kind: str) -> None:
    index = built(kind)
    before = index.search(Q, 5)
    index.search(Q, 1_500)
    index.search(Q, 5, allowed=IDS[:1_700])
    if kind != "flat":
        wide = {"ef_search": 500} if kind.startswith("hnsw") else {"nlist": 30, "nprobe": 30}
        index.search(Q, 5, settings=settings_for(kind, wide))
    assert same(index.search(Q, 5), before)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_answers_at_any_thread_count(kind: str) -> None:
    many = np.concatenate([Q] * 14)  # three chunks
    once = fresh_index(kind).search(many, 10, threads=1)
    again = fresh_index(kind).search(many, 10, threads=2)
    assert same(once, again)


@pytest.mark.parametrize("kind", KINDS)
def test_deletes_updates_and_fresh_items_are_seen_at_once(kind: str) -> None:
    index = fresh_index(kind)
    best = int(index.search(Q[:1], 1)[0][0][0])
    assert index.remove([best, 10**9]) == 1
    assert len(index) == N - 1
    assert best not in index.search(Q[:1], N)[0][0]
    index.add(-Q[:1], [best])  # comes back as something else
    assert index.search(Q[:1], N)[0][0][-1] == best
    assert index.search(-Q[:1], 1)[0][0].tolist() == [best]
    index.add(Q[:1], [best])  # replaced again, while still in the tail
    ids, scores = index.search(Q[:1], 1)[0]
    assert (ids.tolist(), round(scores[0], 6)) == ([best], 1.0)
    assert len(index) == N
    np.testing.assert_array_equal(index.vectors_of([best])[0], Q[0])
    np.testing.assert_array_equal(index.ids, np.sort(IDS))


@pytest.mark.parametrize("kind", KINDS)
def test_k_is_honoured_when_the_nearest_were_all_deleted(kind: str) -> None:
    index = fresh_index(kind)
    gone = index.search(Q[:1], 1_000)[0][0]
    assert index.remove(gone) == 1_000
    ids, _ = index.search(Q[:1], 30)[0]
    assert len(ids) == 30
    assert not np.isin(ids, gone).any()


@pytest.mark.parametrize("kind", ["flat", "ivf-sq8", "hnsw"])
def test_an_emptied_index_answers_nothing(kind: str) -> None:
    index = fresh_index(kind)
    index.remove(IDS)
    assert len(index) == 0
    assert index.search(Q, 5).lengths.tolist() == [0] * len(Q)


def test_the_index_asks_to_be_rebuilt_and_a_rebuild_keeps_what_lives() -> None:
    index = fresh_index("ivf")
    assert index.needs_rebuild is None
    index.add(clustered(1_061, D, seed=4), 10**6 + np.arange(1_061))
    assert index.needs_rebuild == "1,061 fresh vectors are searched one by one; 1,060 are allowed at this size."
    index.remove(IDS[:601])
    new = index.rebuilt()
    assert (len(new), new.needs_rebuild, len(new.changes.ids)) == (N + 1_061 - 601, None, 0)
    np.testing.assert_array_equal(new.ids, index.ids)
    dying = fresh_index("hnsw")
    dying.remove(IDS[:601])
    assert dying.needs_rebuild == "601 of 3,000 indexed rows are dead; 20% are allowed."


@pytest.mark.parametrize("kind", KINDS)
def test_float64_and_strided_arrays_are_the_same_index(kind: str) -> None:
    wide = np.zeros((N, 2 * D))
    wide[:, ::2] = X
    index = build(wide[:, ::2], IDS, kind=SETTINGS[kind], seed=3, sample=0)
    assert same(index.search(Q.astype(np.float64), 10), built(kind).search(Q, 10))


@pytest.mark.parametrize("kind", KINDS)
def test_cosine_ignores_length_on_both_sides(kind: str) -> None:
    lengths = np.random.default_rng(1).uniform(0.01, 100, (N, 1)).astype(np.float32)
    index = build(X * lengths, IDS, kind=SETTINGS[kind], seed=3, sample=0)
    exact = [oracle(q, X * lengths, IDS, 10, "cosine")[0] for q in Q]
    assert share(index.search(7 * Q, 10), exact) >= (0.45 if kind == "ivf-pq" else 0.9)


@pytest.mark.parametrize("kind", ["ivf-pq", "ivf-pqfs", "ivf-rabitq"])
@pytest.mark.parametrize("metric", METRICS)
def test_refining_lifts_overlap_with_codes_or_with_the_vectors_themselves(kind: str, metric: str) -> None:
    exact = [oracle(q, X, IDS, 10, metric)[0] for q in Q]
    shares = {}
    for refine in ("none", "sq8", "vectors"):
        settings = settings_for(kind, {**SMALL, "refine": refine, "k_factor": 30})
        shares[refine] = share(build(X, IDS, kind=settings, metric=metric, sample=0).search(Q, 10), exact)
    assert shares["none"] < shares["sq8"]
    assert shares["none"] < shares["vectors"]
    assert min(shares["sq8"], shares["vectors"]) >= 0.95


def test_refining_with_vectors_of_any_length_ranks_by_cosine() -> None:
    lengths = np.random.default_rng(1).uniform(0.01, 100, (N, 1)).astype(np.float32)
    settings = settings_for("ivf-pqfs", {**SMALL, "refine": "vectors", "k_factor": 30})
    index = build(X * lengths, IDS, kind=settings, sample=0)
    exact = [oracle(q, X * lengths, IDS, 10, "cosine")[0] for q in Q]
    assert share(index.search(Q, 10), exact) >= 0.95


def test_a_falling_spectrum_is_rotated_and_a_level_one_is_not() -> None:
    falling = np.random.default_rng(0).standard_normal((N + 40, D)) * 0.8 ** np.arange(D)
    falling = falling.astype(np.float32)
    items, queries = falling[:N], falling[N:]
    exact = [oracle(q, items, np.arange(N), 10, "l2")[0] for q in queries]
    shares = {}
    for rotate in (None, False, True):
        settings = settings_for("ivf-pqfs", {"nlist": 1, "nprobe": 1, "m": 16, "refine": "none", "rotate": rotate})
        index = build(items, kind=settings, metric="l2", sample=0)
        assert index.structure.rotated == (rotate is not False)
        shares[rotate] = share(index.search(queries, 10), exact)
    assert shares[None] == shares[True] > shares[False] + 0.05, shares
    assert not build(X, kind="ivf-pqfs", sample=0).structure.rotated
    assert not build(items, kind=settings_for("ivf", SMALL), sample=0).structure.rotated  # nothing is compressed


def test_no_query_gets_no_answer() -> None:
    for kind in KINDS:
        assert len(built(kind).search(np.empty((0, D), dtype=np.float32), 5)) == 0


def test_one_search_may_set_its_own_effort() -> None:
    exact = [oracle(q, X, IDS, 10, "cosine")[0] for q in Q]
    for kind, little, much in (
        ("ivf", {"nprobe": 1}, {"nprobe": 10_000}),
        ("hnsw", {"ef_search": 10}, {"ef_search": 600}),
        ("ivf-pqfs", {"nprobe": 30, "k_factor": 1}, {"nprobe": 30, "k_factor": 60}),
    ):
        low = share(built(kind).search(Q, 10, settings=settings_for(kind, little)), exact)
        high = share(built(kind).search(Q, 10, settings=settings_for(kind, much)), exact)
        assert low < high
        assert high >= 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_k_may_be_any_whole_number_type(kind: str) -> None:
    index = build(np.random.default_rng(0).normal(size=(300, 16)), kind=kind)
    query = np.ones((1, 16))
    assert index.search(query, np.int64(3))[0][0].tolist() == index.search(query, 3)[0][0].tolist()


def test_bad_input_is_refused_by_name() -> None:
    index = built("ivf")
    with pytest.raises(ShapeError, match="queries has 5 columns where 32 were expected"):
        index.search(np.zeros((2, 5)), 3)
    with pytest.raises(NonFiniteError, match="queries holds NaN or infinity in row 1"):
        index.search(np.array([Q[0], np.full(D, np.nan)]), 3)
    with pytest.raises(NonFiniteError, match="length zero in row 0"):
        index.search(np.zeros((1, D)), 3)
    with pytest.raises(InputError, match="k=0"):
        index.search(Q, 0)
    with pytest.raises(InputTypeError, match=r"k must be a whole number, not 2\.5"):
        index.search(Q, 2.5)
    with pytest.raises(ShapeError, match="exclude has 1 entries for 40 queries"):
        index.search(Q, 3, exclude=[[1]])
    with pytest.raises(InputTypeError, match="allowed must be ids"):
        index.search(Q, 3, allowed=["a"])
    with pytest.raises(InputError, match="settings of hnsw were given to a search in ivf"):
        index.search(Q, 3, settings=settings_for("hnsw"))
    with pytest.raises(NonFiniteError, match="length zero in row 1"):
        build(np.array([[1, 0], [0, 0]]), kind="flat")
    with pytest.raises(InputError, match="an id twice"):
        build(X, np.zeros(N, dtype=int))
    with pytest.raises(UnknownNameError, match="Did you mean 'cosine'"):
        build(X, metric="cosin")
    with pytest.raises(InputError, match="id 999999999 is not in the index"):
        index.vectors_of([999_999_999])


def test_a_refused_add_changes_nothing() -> None:
    index = fresh_index("ivf")
    with pytest.raises(NonFiniteError):
        index.add(np.zeros((1, D)), [int(IDS[0])])
    assert len(index) == N
    np.testing.assert_array_equal(index.vectors_of(IDS[:1]), X[:1])


def test_few_points_shrink_the_cells_with_a_notice() -> None:
    index = build(X[:100], kind=settings_for("ivf", {"nlist": 50}))
    assert index.notices == ("50 cells need 1,950 vectors to train (39 each) and there are 100: 2 cells are used.",)
    assert index.settings.nlist == 2
    assert build(X, kind="ivf").settings.nprobe == 8  # never silently 1


def test_every_approximate_build_carries_its_overlap_with_an_interval() -> None:
    for kind in KINDS:
        measured = build(X, IDS, kind=SETTINGS[kind], seed=3).overlap
        if kind == "flat":
            assert measured is None
            continue
        assert measured.queries == 200
        assert measured.k == 10
        assert 0 < measured.low <= measured.value <= measured.high <= 1
        assert measured.low < measured.high


def test_an_empty_flat_index_fills_through_its_tail() -> None:
    index = build(np.empty((0, D), dtype=np.float32), kind="flat")
    assert index.search(Q, 3).lengths.sum() == 0
    index.add(X[:2], [5, 4])
    assert index.search(X[:1], 3)[0][0].tolist() == [5, 4]
    with pytest.raises(InputError, match="at least one vector"):
        build(np.empty((0, D), dtype=np.float32), kind="hnsw")


def test_one_vector_is_an_index_of_every_kind_that_needs_no_training() -> None:
    for kind in ("flat", "ivf", "ivf-sq8", "hnsw", "hnsw-sq8", "ivf-rabitq"):
        assert build(X[:1], [42], kind=kind).search(X[:1], 5)[0][0].tolist() == [42]
