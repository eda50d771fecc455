"""The published benchmarks, each with its standard protocol under one name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lookalike.datasets.cars import read_cars
from lookalike.datasets.cub import read_cub
from lookalike.datasets.inshop import read_inshop
from lookalike.datasets.market1501 import read_market1501
from lookalike.datasets.pictures import LabelledPictures
from lookalike.datasets.revisited import RevisitedTruth, read_roxford, read_rparis, read_truth
from lookalike.datasets.sop import read_sop
from lookalike.errors import UnknownNameError

RelevanceKind: TypeAlias = Literal["label", "identity", "camera", "revisited"]
Reader: TypeAlias = Callable[[str | os.PathLike[str]], LabelledPictures]
TruthReader: TypeAlias = Callable[[str | os.PathLike[str]], RevisitedTruth]


@dataclass(frozen=True, kw_only=True)
class StandardProtocol:
    """How a benchmark is measured by everybody: who asks, who answers, what is right, which figures are quoted.

    `relevance`: `label` and `identity` name the column that must be equal; `camera` is the same identity, where the
    pictures of that identity by the query's own camera are taken out; `revisited` goes by lists of easy, hard and junk.
    """

    title: str
    reader: Reader
    query_split: str
    gallery_split: str
    """the same as `query_split` where every picture asks all the others"""
    relevance: RelevanceKind
    ks: tuple[int, ...]
    metrics: tuple[str, ...]
    notes: str
    truth: TruthReader | None = None

    @property
    def column(self) -> str:
        """The column that decides what is right."""
        return "label" if self.relevance == "label" else "identity"


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A benchmark that was found on disk: its pictures, and the rows that ask and answer."""

    name: str
    protocol: StandardProtocol
    pictures: LabelledPictures
    query: tuple[int, ...]
    gallery: tuple[int, ...]
    truth: RevisitedTruth | None = None

    @property
    def leave_one_out(self) -> bool:
        """Whether every query is itself in the gallery and has to be taken out of its own answers."""
        return self.query == self.gallery


def read_protocol(name: str, root: str | os.PathLike[str]) -> Benchmark:
    """Read a published benchmark by the name of its protocol.

    Raises:
        UnknownNameError: no such protocol; the names are listed.
        NotFoundError: files are missing; they are named, with the layout expected.
        InputError: files that cannot be read.
    """
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS)
    protocol = PROTOCOLS[name]
    pictures = protocol.reader(root)
    return Benchmark(
        name=name,
        protocol=protocol,
        pictures=pictures,
        query=tuple(pictures.rows("split", protocol.query_split)),
        gallery=tuple(pictures.rows("split", protocol.gallery_split)),
        truth=protocol.truth(root) if protocol.truth else None,
    )


_UNSEEN = "The test classes are none of the training classes; every test picture asks all the others."
_REVISITED = "Report medium and hard; queries are cropped to their box. Junk is removed from the ranking."

PROTOCOLS: Mapping[str, StandardProtocol] = {
    "cub": StandardProtocol(
        title="CUB-200-2011", reader=read_cub, query_split="test", gallery_split="test", relevance="label",
        ks=(1, 2, 4, 8), metrics=("recall", "map@r"), notes=f"{_UNSEEN} Pictures are not cropped to the birds.",
    ),
    "cars": StandardProtocol(
        title="Cars-196", reader=read_cars, query_split="test", gallery_split="test", relevance="label",
        ks=(1, 2, 4, 8), metrics=("recall", "map@r"), notes=f"{_UNSEEN} Pictures are not cropped to the cars.",
    ),
    "sop": StandardProtocol(
        title="Stanford Online Products", reader=read_sop, query_split="test", gallery_split="test",
        relevance="identity", ks=(1, 10, 100, 1000), metrics=("recall", "map@r"), notes=_UNSEEN,
    ),
    "inshop": StandardProtocol(
        title="In-Shop Clothes Retrieval", reader=read_inshop, query_split="query", gallery_split="gallery",
        relevance="identity", ks=(1, 10, 20, 30), metrics=("recall",),
        notes="Queries and gallery are separate lists of the same unseen garments.",
    ),
    "market1501": StandardProtocol(
        title="Market-1501", reader=read_market1501, query_split="query", gallery_split="gallery", relevance="camera",
        ks=(1, 5, 10), metrics=("recall", "map", "minp"),
        notes="Junk (-1) is removed; distractors (0000) stay and are never right; single query. recall@K is its CMC.",
    ),
    "roxford5k": StandardProtocol(
        title="Revisited Oxford", reader=read_roxford, query_split="query", gallery_split="gallery",
        relevance="revisited", ks=(1, 5, 10), metrics=("map", "precision"), notes=_REVISITED,
        truth=lambda root: read_truth(root, "oxford"),
    ),
    "rparis6k": StandardProtocol(
        title="Revisited Paris", reader=read_rparis, query_split="query", gallery_split="gallery",
        relevance="revisited", ks=(1, 5, 10), metrics=("map", "precision"), notes=_REVISITED,
        truth=lambda root: read_truth(root, "paris"),
    ),
}  # fmt: skip
