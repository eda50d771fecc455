"""From the options of `lookalike eval` to queries and gallery as vectors with columns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from lookalike.catalogue.catalogue import Catalogue
from lookalike.cli import output
from lookalike.cli.failures import list_failures
from lookalike.cli.opening import open_store
from lookalike.datasets.folder import read_folder
from lookalike.datasets.pictures import LabelledPictures
from lookalike.datasets.protocols import Benchmark, read_protocol
from lookalike.datasets.table import read_label_columns, read_table
from lookalike.embed.encoder import Card
from lookalike.embed.pipeline import embed_all
from lookalike.embed.ready import load_vectors
from lookalike.embed.registry import encoder as find_encoder
from lookalike.embed.sources import Item
from lookalike.errors import ImageError, InputError, NotFoundError
from lookalike.evaluate.boxes import BOX, part_of
from lookalike.evaluate.sides import Side
from lookalike.evaluate.splits import Split, holdout, leave_one_out
from lookalike.images.load import Failure

DEFAULT_ENCODER = "builtin:effnet-lite0"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What is measured: two sides (the same object where every picture asks all the others) and how they came about."""

    queries: Side
    gallery: Side
    relevance: str
    split: str
    camera: str | None = None
    card: Card | None = None
    failures: Sequence[Failure] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    benchmark: Benchmark | None = None
    """The published benchmark these are, where --protocol names one."""

    @property
    def ks(self) -> tuple[int, ...]:
        """The cut-offs of the published protocol; empty where there is none."""
        return self.benchmark.protocol.ks if self.benchmark else ()


def read_inputs(settings: Mapping[str, Any]) -> Inputs:
    """Read pictures or ready vectors, whichever the options name.

    Raises:
        click.UsageError: none or two of SOURCE, --vectors and --queries/--gallery.
        LookalikeError: whatever the readers refuse.
    """
    ways = [settings["source"], settings["vectors"], settings["queries"] or settings["gallery"]]
    if sum(way is not None for way in ways) != 1:
        raise click.UsageError(
            "Name one thing to measure: SOURCE (a folder or a manifest), --vectors, or --queries with --gallery."
        )
    relevance = settings["relevance"] or settings["label"] or "label"
    source = settings["source"]
    if isinstance(source, str) or (source is not None and (source / "catalogue.db").exists()):
        return _from_catalogue(settings, relevance)
    if source is not None:
        return _from_pictures(settings, relevance)
    return _from_vectors(settings, relevance)


def _from_vectors(settings: Mapping[str, Any], relevance: str) -> Inputs:
    if settings["vectors"] is not None:
        side = _side(settings, "vectors", "labels", relevance)
        return Inputs(queries=side, gallery=side, relevance=relevance, split="leave-one-out", camera=settings["camera"])
    queries = _side(settings, "queries", "query_labels", relevance)
    gallery = _side(settings, "gallery", "gallery_labels", relevance)
    # Separate files hold separate items: ids go on where the queries' end, so that nothing is taken for itself.
    gallery = gallery.renumbered(len(queries))
    return Inputs(
        queries=queries, gallery=gallery, relevance=relevance, split="queries against gallery",
        camera=settings["camera"],
    )  # fmt: skip


def _side(settings: Mapping[str, Any], vectors: str, labels: str, relevance: str) -> Side:
    for name in (vectors, labels):
        if settings[name] is None:
            raise click.UsageError(f"--{name.replace('_', '-')} is missing: vectors and labels come together.")
    array = load_vectors(settings[vectors])
    columns = read_label_columns(settings[labels], len(array))
    for column in filter(None, (relevance, settings["camera"], settings["identity"])):
        if column not in columns:
            raise InputError(f"{settings[labels]} has no column {column!r}.", hint=f"It has: {', '.join(columns)}.")
    return Side(vectors=array, ids=np.arange(len(array)), columns=columns)


def _from_catalogue(settings: Mapping[str, Any], relevance: str) -> Inputs:
    """Take the stored vectors; nothing is embedded. The encoder is the one the catalogue was made with."""
    with open_store(settings["source"], encoder=settings["encoder"], threads=settings["threads"]) as catalogue:
        everything = Side.of_catalogue(catalogue)
        if settings.get("fuse"):
            everything = _by_all_encoders(everything, catalogue, settings)
        ids, names = everything.ids, everything.names
        for column in filter(None, (relevance, settings["camera"], settings["identity"])):
            everything.column(column)
        wheres = (settings["query_where"], settings["gallery_where"])
        if any(wheres):
            asks, answers = (np.flatnonzero(np.isin(ids, catalogue.ids(where=where))).tolist() for where in wheres)
            description = " against ".join(where or "all" for where in wheres)
            split = Split.of_rows(names, asks, answers, description)
        else:
            texts = {name: tuple(map(_text, values)) for name, values in everything.columns.items()}
            pictures = LabelledPictures(root="", names=names, paths=names, columns=texts)
            split = _split(settings, pictures, relevance)
    queries = everything.having(ids[list(split.query)])
    gallery = queries if split.leave_one_out else everything.having(ids[list(split.gallery)])
    return Inputs(
        queries=queries, gallery=gallery, relevance=relevance, split=split.description, camera=settings["camera"],
        card=catalogue.card,
    )  # fmt: skip


