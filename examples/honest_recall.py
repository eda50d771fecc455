"""An encoder, a FAISS index, and a recall@K that deserves the name.

    python examples/honest_recall.py             # 360 generated pictures: which object is it?
    python examples/honest_recall.py photos/     # your own, one folder a class: what is it?

The first row lets every query find itself. It must be 1.000, which shows that vectors, ids and labels belong together,
and it measures nothing. The second removes each query from its own gallery by its id and ranks exactly: that is the
number. The rows below measure the lists that FAISS indexes return, asked for one answer more, because one of them is
the query; the last index probes a single cell, which is too few, to show what that costs.

FAISS is called directly here, as by somebody who has an index already. (`lookalike.index` wraps it, and scans galleries
of up to 1,000 items exactly whatever the kind, so that nothing would be lost to see.)
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import lookalike as la
from lookalike.arrays import Ids, Vectors
from lookalike.datasets.folder import read_folder
from lookalike.datasets.generated import generate
from lookalike.datasets.table import read_table
from lookalike.evaluate.metrics import mean, recall
from lookalike.evaluate.ranks import Ranks
from lookalike.evaluate.relevance import SameLabel, build_truth

KS = (1, 5, 10)
DEPTH = max(KS) + 1  # one of the answers is the query
CELLS = 12


def flat(d: int) -> Any:
    """Every vector is compared; rows have length 1, so the inner product is the cosine."""
    return faiss.IndexFlatIP(d)


def hnsw(d: int) -> Any:
    """A navigable graph."""
    return faiss.IndexHNSWFlat(d, 32, faiss.METRIC_INNER_PRODUCT)


def cells(d: int, probed: int) -> Any:
    """Cells around k-means centres, of which so many are read."""
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, CELLS, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = probed
    index.cp.min_points_per_centroid = 1  # few pictures are meant here, and no warning needed
    return index


INDEXES: Mapping[str, Callable[[int], Any]] = {
    "flat": flat,
    "hnsw": hnsw,
    "ivf, 6 of 12": lambda d: cells(d, 6),
    "ivf, 1 of 12": lambda d: cells(d, 1),
}


def measured(lists: Sequence[Ids], labels: Sequence[str | None]) -> dict[int, float]:
    """Measure ranked lists of ids, one a picture, which is itself taken out by its id before places are counted."""
    ids = np.arange(len(lists))
    truth = build_truth(
        SameLabel(labels, labels), num_queries=len(ids), num_gallery=len(ids), query_ids=ids, gallery_ids=ids
    )
    ranks = Ranks.from_lists(lists, truth, gallery_ids=ids, depth=DEPTH)
    return {k: mean(recall(ranks, k)) for k in KS}


def searched(index: Any, vectors: Vectors) -> list[Ids]:
    """Fill an index and ask it with every vector; -1 is how FAISS says that it found no more."""
    index.train(vectors)
    index.add(vectors)
    _, found = index.search(vectors, DEPTH)
    return [row[row >= 0] for row in found]


def table(vectors: Vectors, labels: Sequence[str | None]) -> dict[str, tuple[dict[int, float], str]]:
    """Return the rows: name to recall at each K, and what is to be known of it."""
    ids = np.arange(len(vectors))
    sanity = la.recall_at_k(vectors, vectors, labels, labels, ks=KS, self_match=True)
    exact = la.recall_at_k(vectors, vectors, labels, labels, ks=KS, query_ids=ids, gallery_ids=ids)
    return {
        "self kept": (sanity, "sanity check: must be 1.000, not a measurement"),
        "exact": (exact, "self removed by id: the number"),
        **{
            name: (measured(searched(make(vectors.shape[1]), vectors), labels), "what FAISS returned, self removed")
            for name, make in INDEXES.items()
        },
    }


def pictures(folder: str | None) -> tuple[Vectors, Sequence[str | None]]:
    """Encode a folder of class folders, or generated pictures of known objects."""
    if folder is not None:
        own = read_folder(folder)
        return la.encode_all(own.paths), own.column("label")
    with tempfile.TemporaryDirectory() as place:
        drawn = read_table(generate(Path(place) / "pictures", instances=6))
        return la.encode_all(drawn.paths), drawn.column("identity")


def main(folder: str | None = None) -> None:
    """Print the table."""
    vectors, labels = pictures(folder)
    print(f"{len(vectors)} pictures, {len(set(labels))} classes, {vectors.shape[1]} dimensions")
    print(f"{'':12}" + "".join(f"  recall@{k:<3}" for k in KS))
    for name, (figures, words) in table(vectors, labels).items():
        print(f"{name:12}" + "".join(f"  {figures[k]:<10.3f}" for k in KS) + f"  {words}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
