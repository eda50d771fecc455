"""A model of adds, updates, deletes and searches, run against a dictionary."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lookalike.index.ann import AnnIndex, build
from lookalike.index.generated import clustered
from lookalike.index.kinds import KINDS, settings_for
from lookalike.index.neighbours import pair_scores

D = 16
POOL = clustered(1_500, D, seed=2)
START = 320
WIDE = {  # everything is probed, so that only the contract, and never the approximation, is under test
    kind: settings_for(
        kind, {} if kind == "flat" else {"ef_search": 400} if "hnsw" in kind else {"nlist": 4, "nprobe": 4}
    )
    for kind in KINDS
}
BUILT: dict[str, AnnIndex] = {}


class Changing(RuleBasedStateMachine):
    """An index of any kind against {id: vector}."""

    @initialize(kind=st.sampled_from(sorted(KINDS)))
    def start(self, kind: str) -> None:
        if kind not in BUILT:
            BUILT[kind] = build(POOL[:START], np.arange(START) * 3, kind=WIDE[kind], sample=0)
        base = BUILT[kind]
        self.index = AnnIndex(base.gallery, base.indexed_ids, base.structure, base.settings)
        self.model = {i * 3: POOL[i] for i in range(START)}

    @rule(ids=st.lists(st.integers(0, 1_100), min_size=1, max_size=5, unique=True), row=st.integers(0, 1_400))
    def add(self, ids: list[int], row: int) -> None:
        fresh = POOL[row : row + len(ids)]
        self.index.add(fresh, ids)
        self.model.update(zip(ids, fresh, strict=True))

    @rule(ids=st.lists(st.integers(0, 1_100), min_size=1, max_size=60, unique=True))
    def remove(self, ids: list[int]) -> None:
        gone = sum(self.model.pop(i, None) is not None for i in ids)
        assert self.index.remove(ids) == gone

    @rule(first=st.integers(0, 900), k=st.integers(1, 40), row=st.integers(0, 1_499))
    def filtered(self, first: int, k: int, row: int) -> None:
        allowed = list(range(first, first + 150))
        ids, _ = self.index.search(POOL[row : row + 1], k, allowed=allowed)[0]
        assert len(ids) == min(k, sum(i in self.model for i in allowed))
        assert set(ids.tolist()) <= set(allowed) & set(self.model)

    @rule(k=st.integers(1, 500), row=st.integers(0, 1_499))
    def search(self, k: int, row: int) -> None:
        query = POOL[row]
        ids, scores = self.index.search(query[None], k)[0]
        assert len(ids) == min(k, len(self.model))
        assert len(set(ids.tolist())) == len(ids)
        assert set(ids.tolist()) <= set(self.model)
        if not len(ids):
            return
        known = np.array([self.model[int(i)] for i in ids])
        assert scores.tolist() == pair_scores(query, known, "cosine").tolist()
        assert list(zip(-scores, ids, strict=True)) == sorted(zip(-scores, ids, strict=True))
        if self.index.kind in ("flat", "ivf", "hnsw"):
            every = np.array(sorted(self.model))
            exact = pair_scores(query, np.array([self.model[int(i)] for i in every]), "cosine")
            right = every[np.lexsort((every, -exact))][:k]
            assert ids.tolist() == right.tolist()

    @invariant()
    def live(self) -> None:
        if hasattr(self, "model"):
            assert len(self.index) == len(self.model)
            assert self.index.ids.tolist() == sorted(self.model)


TestChanging = Changing.TestCase
TestChanging.settings = settings(
    max_examples=60, stateful_step_count=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("kind", ["flat", "ivf-pqfs", "hnsw"])
def test_readers_see_whole_versions_while_a_writer_works(kind: str) -> None:
    """Each write replaces one id's vector and one other id: readers find both new or both old, never half."""
    index = build(POOL[:START], kind=WIDE[kind], sample=0)
    left, right = POOL[1_000], -POOL[1_000]
    broken: list[str] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            found = index.search(np.stack([left, right]), 1)
            pair = (found[0][0][0], found[1][0][0])
            if pair not in {(5, 6), (6, 5)}:
                broken.append(str(pair))

    index.add(np.stack([left, right]), [5, 6])
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for turn in range(100):
        order = [left, right] if turn % 2 else [right, left]
        index.add(np.stack(order), [5, 6])
    stop.set()
    for reader in readers:
        reader.join()
    assert not broken
    assert len(index) == START
