"""Re-ranking, verification, augmentation and fusion as a user runs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card
from lookalike.rank.kreciprocal import KReciprocal
from lookalike.rank.kreciprocal_gallery import rerank_within


def label(seed: int, size: int = 300) -> Image.Image:
    """A printed label: overlapping shapes of many colours, different for every seed."""
    rng = np.random.default_rng(seed)
    picture = Image.new("RGB", (size, size), tuple(int(v) for v in rng.integers(100, 255, 3)))
    pen = ImageDraw.Draw(picture)
    for _ in range(110):
        x, y = (int(v) for v in rng.integers(0, size - 40, 2))
        w, h = (int(v) for v in rng.integers(8, 60, 2))
        shape = pen.rectangle if rng.random() < 0.5 else pen.ellipse
        shape([x, y, x + w, y + h], fill=tuple(int(v) for v in rng.integers(0, 255, 3)))
    return picture


@pytest.fixture
def shop(tmp_path, run_here):
    """Six labels, each flat and turned by a few degrees."""
    for seed in range(6):
        folder = tmp_path / "labels" / f"sku{seed}"
        folder.mkdir(parents=True)
        label(seed).save(folder / "flat.png")
        label(seed).rotate(7, fillcolor=(128, 128, 128)).save(folder / "turned.png")
    assert run_here("index", "shop.la", tmp_path / "labels").code == 0
    return Path("shop.la")


def found(done):
    assert done.code == 0, done.err
    return json.loads(done.out)


class TestVerify:
    @pytest.fixture(autouse=True)
    def opencv(self):
        pytest.importorskip("cv2")

    def test_the_same_label_comes_first_with_its_inliers_and_the_rest_keep_their_order(self, run_here, shop, tmp_path):
        query = tmp_path / "query.png"
        label(4).rotate(-12, fillcolor=(90, 90, 90)).save(query)
        plain = found(run_here("search", shop, query, "-k", 12, "--format", "json"))
        rows = found(run_here("search", shop, query, "-k", 12, "--verify", "--format", "json"))
        assert {Path(row["path"]).parent.name for row in rows[:2]} == {"sku4"}
        assert all(row["inliers"] >= 15 for row in rows[:2])
        assert all(row["inliers"] is None for row in rows[2:])
        assert rows[0]["inliers"] >= rows[1]["inliers"]
        verified = {row["id"] for row in rows[:2]}
        assert [row["id"] for row in rows[2:]] == [row["id"] for row in plain if row["id"] not in verified]
        assert {row["id"]: row["first_rank"] for row in rows} == {row["id"]: row["rank"] for row in plain}
        assert {row["id"]: row["score"] for row in rows} == {row["id"]: row["score"] for row in plain}

    def test_fewer_inliers_than_asked_for_promote_nobody(self, run_here, shop):
        plain = found(run_here("search", shop, "--item", 3, "-k", 11, "--format", "json"))
        rows = found(
            run_here("search", shop, "--item", 3, "-k", 11, "--verify", "--min-inliers", 9999, "--format", "json")
        )
        assert [row["id"] for row in rows] == [row["id"] for row in plain]
        assert all(row["inliers"] is None for row in rows)

    def test_explain_draws_each_pair_and_the_table_shows_the_inliers(self, run_here, shop):
        done = run_here("search", shop, "--item", 1, "-k", 3, "--verify", "--explain", "pairs")
        assert done.code == 0, done.err
        assert "inliers" in done.out.splitlines()[0]
        pictures = sorted(Path("pairs").iterdir())
        assert len(pictures) == 3
        assert pictures[0].name.startswith("query-1-rank-1-item-")
        with Image.open(pictures[0]) as picture:
            assert (picture.format, picture.size) == ("PNG", (600, 300))
            green = (np.asarray(picture) == (0, 170, 60)).all(axis=2).sum()
        assert green > 500

    def test_features_are_kept_in_the_catalogue_and_used_again(self, run_here, shop):
        run_here("search", shop, "--item", 1, "--verify")
        files = {path: path.stat().st_mtime_ns for path in (shop / "local-features").rglob("*.npz")}
        assert len(files) == 12
        run_here("search", shop, "--item", 2, "--verify")
        assert {path: path.stat().st_mtime_ns for path in (shop / "local-features").rglob("*.npz")} == files
        assert run_here("verify", shop).code == 0

    def test_a_lost_picture_is_named_and_costs_nothing_else(self, run_here, shop, tmp_path):
        (tmp_path / "labels" / "sku2" / "flat.png").unlink()
        done = run_here("search", shop, "--item", 1, "-k", 11, "--verify", "--explain", "pairs", "--format", "json")
        assert len(found(done)) == 11
        assert "1 pictures could not be compared" in done.err
        assert "sku2/flat.png: missing" in done.err
        assert len(list(Path("pairs").iterdir())) == 10

    def test_only_pictures_and_items_can_be_verified_and_explain_needs_verify(self, run_here, shop):
        np.save("v.npy", np.ones((1, 1280), np.float32))
        done = run_here("search", shop, "--vector", "v.npy", "--verify")
        assert (done.code, "a query here is a vector" in done.err) == (2, True)
        done = run_here("search", shop, "--item", 1, "--explain", "pairs")
        assert (done.code, "--verify" in done.err) == (2, True)
        assert not Path("pairs").exists()

    def test_re_ranking_comes_before_verification(self, run_here, shop):
        done = run_here(
            "search", shop, "--item", 1, "-k", 11, "--rerank", "k-reciprocal:k1=4,k2=2", "--verify", "--format", "json"
        )
        again = run_here(
            "search", shop, "--item", 1, "-k", 11, "--rerank", "k-reciprocal:k1=4,k2=2", "--format", "json"
        )
        verified = [row["id"] for row in found(done) if row["inliers"]]
        order = [row["id"] for row in found(again) if row["id"] not in verified]
        assert [row["id"] for row in found(done)] == verified + order

    def test_eval_scores_verified_runs_with_the_plain_run_and_milliseconds_beside(self, run_here, shop):
        report = found(run_here("eval", shop, "--verify", "--format", "json"))
        assert report["metrics"]["recall@1"] == 1.0
        assert report["timings"]["verify_ms"] > 0
        assert report["index"]["stages"] == "verified by inliers>=15 over a pool of 100"
        assert set(report["paired"]["recall@1"]) >= {"difference", "interval", "p"}
        assert "milliseconds a query: pool" in run_here("eval", shop, "--verify").out

    def test_without_opencv_the_extra_is_named_with_its_exit_code(self, run_here, shop, monkeypatch):
        monkeypatch.setitem(sys.modules, "cv2", None)
        for verb in (["search", shop, "--item", 1], ["eval", shop]):
            done = run_here(*verb, "--verify")
            assert done.code == 4
            assert "lookalike[geometry]" in done.err


def test_ready_vectors_have_no_pictures_to_verify(run_here):
    pytest.importorskip("cv2")
    np.save("v.npy", np.eye(4, dtype=np.float32))
    Path("l.csv").write_text("label\na\na\nb\nb\n")
    done = run_here("eval", "--vectors", "v.npy", "--labels", "l.csv", "--verify")
    assert (done.code, "no pictures to verify" in done.err) == (2, True)


CARD = Card(name="toy", weights="1", dim=10, pooling="none", normalised=False)


@pytest.fixture
def ready(tmp_path, monkeypatch):
    """A catalogue of sixty ready vectors in clusters."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    groups = rng.integers(6, size=60)
    vectors = (rng.normal(size=(6, 10))[groups] + rng.normal(scale=0.9, size=(60, 10))).astype(np.float32)
    with Catalogue.create("ready.la", encoder=CARD) as catalogue:
        catalogue.upsert([f"{row}.jpg" for row in range(60)], vectors, columns={"label": groups.astype(str).tolist()})
    return "ready.la", vectors