def _by_all_encoders(everything: Side, catalogue: Any, settings: Mapping[str, Any]) -> Side:
    """Add the vectors of the catalogue's other encoders; an item one of them lacks is left out."""
    if not isinstance(catalogue, Catalogue):
        raise InputError("An external engine holds one encoder's vectors, so there is nothing to fuse.")
    for card in catalogue.cards():
        if card.digest == catalogue.card.digest:
            continue
        with Catalogue.open(settings["source"], encoder=card.digest, readonly=True) as other:
            everything = everything.having(other.ids())
            everything = replace(everything, further=(*everything.further, other.vectors(everything.ids)))
    return everything


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _from_pictures(settings: Mapping[str, Any], relevance: str) -> Inputs:
    encoder = find_encoder(settings["encoder"] or DEFAULT_ENCODER)  # first, so that a misspelt name costs nothing
    benchmark = _benchmark(settings)
    camera = settings["camera"]
    if benchmark is not None:
        pictures, relevance = benchmark.pictures, benchmark.protocol.column
        camera = "camera" if benchmark.protocol.relevance == "camera" else None
        split = Split.of_rows(pictures.names, benchmark.query, benchmark.gallery, f"protocol {benchmark.name}")
    else:
        pictures = _read_pictures(settings)
        for column in filter(None, (relevance, camera, settings["identity"])):
            pictures.column(column)
        split = _split(settings, pictures, relevance)
    used = sorted({*split.query, *split.gallery})
    shown = settings["progress"] and not settings["quiet"]
    started = time.perf_counter()
    with output.progress("embedding", shown=shown) as report:
        embedded = embed_all(
            [_item(pictures, row) for row in used], encoder, threads=settings["threads"], progress=report
        )
    seconds = time.perf_counter() - started
    if not len(embedded.positions):
        raise InputError("None of the pictures could be read.", hint=_first_failure(embedded.failures))
    failures = (*pictures.failed, *embedded.failures)  # what the scanner could not look at is a failure too
    if failures and settings["strict"]:
        raise InputError(f"{len(failures)} pictures could not be read.", hint=_first_failure(failures))
    list_failures(failures, len(used) + len(pictures.failed), settings["failures"])
    rows = [used[position] for position in embedded.positions]
    everything = Side.of_pictures(pictures.select(rows), embedded.vectors, ids=np.array(rows))
    queries = everything.having(split.query)
    gallery = queries if split.leave_one_out else everything.having(split.gallery)
    return Inputs(
        queries=queries, gallery=gallery, relevance=relevance, split=split.description, card=encoder.card,
        failures=failures, timings={"embed_s": seconds}, camera=camera, benchmark=benchmark,
    )  # fmt: skip


def _item(pictures: LabelledPictures, row: int) -> Item:
    """Return a picture's path, or the part of it that is asked for where the benchmark gives a box."""
    path = pictures.paths[row]
    box = pictures.columns[BOX][row] if BOX in pictures.columns else None
    if box is None:
        return path
    try:
        return part_of(path, box)
    except ImageError:
        return path  # the pipeline reports it by name


def _benchmark(settings: Mapping[str, Any]) -> Benchmark | None:
    if settings["protocol"] is None:
        return None
    if settings["split_column"] or settings["holdout"] is not None:
        raise click.UsageError("--protocol says who asks; --split-column and --holdout do not go with it.")
    return read_protocol(settings["protocol"], settings["source"])


def _read_pictures(settings: Mapping[str, Any]) -> LabelledPictures:
    source: Path = settings["source"]
    if not source.exists():
        raise NotFoundError(
            f"There is nothing at {str(source)!r}.", hint="Name a folder of class folders or a manifest."
        )
    if source.is_dir():
        return read_folder(source)
    return read_table(source, path_column=settings["path_column"], root=settings["root"])


def _split(settings: Mapping[str, Any], pictures: LabelledPictures, relevance: str) -> Split:
    if settings["split_column"] and settings["holdout"] is not None:
        raise click.UsageError("--split-column and --holdout each say who asks; name one of them.")
    if settings["holdout"] is not None:
        by = settings["holdout_by"]
        column = settings["identity"] or relevance if by == "identity" else relevance
        return holdout(pictures.names, pictures.column(column), settings["holdout"], by=by, seed=settings["seed"])
    if settings["split_column"] is None:
        return leave_one_out(pictures.names)
    column, ask, answer = settings["split_column"], settings["query_split"], settings["gallery_split"]
    query, gallery = pictures.rows(column, ask), pictures.rows(column, answer)
    description = f"column {column!r}: {ask!r} asks {answer!r}"
    return Split.of_rows(pictures.names, query, gallery, description)


def _first_failure(failures: Sequence[Failure]) -> str:
    first = failures[0]
    return f"The first: {first.path!r}: {first.reason} {first.detail}".rstrip() + "."
