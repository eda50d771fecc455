"""The plan before any data: what fits, tagged by how well it is known."""

from __future__ import annotations

import json

import pytest

from lookalike.errors import InputError
from lookalike.index.kinds import KINDS
from lookalike.index.memory import predict
from lookalike.index.plan import bytes_read, measure_bandwidth, plan


def test_a_hundred_million_vectors_fit_16_gigabytes_only_as_codes_beside_their_file() -> None:
    rows = plan(100_000_000, 512, ram=16 * 10**9)
    fitting = [(row.kind, row.settings.refine) for row in rows if row.fits]
    assert fitting == [("ivf-pq", "none"), ("ivf-pq", "vectors"), ("ivf-rabitq", "vectors"), ("ivf-pqfs", "vectors")]
    assert all(row.misses for row in rows if not row.fits)
    flat = next(row for row in rows if row.kind == "flat")
    # vectors 204.8 GB, ids 0.8 GB, one bit each for tombstones
    assert flat.misses == ("205,612,500,000 bytes are more than 16,000,000,000.",)


def test_a_flat_scan_takes_its_bytes_over_the_bandwidth() -> None:
    (flat,) = (row for row in plan(1_000_000, 512, bandwidth=8.6e9) if row.kind == "flat")
    assert flat.latency_ms == pytest.approx(1e3 * 2_048_000_000 / 8.6e9, rel=1e-3)  # 238 ms
    assert dict(flat.tags) == {"bytes": "exact", "bandwidth": "measured", "latency_ms": "estimated", "overlap": "exact"}


def test_cells_read_their_probed_share_and_all_centroids() -> None:
    table = predict(1_000_000, 512, kind="ivf-pq")
    assert table.settings.nprobe == 120
    streamed, reached, filed = bytes_read(table)
    assert streamed == 120 * (64 + 8) * 1_000_000 // 4000 + 8_192_000  # nprobe 120 of 4,000 cells
    assert (reached, filed) == (0, 10)


def test_originals_that_do_not_fit_beside_the_index_are_read_from_disk() -> None:
    roomy, tight = (
        next(r for r in plan(1_000_000, 512, ram=ram) if r.kind == "ivf-pq" and r.settings.refine == "vectors")
        for ram in (3 * 10**9, 10**9)
    )
    assert tight.latency_ms - roomy.latency_ms == pytest.approx(1e3 * 80 * (100e-6 - 120e-9))  # k_factor 8 times k 10


def test_every_demand_that_fails_is_named_with_both_numbers() -> None:
    rows = plan(1_000_000, 512, ram=10**8, latency_ms=1, recall=0.99, bandwidth=1e10)
    flat = next(row for row in rows if row.kind == "flat")
    assert len(flat.misses) == 2
    assert "ms is more than 1 ms" in flat.misses[1]
    pq = next(row for row in rows if row.kind == "ivf-pq")
    assert any("is less than 0.99" in miss for miss in pq.misses)


def test_rows_are_plain_and_cover_every_kind_that_can_be_built() -> None:
    rows = plan(50_000, 64)
    assert {row.kind for row in rows} == set(KINDS)
    assert all(row.fits for row in rows)
    json.dumps([row.as_dict() for row in rows])
    assert "ivf-pq" not in {row.kind for row in plan(100, 64)}
    with pytest.raises(InputError, match="ram=-1"):
        plan(10, 10, ram=-1)


def test_the_bandwidth_of_this_machine_is_measured_within_reason() -> None:
    assert 2e8 < measure_bandwidth(seconds=0.05) < 1e12
