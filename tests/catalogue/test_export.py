"""Every export read back by the plainest reader there is, and compared with the catalogue."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.export import FORMATS, ExportOptions, export
from lookalike.errors import CatalogueError, InputError, UnknownNameError


@pytest.fixture
def shop(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as made:
        made.sync()
        labels = [None if path == "e.png" else path.split("/")[0] for path in made.paths(made.ids())]
        made.set_columns({"label": labels, "note": ["tab\there", 'quo"te', "", "new\nline", "ü"]}, ids=made.ids())
        made.set_columns({"year": [1, 2, 3, None, 5], "sold": [True, False, True, None, True]}, ids=made.ids())
        yield made


def nearest(shop, k):
    """For each item the ids and scores of its k nearest others, from a full ranking."""
    rows = shop.neighbours(shop.vectors(shop.ids()), len(shop))
    return {
        int(own): [(int(i), s) for i, s in zip(ids, scores, strict=True) if i != own][:k]
        for own, (ids, scores) in zip(shop.ids(), rows, strict=True)
    }


def test_npy_and_csv_hold_the_same_rows_in_the_same_order(shop, tmp_path):
    vectors, table = export(shop, tmp_path / "out", "npy")
    assert np.array_equal(np.load(vectors), shop.vectors(shop.ids()))
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows] == shop.paths(shop.ids())
    assert [row["note"] or None for row in rows] == shop.column("note")
    assert [row["id"] for row in rows] == [str(number) for number in shop.ids()]


def test_the_projector_s_tables_have_one_line_an_item_and_no_stray_tab(shop, tmp_path):
    vectors, metadata = export(shop, tmp_path / "out", "tsv")
    assert np.array_equal(np.loadtxt(vectors, delimiter="\t", dtype=np.float32), shop.vectors(shop.ids()))
    lines = metadata.read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["id", "path", "label", "note", "year", "sold"]
    assert len(lines) == 6
    assert {line.count("\t") for line in lines} == {5}


def test_a_trec_run_lists_the_neighbours_without_the_item_and_qrels_the_equal_labels(shop, tmp_path):
    run, qrels = export(shop, tmp_path / "out", "trec", options=ExportOptions(k=2, label="label"))
    lines = [line.split() for line in run.read_text().splitlines()]
    assert [(int(q), int(d), int(rank), float(score)) for q, _, d, rank, score, _ in lines] == [
        (own, other, rank, score)
        for own, others in nearest(shop, 2).items()
        for rank, (other, score) in enumerate(others, 1)
    ]
    ids = dict(zip(shop.paths(shop.ids()), shop.ids().tolist(), strict=True))
    expected = {(ids["mug/a.png"], ids["mug/b.png"]), (ids["cup/c.png"], ids["cup/d.png"])}
    pairs = {tuple(map(int, line.split()[::2])) for line in qrels.read_text().splitlines()}
    assert pairs == expected | {(b, a) for a, b in expected}


@pytest.mark.parametrize("format", ["parquet", "atlas"])
def test_parquet_keeps_types_and_vectors(shop, tmp_path, format):
    parquet = pytest.importorskip("pyarrow.parquet")
    [path] = export(shop, tmp_path / "out.parquet", format, options=ExportOptions(k=2))
    table = parquet.read_table(path).to_pydict()
    assert table["id"] == shop.ids().tolist()
    assert table["path"] == shop.paths(shop.ids())
    for name in ("label", "note", "year", "sold"):
        assert table[name] == shop.column(name)
    assert np.array_equal(np.array(table["vector"], np.float32), shop.vectors(shop.ids()))
    if format == "atlas":
        row_of = {number: row for row, number in enumerate(shop.ids().tolist())}
        for own, near in zip(table["id"], table["neighbors"], strict=True):
            assert near["ids"] == [row_of[other] for other, _ in nearest(shop, 2)[own]]
            assert near["distances"] == [1 - score for _, score in nearest(shop, 2)[own]]


def test_fiftyone_gets_a_label_and_an_absolute_path_an_item(shop, tmp_path, photos):
    labels, data, vectors = export(shop, tmp_path / "out", "fiftyone", options=ExportOptions(label="label"))
    content = json.loads(labels.read_text())
    assert content["classes"] == ["cup", "mug"]
    named = [None if row is None else content["classes"][row] for row in content["labels"].values()]
    assert named == shop.column("label")
    assert list(json.loads(data.read_text()).values()) == [str(path) for path in shop.files(shop.ids())]
    assert np.array_equal(np.load(vectors), shop.vectors(shop.ids()))


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_every_format_takes_a_filter_and_an_empty_result(shop, tmp_path, format):
    if format in ("parquet", "atlas"):
        pytest.importorskip("pyarrow")
    assert export(shop, tmp_path / "some", format, options=ExportOptions(where="label = 'mug'", label="label"))
    assert export(shop, tmp_path / "none", format, options=ExportOptions(where="id < 0", label="label"))


def test_an_export_refuses_to_overwrite_and_leaves_nothing_of_a_failure(shop, tmp_path, grid):
    (tmp_path / "there").mkdir()
    with pytest.raises(CatalogueError, match="does not overwrite"):
        export(shop, tmp_path / "there", "npy")
    with pytest.raises(UnknownNameError, match="Did you mean 'parquet'"):
        export(shop, tmp_path / "out", "parket")
    with pytest.raises(UnknownNameError, match="Did you mean 'label'"):
        export(shop, tmp_path / "out", "trec", options=ExportOptions(label="lable"))
    with pytest.raises(InputError, match="at least one"):
        ExportOptions(k=0)
    with Catalogue.create(tmp_path / "ready.la", encoder=grid) as ready, pytest.raises(InputError, match="no folder"):
        export(ready, tmp_path / "out", "fiftyone")
    assert not (tmp_path / "out").exists()