@pytest.fixture
def two(shop, run_here, tmp_path, monkeypatch):
    """The labels by the built-in encoder and by their mean colour."""
    (tmp_path / "mean_colour.py").write_text("def vectors(images): return [i.mean((0, 1)) - 128 for i in images]\n")
    monkeypatch.syspath_prepend(tmp_path)
    done = run_here("index", shop, tmp_path / "labels", "--encoder", "python:mean_colour:vectors")
    assert done.code == 0, done.err
    return shop


def test_an_item_is_re_ranked_against_the_whole_catalogue_whose_graph_is_kept(run_here, ready):
    catalogue, vectors = ready
    args = ["search", catalogue, "--item", 8, "-k", 20, "--pool", 59, "--rerank", "k-reciprocal-graph:k1=8,k2=3",
            "--format", "json"]  # fmt: skip
    done = run_here(*args)
    expected = rerank_within(vectors, 20, settings=KReciprocal(k1=8, k2=3))[7][0] + 1
    assert [row["id"] for row in found(done)] == expected.tolist()
    assert "building the gallery graph of 60 items" in done.err
    again = run_here(*args)
    assert again.out == done.out
    assert "building" not in again.err


def test_fusion_orders_by_the_ranks_of_all_encoders_and_keeps_the_score_of_the_first(run_here, two):
    rows = found(run_here("search", two, "--item", 5, "-k", 11, "--fuse", "rrf", "--format", "json"))
    points: dict[int, float] = {}
    scores = {}
    for name in ("builtin:effnet-lite0", "python:mean_colour:vectors"):
        alone = found(run_here("search", two, "--item", 5, "-k", 11, "--encoder", name, "--format", "json"))
        scores[name] = {row["id"]: row["score"] for row in alone}
        for row in alone:
            points[row["id"]] = points.get(row["id"], 0) + 1 / (60 + row["rank"])
    assert [row["id"] for row in rows] == sorted(points, key=lambda item: (-points[item], item))
    assert [row["score"] for row in rows] == [scores["builtin:effnet-lite0"][row["id"]] for row in rows]
    assert scores["builtin:effnet-lite0"] != scores["python:mean_colour:vectors"]


