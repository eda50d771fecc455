"""What a stranger does to a catalogue: odd names, wrong folders, derived files deleted, a second encoder."""

from __future__ import annotations

import csv
import io
import os
import shutil
from pathlib import Path

import pytest

from lookalike.catalogue.catalogue import Catalogue


@pytest.fixture
def shop(run_here, photos):
    done = run_here("index", "shop.la", photos)
    assert done.code == 0, done.err
    return Path("shop.la")


def test_a_name_with_a_newline_or_an_escape_keeps_its_row_of_the_table(run_here, photos):
    (photos / "red" / "0.png").rename(photos / "red" / "two\nlines.png")
    (photos / "red" / "1.png").rename(photos / "red" / "\x1b[31m.png")
    assert run_here("index", "shop.la", photos).code == 0
    table = run_here("search", "shop.la", photos / "red" / "2.png", "-k", 12).out.splitlines()
    assert len(table) == 1 + 12
    assert any(r"red/two\nlines.png" in row for row in table)
    assert any(r"red/\x1b[31m.png" in row for row in table)
    rows = csv.DictReader(
        io.StringIO(run_here("search", "shop.la", photos / "red" / "2.png", "-k", 12, "--format", "csv").out)
    )
    assert "red/two\nlines.png" in {row["path"] for row in rows}  # a program gets the name itself


def test_a_class_folder_whose_name_is_not_utf8_is_indexed_and_labelled(run_here, photos):
    try:
        (photos / "red").rename(photos / os.fsdecode(b"caf\xe9"))
    except OSError:
        pytest.skip("the file system does not take this name")
    done = run_here("index", "shop.la", photos)
    assert (done.code, done.out) == (0, "added 12 · updated 0 · moved 0 · removed 0 · unchanged 0 · failed 0\n")
    with Catalogue.open("shop.la", readonly=True) as shop:
        assert sorted(set(shop.column("label"))) == ["blue", r"caf\xe9", "green"]
        assert len(shop.ids(where=r"label = 'caf\xe9'")) == 4


def test_labels_a_killed_index_did_not_reach_are_set_by_the_next_sync(run_here, shop):
    with Catalogue.open(shop) as opened:
        opened.drop_column("label")  # what a kill between the last chunk and the labels leaves
    assert run_here("sync", shop).code == 0
    with Catalogue.open(shop, readonly=True) as opened:
        assert opened.column("label") == ["blue"] * 4 + ["green"] * 4 + ["red"] * 4
        revision = opened.revision
    assert run_here("sync", shop).code == 0
    with Catalogue.open(shop, readonly=True) as opened:
        assert opened.revision == revision  # nothing to label: nothing is written


def test_a_wrong_root_is_refused_and_the_catalogue_keeps_its_own(run_here, shop, photos, tmp_path):
    other = tmp_path / "holiday"
    shutil.copytree(photos / "red", other / "beach")
    done = run_here("sync", shop, "--root", other)
    assert done.code == 2
    assert "None of the 12 pictures of this catalogue is below" in done.err
    assert "--allow-empty" in done.err
    assert run_here("sync", shop).out == "added 0 · updated 0 · moved 0 · removed 0 · unchanged 12 · failed 0\n"


def test_index_adds_a_second_encoder_beside_the_first(run_here, shop, photos, tmp_path, monkeypatch):
    (tmp_path / "mean_colour.py").write_text("def vectors(images): return [i.mean((0, 1)) for i in images]\n")
    monkeypatch.syspath_prepend(tmp_path)
    second = "python:mean_colour:vectors"
    refused = run_here("search", shop, "--item", 1, "--encoder", second)
    assert refused.code == 2
    assert "lookalike index --encoder" in refused.err
    done = run_here("index", shop, photos, "--encoder", second)
    assert (done.code, done.out) == (0, "added 12 · updated 0 · moved 0 · removed 0 · unchanged 0 · failed 0\n")
    again = run_here("index", shop, photos, "--encoder", second)
    assert "unchanged 12" in again.out
    with Catalogue.open(shop, readonly=True) as opened:
        assert [(card.name, card.dim) for card in opened.cards()] == [("builtin:effnet-lite0", 1280), (second, 3)]
    assert run_here("search", shop, "--item", 1, "--encoder", second, "--format", "paths").code == 0
    assert "unchanged 12" in run_here("index", shop, photos).out  # none named: the encoder it was made with


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        (None, [], "There is no file"),
        ("path;label\nred/0.png;a\nred/0.png;b\n", [], "stands on line 2 and on line 3"),
        ("path,sku\nred/0.png,7\n", ["--identity", "skus"], "Did you mean 'sku'?"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused_before_anything_is_embedded(
    run_here, photos, tmp_path, table, options, said
):
    if table is not None:
        (tmp_path / "labels.csv").write_text(table)
    done = run_here("index", "shop.la", photos, "--labels", "labels.csv", *options)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not Path("shop.la").exists()


def test_a_table_of_any_name_is_found_again_by_the_next_sync(run_here, photos, tmp_path):
    table = tmp_path / 'my "labels" \\ 😀.csv'
    table.write_text("path,sku\nred/0.png,7\n")
    assert run_here("index", "shop.la", photos, "--labels", table.name).code == 0
    table.write_text("path,sku\nred/0.png,8\n")
    assert run_here("sync", "shop.la").code == 0
    with Catalogue.open("shop.la", readonly=True) as shop:
        assert shop.column("sku", shop.ids_of(["red/0.png"])) == [8]
