"""Any filter at all passes the same rows in every engine as in a catalogue."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.external.opening import create_external
from lookalike.catalogue.external.push import push

from .conftest import CARD, needs


def _conditions() -> Any:
    path = Path(__file__).resolve().parents[1] / "catalogue" / "test_conditions.py"
    spec = importlib.util.spec_from_file_location("conditions_of_a_catalogue", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


conditions = _conditions()


@pytest.fixture(scope="module", params=["pgvector", "milvus"])
def both(request, tmp_path_factory) -> Iterator[tuple[Any, Catalogue]]:
    """An engine and the catalogue that was pushed into it: every combination of values, missing ones too."""
    folder = tmp_path_factory.mktemp("filters")
    if request.param == "pgvector":
        uri = f"{request.getfixturevalue('postgres').uri}?table=filters"
    else:
        needs("pymilvus", "milvus_lite")
        uri = f"milvus:{folder}/filters.db"
    names = list(conditions.FIELDS)
    values = {name: [row[at] for row in conditions.ROWS] for at, name in enumerate(names)}
    values["sold"] = [None if value is None else bool(value) for value in values["sold"]]
    vectors = np.random.default_rng(0).normal(size=(len(conditions.ROWS), 8))
    with Catalogue.create(folder / "shop.la", encoder=CARD) as shop:
        shop.upsert([f"{row}.jpg" for row in range(len(vectors))], vectors, columns=values)
        with create_external(uri, card=CARD, columns=shop.columns()) as store:
            push(store, shop)
            yield store, shop


@given(text=conditions.filters)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_filter_passes_the_rows_it_passes_in_a_catalogue(both, text):
    store, shop = both
    assert store.ids(where=text).tolist() == shop.ids(where=text).tolist()
