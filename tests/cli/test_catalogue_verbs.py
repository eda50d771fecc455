"""index, sync, search and the other verbs of a catalogue, as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card


@pytest.fixture
def shop(run_here, photos):
    done = run_here("index", "shop.la", photos, "--format", "json")
    assert done.code == 0, done.err
    return Path("shop.la")


def test_index_reports_the_counts_of_the_contract_and_labels_by_folder(run_here, shop):
    done = run_here("sync", shop, "--format", "json")
    counts = json.loads(done.out)
    assert counts == {
        "added": 0, "updated": 0, "moved": 0, "removed": 0, "unchanged": 12, "failed": [], "items": 12,
        "revision": counts["revision"],
    }  # fmt: skip
    report = json.loads(run_here("eval", shop, "--format", "json").out)
    assert report["metrics"]["recall@1"] == 1.0
    assert report["num_evaluated"] == 12


def test_sync_says_in_one_line_what_changed(run_here, shop, photos):
    (photos / "red" / "0.png").unlink()
    shutil.copy(photos / "red" / "1.png", photos / "red" / "new.png")
    (photos / "blue" / "0.png").rename(photos / "blue" / "moved.png")
    (photos / "green" / "bad.jpg").write_bytes(b"nothing")
    done = run_here("sync", shop)
    assert done.code == 3
    assert done.out == "added 1 · updated 0 · moved 1 · removed 1 · unchanged 10 · failed 1\n"
    listed = done.err.strip().splitlines()[-1].rsplit("listed in ", 1)[1].rstrip(".")
    assert json.loads(Path(listed).read_text())["reason"] == "unknown-format"
    rows = json.loads(
        run_here("search", shop, photos / "red" / "new.png", "--where", "label = 'red'", "--format", "json").out
    )
    assert {row["columns"]["label"] for row in rows} == {"red"}  # the added picture got its folder's label


def test_a_second_index_of_the_same_folder_continues_and_of_another_is_refused(run_here, shop, photos, tmp_path):
    assert run_here("index", shop, photos).code == 0
    other = tmp_path / "other"
    other.mkdir()
    done = run_here("index", shop, other)
    assert done.code == 2
    assert "is a catalogue of" in done.err


def test_an_empty_folder_makes_no_catalogue(run_here):
    Path("empty").mkdir()
    Path("empty/readme.md").touch()
    done = run_here("index", "e.la", "empty")
    assert done.code == 2
    assert "holds no pictures" in done.err
    assert "1 .md" in done.err
    assert not Path("e.la").exists()


def test_strict_stores_nothing_where_a_file_fails(run_here, photos):
    (photos / "red" / "bad.jpg").write_bytes(b"nothing")
    done = run_here("index", "strict.la", photos, "--strict")
    assert done.code == 2
    assert "bad.jpg" in done.err
    assert json.loads(run_here("eval", "strict.la", "--format", "json").err)["error"]


def test_search_prints_one_object_a_candidate_by_the_contract(run_here, shop, photos):
    query = photos / "red" / "0.png"
    done = run_here("search", shop, query, "-k", "3", "--format", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert set(rows[0]) == {
        "query", "rank", "id", "path", "score", "metric", "higher_is_better", "lift", "first_rank", "columns",
    }  # fmt: skip
    assert rows[0]["path"] == "red/0.png"
    assert rows[0]["score"] == pytest.approx(1.0, abs=1e-5)
    assert {row["columns"]["label"] for row in rows} == {"red"}


def test_an_item_is_not_its_own_answer(run_here, shop, photos):
    [first] = json.loads(run_here("search", shop, photos / "red" / "0.png", "-k", "1", "--format", "json").out)
    rows = json.loads(run_here("search", shop, "--item", first["id"], "-k", "12", "--format", "json").out)
    assert len(rows) == 11
    assert first["id"] not in {row["id"] for row in rows}


def test_paths0_ends_each_path_with_nul_whatever_is_in_its_name(run_here, photos):
    odd = photos / "red" / os.fsdecode(b"a\nb \xff.png")
    shutil.copy(photos / "red" / "0.png", odd)
    assert run_here("index", "odd.la", photos).code == 0
    done = run_here("search", "odd.la", odd, "-k", "2", "--format", "paths0")
    paths = done.out.split("\0")
    assert paths[-1] == ""
    assert str(odd) in paths
    as_json = run_here("search", "odd.la", odd, "-k", "2", "--format", "json")
    assert json.loads(as_json.out)[0]["rank"] == 1


def test_plus_and_minus_change_what_is_asked_for(run_here, shop, photos):
    def first(*more: str) -> str:
        query = photos / "red" / "0.png"
        return json.loads(run_here("search", shop, query, *more, "-k", "1", "--format", "json").out)[0]["columns"][
            "label"
        ]

    assert first() == "red"
    assert first("--plus", f"5*{photos / 'blue' / '1.png'}") == "blue"


def test_rerank_keeps_the_candidates_and_says_where_they_were(run_here, shop, photos):
    args = ["search", shop, photos / "red" / "0.png", "-k", "12", "--format", "json"]
    plain, again = (
        json.loads(run_here(*args).out),
        json.loads(run_here(*args, "--rerank", "k-reciprocal:k1=4,k2=2").out),
    )
    assert {row["id"] for row in plain} == {row["id"] for row in again}
    order = [row["id"] for row in plain]
    assert [order.index(row["id"]) + 1 for row in again] == [row["first_rank"] for row in again]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["red shoe"], "cannot be searched with words"),
        (["gone.jpg"], "no picture at 'gone.jpg'"),
        ([], "Name a QUERY"),
        (["--item", "999"], "999"),
        (["--item", "1", "--where", "colour = 'red'"], "colour"),
        (["--item", "1", "--rerank", "k-reciprokal"], "Did you mean 'k-reciprocal'"),
        (["--item", "1", "--encoder", "builtin:other"], "builtin"),
    ],
)
def test_a_search_that_cannot_be_answered_says_why_in_one_line(run_here, shop, args, words):
    done = run_here("search", shop, *args)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_missing_catalogue_is_named(run_here):
    done = run_here("search", "nowhere.la", "--item", "1")
    assert done.code == 2
    assert "nowhere.la" in done.err


def test_settings_of_the_catalogue_come_between_flags_and_defaults(run_here, shop):
    (shop / "lookalike.toml").write_text("[search]\nk = 2\n")
    assert len(json.loads(run_here("search", shop, "--item", "1", "--format", "json").out)) == 2
    assert len(json.loads(run_here("search", shop, "--item", "1", "-k", "4", "--format", "json").out)) == 4
    (shop / "lookalike.toml").write_text("[search]\nkk = 2\n")
    done = run_here("search", shop, "--item", "1")
    assert (done.code, "no setting 'kk'" in done.err) == (2, True)
    (shop / "lookalike.toml").write_text("k = = 2\n")
    assert run_here("search", shop, "--item", "1").code == 2


def test_labels_from_a_table_are_columns_to_filter_and_measure_by(run_here, photos):
    lines = [f"{name}/{n}.png,{name},{name}-{n % 2},{10 * n}" for name in ("red", "green", "blue") for n in range(4)]
    Path("labels.csv").write_text("\n".join(["path,kind,sku,price", *lines, "gone.png,red,x,1"]) + "\n")
    done = run_here("index", "t.la", photos, "--labels", "labels.csv", "--identity", "sku")
    assert done.code == 0
    assert "1 rows" in done.err
    rows = json.loads(
        run_here("search", "t.la", "--item", "1", "--where", "kind = 'red' and price > 10", "--format", "json").out
    )
    assert {row["columns"]["price"] for row in rows} <= {20, 30}
    report = json.loads(
        run_here("eval", "t.la", "--relevance", "sku", "--query-where", "price < 20", "--format", "json").out
    )
    assert (report["num_queries"], report["num_gallery"]) == (6, 12)
    assert report["protocol"]["self_rule"] == "removed by id"


def test_duplicates_lists_levels_and_what_one_could_do_without(run_here, photos):
    shutil.copy(photos / "red" / "0.png", photos / "red" / "copy.png")
    run_here("index", "d.la", photos)
    groups = json.loads(run_here("duplicates", "d.la", "--at-least", "0.9999", "--format", "json").out)["groups"]
    [group] = [group for group in groups if group["level"] == "bytes"]
    assert {item["path"] for item in group["items"]} == {"red/0.png", "red/copy.png"}
    spare = run_here("duplicates", "d.la", "--at-least", "0.9999", "--format", "paths").out.split()
    assert len(spare) == 1
    assert (photos / "red" / "0.png").exists()
    assert (photos / "red" / "copy.png").exists()


def test_memory_prints_the_hand_checked_bytes(run_here):
    done = run_here("memory", "1000000", "512", "--kind", "ivf-pq", "--m", "64", "--nlist", "4000", "--format", "json")
    table = json.loads(done.out)
    assert table["components"] == {"codes": 64_000_000, "ids": 8_000_000, "centroids": 8_192_000, "codebooks": 524_288}
    assert (table["total"], table["exact"]) == (80_716_288, True)
    assert json.loads(run_here("memory", "1e6", "512", "--format", "json").out)["total"] == 2_048_000_000
    refused = run_here("memory", "1000", "64", "--kind", "hnsw", "--nlist", "4")
    assert (refused.code, "nlist" in refused.err) == (2, True)


def test_plan_says_what_fits_sixteen_gigabytes(run_here):
    done = run_here("plan", "--items", "1e8", "--ram", "16GB", "--latency", "50ms", "--no-measure", "--format", "json")
    fitting = [(row["kind"], row["settings"]["refine"]) for row in json.loads(done.out)["rows"] if row["fits"]]
    assert fitting == [("ivf-pq", "none"), ("ivf-pq", "vectors")]
    told = run_here("plan", "--items", "1e8", "--ram", "16GB", "--latency", "50ms", "--no-measure", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(told.out)))
    assert [(row["kind"], row["refine"]) for row in rows if row["fits"] == "yes"] == fitting
    assert run_here("plan", "--items", "1e8", "--ram", "much").code == 2


def test_tune_chooses_and_applies_an_index_by_measurement(run_here):
    vectors = np.random.default_rng(0).normal(size=(2000, 24)).astype(np.float32)
    card = Card(name="ready", weights="0", dim=24, pooling="none", normalised=False)
    with Catalogue.create("ready.la", encoder=card) as catalogue:
        catalogue.upsert([f"{row}.jpg" for row in range(2000)], vectors)
    args = ["tune", "ready.la", "--kinds", "ivf,hnsw", "--recall", "0.9", "--chart", "chart.svg", "--apply"]
    done = run_here(*args, "--format", "json")
    report = json.loads(done.out)
    fields = {"kind", "settings", "overlap", "overlap_interval", "p50_ms", "p95_ms", "bytes", "fits"}
    assert set(report["measured"][0]) >= fields
    assert report["chosen"]["overlap"] >= 0.9
    assert Path("chart.svg").read_text().startswith("<svg")
    with Catalogue.open("ready.la", readonly=True) as catalogue:
        assert catalogue.index_info().kind == report["chosen"]["kind"]
    hopeless = run_here("tune", "ready.la", "--kinds", "ivf", "--ram", "1kB", "--format", "json")
    assert json.loads(hopeless.out)["chosen"] is None


def test_tune_on_too_few_pictures_says_how_many_it_needs(run_here, shop):
    done = run_here("tune", shop)
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1


def test_verify_backup_and_export_leave_with_the_documented_codes(run_here, shop):
    assert run_here("verify", shop).code == 0
    assert run_here("backup", shop, "copy.la").out == "copy.la\n"
    assert run_here("backup", shop, "copy.la").code == 2
    assert run_here("verify", "copy.la").code == 0
    done = run_here("export", shop, "out", "--format", "npy")
    assert [Path(line).name for line in done.out.split()] == ["vectors.npy", "items.csv"]
    assert run_here("export", shop, "out", "--format", "npy").code == 2
