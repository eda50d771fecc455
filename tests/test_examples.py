"""The examples show what they say they show (the one that needs torch is tested with the training)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from lookalike.index.generated import clustered
from lookalike.index.kinds import IvfPq
from lookalike.index.memory import predict

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def honest():
    return load("honest_recall")


@pytest.fixture(scope="module")
def rows(honest):
    vectors = clustered(400, 64, seed=3, points_per_cluster=10)
    nearest = np.argmax(vectors @ clustered(20, 64, seed=4).T, axis=1)  # classes that cut across the clusters
    return honest.table(vectors, [f"class-{code}" for code in nearest])


def test_a_query_that_may_find_itself_always_does_and_the_example_calls_it_no_measurement(rows):
    figures, words = rows["self kept"]
    assert figures == {1: 1.0, 5: 1.0, 10: 1.0}
    assert "not a measurement" in words


def test_without_itself_it_does_not(rows):
    assert 0.05 < rows["exact"][0][1] < 0.9


def test_an_index_that_loses_nothing_measures_the_exact_number_and_one_cell_of_twelve_less(rows):
    assert rows["flat"][0] == rows["exact"][0]
    assert rows["ivf, 1 of 12"][0][10] < rows["ivf, 6 of 12"][0][10] <= 1.0


def test_the_query_is_taken_out_by_id_and_not_as_the_first_answer(honest):
    # 0 and 1 are copies, 1 comes first for both: dropping the first answer of 0 would drop its only right one
    lists = [np.array(row) for row in ([1, 0, 2], [1, 0, 2], [2, 1, 0])]
    assert honest.measured(lists, ["a", "a", "b"])[1] == 1.0


def test_the_example_measures_a_folder_of_pictures(honest, tmp_path, capsys):
    honest.generate(tmp_path / "pictures", instances=1, views=2, size=64, workers=1)
    honest.main(str(tmp_path / "pictures"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "24 pictures, 12 classes, 1280 dimensions"
    assert [line[:12].strip() for line in lines[2:]] == ["self kept", "exact", *honest.INDEXES]


def test_a_million_by_hand_is_what_the_table_says():
    million = load("million_in_16_gb")
    by_hand = million.by_hand()
    assert by_hand == {"codes": 96_000_000, "ids": 8_000_000, "centroids": 12_288_000, "codebooks": 786_432}
    assert sum(by_hand.values()) == 117_074_432
    assert predict(million.N, million.DIM, kind=IvfPq(m=96, nlist=4_000)).components == by_hand


def test_on_8_6_gigabytes_a_second_everything_but_the_exact_scan_fits_16_gb_and_50_ms():
    million = load("million_in_16_gb")
    rows = million.planned()
    assert [row.kind for row in rows if not row.fits] == ["flat"]
    assert max(row.table.build_peak for row in rows) < million.RAM
    flat = next(row for row in rows if row.kind == "flat")
    assert flat.table.components == {"vectors": 3_072_000_000}
    assert flat.latency_ms == pytest.approx(1e3 * 3_072_000_000 / 8.6e9, rel=0.01)


def test_predicted_bytes_are_the_bytes_written(capsys):
    load("million_in_16_gb").print_built(1_000)
    lines = [line.replace(",", "").split() for line in capsys.readouterr().out.splitlines() if "predicted" in line]
    assert [line[0] for line in lines] == ["ivf-pq", "ivf-sq8", "hnsw-sq8"]
    for line in lines:
        assert line[line.index("predicted") + 1] == line[line.index("written") + 1]