def test_an_item_only_another_encoder_retrieved_has_no_first_rank(run_here, two):
    rows = found(run_here("search", two, "--item", 5, "-k", 3, "--pool", 3, "--fuse", "rrf", "--format", "json"))
    alone = found(run_here("search", two, "--item", 5, "-k", 3, "--format", "json"))
    rank = {row["id"]: row["rank"] for row in alone}
    assert [row["first_rank"] for row in rows] == [rank.get(row["id"]) for row in rows]
    assert None in [row["first_rank"] for row in rows]


def test_eval_scores_a_fusion_over_whole_lists_as_search_ranks_it(run_here, two):
    report = found(run_here("eval", two, "--fuse", "rrf", "--ks", "1", "--format", "json"))
    assert report["index"]["stages"] == "fused by rrf"
    ranks = []
    for item in range(1, 13):
        rows = found(run_here("search", two, "--item", item, "-k", 11, "--fuse", "rrf", "--format", "json"))
        label = {row["id"]: Path(row["path"]).parent.name for row in rows}
        ranks.append((item, [row["id"] for row in rows], label))
    labels = {item: name for _, _, named in ranks for item, name in named.items()}
    hits = [labels[ids[0]] == labels[item] for item, ids, _ in ranks]
    mrr = [1 / (1 + [labels[other] == labels[item] for other in ids].index(True)) for item, ids, _ in ranks]
    assert report["metrics"]["recall@1"] == pytest.approx(np.mean(hits))
    assert report["metrics"]["mrr"] == pytest.approx(np.mean(mrr))
    both = found(
        run_here("eval", two, "--fuse", "rrf", "--rerank", "k-reciprocal:k1=4,k2=2", "--pool", 5, "--format", "json")
    )
    assert "fused by rrf, re-ranked by k-reciprocal" in both["index"]["stages"]
    alone = run_here("eval", two, "--fuse", "rrf", "--encoder", "python:mean_colour:vectors", "--format", "json")
    assert found(alone)["metrics"]["mrr"] == pytest.approx(np.mean(mrr))  # which encoder is first settles ties only


def test_fused_candidates_can_be_re_ranked(run_here, two):
    args = ["search", two, "--item", 5, "-k", 11, "--fuse", "z-score", "--format", "json"]
    fused = found(run_here(*args))
    again = found(run_here(*args, "--rerank", "k-reciprocal:k1=4,k2=2"))
    assert {row["id"] for row in again} == {row["id"] for row in fused}


def test_fusion_needs_several_encoders_and_queries_they_can_read(run_here, shop, ready):
    done = run_here("search", ready[0], "--item", 1, "--fuse", "rrf")
    assert (done.code, "needs several encoders" in done.err) == (2, True)
    np.save("q.npy", np.ones((1, 10), np.float32))
    done = run_here("search", ready[0], "--vector", "q.npy", "--fuse", "rrf")
    assert (done.code, "--vector has the vectors of one" in done.err) == (2, True)


def test_a_gallery_that_holds_the_queries_is_not_augmented_and_one_that_does_not_is(run_here, ready):
    catalogue, _ = ready
    done = run_here("eval", catalogue, "--augment", "n=3")
    assert done.code == 2
    assert "mixed into its own answers" in done.err
    assert "--holdout" in done.err
    report = found(run_here("eval", catalogue, "--augment", "n=3,alpha=0", "--holdout", 0.3, "--format", "json"))
    assert report["index"]["stages"] == "gallery augmented by n=3,alpha=0.0"
    assert report["timings"]["augment_s"] > 0
    assert report["plain"]["metrics"]["map"] < report["metrics"]["map"]  # clean clusters: this is what it is for
    refused = run_here("eval", catalogue, "--expand", "alpha", "--metric", "l2")
    assert (refused.code, "metric cosine" in refused.err) == (2, True)


def test_tune_rank_tries_the_grid_of_a_bare_name_and_only_what_was_named(run_here, ready):
    catalogue, _ = ready
    args = ["tune-rank", catalogue, "--pool", 20, "--format", "json"]
    trials = found(run_here(*args, "--rerank", "message-passing", "--rerank", "k-reciprocal:k1=6,k2=2"))["trials"]
    names = [trial["setting"] for trial in trials]
    assert len(names) == 9
    assert sum("message-passing" in name for name in names) == 8
    both = found(run_here(*args, "--rerank", "k-reciprocal:k1=6,k2=2", "--expand", "alpha:n=2"))["trials"]
    assert len(both) == 3  # each alone, and one after the other
    held_out = found(run_here(*args, "--holdout", 0.5, "--augment", "grid"))
    assert len(held_out["trials"]) == 10


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--rerank", "k-reciprocl"], "Did you mean 'k-reciprocal'"),
        (["--rerank", "k-reciprocal:k1=0"], "k1=0"),
        (["--expand", "beta"], "alpha"),
        (["--augment", "m=3"], "no setting named 'm'"),
    ],
)
def test_a_misspelt_stage_is_refused_in_one_line(run_here, ready, args, words):
    done = run_here("eval", ready[0], *args)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.splitlines()) == 1
