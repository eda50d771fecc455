"""The measured choice: it meets the demands, lies on the front, and says so when nothing does."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from lookalike.errors import InputError, UnknownNameError
from lookalike.index.ann import build
from lookalike.index.chart import as_svg, as_text
from lookalike.index.generated import clustered
from lookalike.index.kinds import KINDS, Flat, settings_for
from lookalike.index.memory import predict
from lookalike.index.neighbours import pair_scores
from lookalike.index.overlap import interval, overlap
from lookalike.index.trial import Demand, Row, held_out_split
from lookalike.index.tune import TuneReport, choose, pareto, tune

N, D = 2_500, 48
X = clustered(N, D)


@pytest.fixture(scope="module")
def report() -> TuneReport:
    return tune(X, recall=0.95)


def row(name: str, overlap: float, p50: float, size: int, *, fits: bool = True) -> Row:
    return Row(name, Flat(), overlap, (overlap, overlap), p50, p50, size, 0.0, fits, ())


def test_the_choice_meets_the_demand_and_lies_on_the_front(report: TuneReport) -> None:
    assert report.chosen is not None
    assert report.chosen.fits
    assert report.chosen.overlap >= 0.95
    assert report.chosen in report.pareto
    assert report.chosen.kind in report.reason
    assert {r.kind for r in report.measured} == set(KINDS)
    assert (report.n, report.d, report.measured_n, report.metric) == (N, D, N - 200, "cosine")


def test_queries_are_held_out_and_seeded() -> None:
    queries, items = held_out_split(X, 10**6, 3)
    assert (len(queries), len(items)) == (200, N - 200)
    known = {bytes(v) for v in items}
    assert not any(bytes(q) in known for q in queries)
    np.testing.assert_array_equal(held_out_split(X, 10**6, 3)[0], queries)
    assert not np.array_equal(held_out_split(X, 10**6, 4)[0], queries)


def test_overlap_is_the_mean_share_of_the_exact_answer(report: TuneReport) -> None:
    queries, items = held_out_split(X, 10**6, 0)
    picked = next(r for r in report.measured if r.kind == "ivf-sq8")
    index = build(items, kind=picked.settings, sample=0)
    shares = []
    for query, (ids, _) in zip(queries, index.search(queries, 10), strict=True):
        right = np.argsort(-pair_scores(query, items, "cosine"), kind="stable")[:10]
        shares.append(np.isin(right, ids).mean())
    assert picked.overlap == pytest.approx(np.mean(shares))
    assert picked.overlap_interval[0] <= picked.overlap <= picked.overlap_interval[1]


def test_bytes_are_the_resident_bytes_of_the_table(report: TuneReport) -> None:
    for measured in report.measured:
        assert measured.bytes == predict(N, D, kind=measured.settings).resident


def test_effort_is_shown_on_both_sides_of_the_demand(report: TuneReport) -> None:
    for kind in ("ivf", "hnsw"):
        values = [r.overlap for r in report.measured if r.kind == kind]
        assert min(values) < 0.95 <= max(values) or len(values) >= 3


def test_json_is_plain_and_every_value_is_tagged(report: TuneReport) -> None:
    plain = json.loads(json.dumps(report.as_dict()))
    assert set(plain) >= {"measured", "chosen", "reason"}
    keys = {"kind", "settings", "overlap", "overlap_interval", "p50_ms", "p95_ms", "bytes", "fits"}
    for measured in plain["measured"]:
        assert set(measured) >= keys
        assert set(measured["tags"].values()) <= {"exact", "measured", "estimated"}
        assert measured["tags"]["overlap"] == "measured"


def test_a_sample_is_measured_and_tagged_as_an_estimate() -> None:
    small = tune(X, recall=0.9, sample_rows=1_000, kinds=["flat", "ivf", "hnsw"])
    assert small.measured_n == 1_000
    for measured in small.measured:
        tags = dict(measured.tags)
        assert (tags["overlap"], tags["p50_ms"], tags["bytes"]) == ("estimated", "estimated", "exact")
        assert measured.bytes == predict(N, D, kind=measured.settings).resident
    cells = [r for r in small.measured if r.kind == "ivf"]
    assert {r.settings.nlist for r in cells} == {N // 39}


def test_nothing_that_fits_is_said_with_the_nearest_values() -> None:
    slow = tune(X, recall=0.9, latency_ms=1e-6, kinds=["flat", "hnsw"])
    assert slow.chosen is None
    assert "none within 1e-06 ms (the fastest" in slow.reason
    big = tune(X, recall=0.9, ram=1_000, kinds=["flat", "ivf-sq8"])
    assert big.chosen is None
    assert "none within 1,000 bytes (the smallest, ivf-sq8, needs" in big.reason
    lossy = tune(X, recall=0.999, kinds=["ivf-pq"])
    assert lossy.chosen is None
    assert lossy.reason.startswith("No setting reaches an overlap of 0.999: the best is ivf-pq with 0.")


def test_a_memory_limit_brings_in_codes_refined_with_the_mapped_vectors() -> None:
    limit = 150 * N
    found = tune(X, recall=0.9, ram=limit)
    assert found.chosen is not None
    assert found.chosen.bytes <= limit
    assert {getattr(r.settings, "refine", None) for r in found.measured} >= {"vectors", "sq8"}


def test_kinds_that_cannot_be_trained_are_left_out() -> None:
    found = tune(X[:200], recall=0.9, kinds=["ivf-pq", "hnsw"])
    assert {r.kind for r in found.measured} == {"hnsw"}
    with pytest.raises(InputError, match="19 vectors are too few"):
        tune(X[:19])


def test_what_is_scanned_anyway_is_only_measured_flat() -> None:
    found = tune(X[:1_100])  # 110 held out, 990 left
    assert [r.kind for r in found.measured] == ["flat"]
    assert found.chosen is found.measured[0]


def test_impossible_demands_are_refused() -> None:
    with pytest.raises(InputError, match=r"recall=1\.2 is not in"):
        tune(X, recall=1.2)
    with pytest.raises(InputError, match="ram=0"):
        tune(X, ram=0)
    with pytest.raises(UnknownNameError, match="Did you mean 'hnsw'"):
        tune(X, kinds=["hsnw"])


def test_the_cheapest_of_the_fast_enough_wins() -> None:
    rows = [row("flat", 1.0, 20.0, 10), row("hnsw", 0.97, 1.0, 900), row("ivf-sq8", 0.96, 1.9, 400)]
    assert choose(rows, Demand())[0] is rows[2]  # flat is smaller, but more than twice as slow as the fastest
    assert choose(rows[:1], Demand())[0] is rows[0]
    rows[2] = row("ivf-sq8", 0.96, 1.9, 400, fits=False)
    assert choose(rows, Demand())[0] is rows[1]
    assert choose([], Demand()) == (None, "No kind of index can be built from these vectors.")


def test_the_front_is_what_nothing_beats() -> None:
    a, b, c = row("flat", 1.0, 9.0, 9), row("hnsw", 0.9, 1.0, 9), row("ivf", 0.9, 2.0, 9)
    assert pareto([a, b, c]) == (a, b)
    twin = row("ivf", 0.9, 1.0, 9)
    assert pareto([a, b, twin]) == (a, b, twin)  # equals beat neither
    assert pareto([]) == ()


def test_the_same_seed_measures_the_same_overlap() -> None:
    kinds = ["ivf-pqfs", "hnsw-sq8"]
    first, second = (tune(X, kinds=kinds, seed=5) for _ in range(2))
    assert [(r.settings, r.overlap, r.overlap_interval) for r in first.measured] == [
        (r.settings, r.overlap, r.overlap_interval) for r in second.measured
    ]


def test_lent_cells_make_the_same_index_as_trained_ones() -> None:
    cells = build(X, kind="ivf", sample=0)
    for kind in ("ivf-sq8", "ivf-pqfs"):
        own, lent = build(X, kind=kind, sample=0), build(X, kind=kind, sample=0, like=cells)
        a, b = own.search(X[:50], 10), lent.search(X[:50], 10)
        np.testing.assert_array_equal(a.ids, b.ids)
    assert build(X, kind="hnsw", sample=0, like=cells).kind == "hnsw"
    assert build(X, kind=settings_for("ivf", {"nlist": 7}), sample=0, like=cells).settings.nlist == 7


def test_the_interval_does_not_collapse_and_covers_the_mean() -> None:
    assert interval(np.ones(200)) == pytest.approx((0.98116, 1.0), abs=1e-4)  # Wilson, 200 of 200
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(200):
        low, high = interval(rng.binomial(10, 0.9, 100) / 10, seed=trial)
        hits += low <= 0.9 <= high
    assert 180 <= hits <= 200  # 95 % of 200 is 190
    index = build(X[:100], kind="flat")
    with pytest.raises(InputError, match="1 answers cannot be compared with 2"):
        overlap(index.search(X[:1], 3), index.search(X[:2], 3), 3)


def test_the_text_plot_shows_the_choice_the_demand_and_every_kind(report: TuneReport) -> None:
    text = as_text(report)
    assert max(map(len, text.splitlines())) <= 160
    assert "* chosen" in text
    assert text.count("*") == 2  # in the plot and in the legend
    for kind in KINDS:
        assert kind in text
    assert "demand (0.95)" in text


def test_the_svg_is_well_formed_and_labels_every_point(report: TuneReport) -> None:
    root = ElementTree.fromstring(as_svg(report))
    space = "{http://www.w3.org/2000/svg}"
    labels = [t.text for t in root.iter(f"{space}title")]
    assert len(labels) == 1 + len(report.measured)
    assert any(f"{report.chosen.bytes:,} bytes" in label for label in labels)
    for circle in root.iter(f"{space}circle"):
        assert 0 <= float(circle.get("cx")) <= 720
        assert 0 <= float(circle.get("cy")) <= 420
