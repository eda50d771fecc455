"""Shards and hours: the arithmetic of `memory`, beyond one machine."""

from __future__ import annotations

import json

import pytest

from lookalike.errors import InputError
from lookalike.index.plan import plan
from lookalike.index.scale import embedding, shards


def row(n: int, d: int, kind: str):
    return next(row for row in plan(n, d) if row.kind == kind)


def test_a_thousand_million_flat_vectors_over_48_gigabytes_each_are_43_shards():
    """10⁹ × (512 × 4 + 8 B of id, and a bit) = 2,056 GB; three quarters of 64 GB are 48 GB; 2,056 / 48 = 42.8."""
    found = shards(row(10**9, 512, "flat"), 512, ram=64 * 10**9)
    assert (found.count, found.items) == (43, -(-(10**9) // 43))
    assert found.bytes == found.items * (512 * 4 + 8) + -(-found.items // 8)


@pytest.mark.parametrize("kind", ["flat", "ivf", "ivf-pq", "hnsw"])
@pytest.mark.parametrize("ram", [2 * 10**8, 10**9, 10**12])
def test_every_shard_fits_and_all_of_them_hold_every_vector(kind, ram):
    planned = row(1_000_000, 128, kind)
    found = shards(planned, 128, ram=ram)
    assert found.bytes <= 0.75 * ram
    assert found.count * found.items >= 1_000_000
    if planned.table.resident <= 0.75 * ram:
        assert found.count == 1


def test_a_memory_that_holds_nothing_is_refused():
    with pytest.raises(InputError, match="not hold even one"):
        shards(row(1_000, 128, "flat"), 128, ram=100)


def test_hours_are_pictures_over_rate_and_workers():
    """3,600,000 pictures at 10 a second and worker, 10 workers: 36,000 s = 10 h."""
    found = embedding(3_600_000, rate=10, workers=10)
    assert found.hours == 10
    assert found.as_dict()["tags"] == {"rate": "given", "hours": "extrapolated"}
    with pytest.raises(InputError):
        embedding(10, rate=0)


def test_plan_says_shards_and_hours_and_what_is_measured(run_here):
    done = run_here("plan", "--items", "1e9", "--dim", "512", "--ram", "64GB", "--rate", "100", "--workers", "50",
                    "--no-measure", "--format", "json")  # fmt: skip
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert next(line["shards"]["shards"] for line in told["rows"] if line["kind"] == "flat") == 43
    assert round(told["embedding"]["hours"], 1) == 55.6
    measured = run_here("plan", "--items", "1000", "--rate", "measure", "--no-measure", "--format", "json")
    assert json.loads(measured.out)["embedding"]["tags"] == {"rate": "measured", "hours": "extrapolated"}
    assert run_here("plan", "--items", "1000", "--rate", "fast").code == 2
