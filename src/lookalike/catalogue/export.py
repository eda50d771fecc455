"""A catalogue in the formats of other tools, written block by block."""

from __future__ import annotations

import csv
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.catalogue.aside import whole
from lookalike.errors import CatalogueError, InputError, LookalikeError, MissingExtraError, UnknownNameError
from lookalike.index.neighbours import Metric, higher_is_better

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue

_ROWS = 4_096


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What an export holds; `k` and `label` matter to the formats that have neighbours or labels."""

    where: str | None = None
    k: int = 10
    """Neighbours an item, itself left out."""
    label: str | None = None
    """The column that says which items belong together."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"k={self.k}: at least one neighbour is needed.")


@dataclass(frozen=True)
class Block:
    """Some items with everything that is exported of them."""

    ids: Ids
    paths: list[str]
    columns: dict[str, list[Any]]
    vectors: Vectors


def export(
    catalogue: Catalogue, destination: str | os.PathLike[str], format: str, *, options: ExportOptions | None = None
) -> list[Path]:
    """Write a catalogue for another tool and return the files written; `destination` must not exist.

    | format     | what                                                                          |
    |------------|-------------------------------------------------------------------------------|
    | `npy`      | a folder: `vectors.npy`, and `items.csv` in the same order                    |
    | `parquet`  | a file: id, path, columns and a list of floats a row                          |
    | `tsv`      | a folder for the Embedding Projector: `vectors.tsv`, `metadata.tsv`           |
    | `trec`     | a folder: `run.txt` (k neighbours an item), `qrels.txt` where a label is named |
    | `atlas`    | a Parquet file for embedding-atlas, with `--vector vector --neighbors neighbors` |
    | `fiftyone` | a folder of type FiftyOneImageClassificationDataset, and `vectors.npy`        |

    Raises:
        UnknownNameError: no such format, or no such column.
        CatalogueError: the destination exists or cannot be written; nothing is left of a failed export.
        MissingExtraError: Parquet without pyarrow.
    """
    if format not in FORMATS:
        raise UnknownNameError("export format", format, FORMATS)
    target = Path(destination)
    if target.exists():
        raise CatalogueError(f"{str(target)!r} exists; an export does not overwrite.", hint="Choose another name.")
    chosen = options or ExportOptions()
    try:
        # One state, however long the writing takes, and a whole export or none.
        with catalogue.database.reading(), whole(target) as out:
            written = FORMATS[format](_Source(catalogue, chosen), out)
    except OSError as error:
        if isinstance(error, LookalikeError):
            raise
        raise CatalogueError(f"The export {str(target)!r} cannot be written: {error.strerror}.") from error
    return [target / path.relative_to(out) if path != out else target for path in written]


class _Source:
    """The items to export, in id order, a block at a time."""

    def __init__(self, catalogue: Catalogue, options: ExportOptions) -> None:
        self.catalogue = catalogue
        self.options = options
        self.ids = catalogue.ids(where=options.where)
        self.names = [column.name for column in catalogue.columns()]
        if options.label is not None:
            catalogue.column(options.label, self.ids[:1])  # an unknown one is refused before anything is written

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, len(self.ids), _ROWS):
            ids = self.ids[start : start + _ROWS]
            yield Block(
                ids,
                self.catalogue.paths(ids),
                {name: self.catalogue.column(name, ids) for name in self.names},
                self.catalogue.vectors(ids),
            )

    def labels(self) -> list[Any]:
        """Return the label of every item, None where there is none or none was named."""
        if self.options.label is None:
            return [None] * len(self.ids)
        return self.catalogue.column(self.options.label, self.ids)

    def neighbours(self, block: Block) -> Iterator[tuple[Ids, Scores]]:
        """Yield the k nearest other items of each item of a block."""
        found = self.catalogue.neighbours(block.vectors, self.options.k + 1, where=self.options.where)
        for own, (ids, scores) in zip(block.ids, found, strict=True):
            others = ids != own
            yield ids[others][: self.options.k], scores[others][: self.options.k]


def _npy(source: _Source, target: Path) -> list[Path]:
    target.mkdir()
    vectors, table = target / "vectors.npy", target / "items.csv"
    with vectors.open("wb") as numbers, _text(table) as rows:
        shape = (len(source.ids), source.catalogue.dim)
        np.lib.format.write_array_header_1_0(numbers, {"descr": "<f4", "fortran_order": False, "shape": shape})
        writer = csv.writer(rows)
        writer.writerow(["id", "path", *source.names])
        for block in source:
            numbers.write(block.vectors.data)
            writer.writerows(zip(block.ids.tolist(), block.paths, *block.columns.values(), strict=True))
    return [vectors, table]


def _tsv(source: _Source, target: Path) -> list[Path]:
    target.mkdir()
    vectors, metadata = target / "vectors.tsv", target / "metadata.tsv"
    with _text(vectors) as numbers, _text(metadata) as rows:
        rows.write("\t".join(map(_cell, ["id", "path", *source.names])) + "\n")
        for block in source:
            for vector in block.vectors:
                numbers.write("\t".join(map(repr, vector.tolist())) + "\n")
            for row in zip(block.ids.tolist(), block.paths, *block.columns.values(), strict=True):
                rows.write("\t".join(map(_cell, row)) + "\n")
    return [vectors, metadata]


def _trec(source: _Source, target: Path) -> list[Path]:
    target.mkdir()
    run, qrels = target / "run.txt", target / "qrels.txt"
    sign = 1 if higher_is_better(source.catalogue.metric) else -1  # trec_eval sorts by falling score
    with _text(run) as lines:
        for block in source:
            for own, (ids, scores) in zip(block.ids, source.neighbours(block), strict=True):
                for rank, (other, score) in enumerate(zip(ids, scores, strict=True), 1):
                    lines.write(f"{own} Q0 {other} {rank} {sign * float(score)!r} lookalike\n")
    if source.options.label is None:
        return [run]
    groups: dict[Any, list[int]] = defaultdict(list)
    for number, label in zip(source.ids.tolist(), source.labels(), strict=True):
        if label is not None:
            groups[label].append(number)
    with _text(qrels) as lines:
        for members in groups.values():
            lines.writelines(f"{own} 0 {other} 1\n" for own in members for other in members if other != own)
    return [run, qrels]


def _parquet(source: _Source, target: Path) -> list[Path]:
    return _table(source, target, with_neighbours=False)


def _atlas(source: _Source, target: Path) -> list[Path]:
    return _table(source, target, with_neighbours=True)


def _table(source: _Source, target: Path, *, with_neighbours: bool) -> list[Path]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("Writing Parquet", "parquet") from error
    types = {"text": pa.string(), "integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_()}
    fields = [("id", pa.int64()), ("path", pa.string())]
    fields += [(column.name, types[column.type]) for column in source.catalogue.columns()]
    fields += [("vector", pa.list_(pa.float32(), source.catalogue.dim))]
    if with_neighbours:
        near = pa.struct([("ids", pa.list_(pa.int64())), ("distances", pa.list_(pa.float64()))])
        fields.append(("neighbors", near))
    schema = pa.schema(fields)
    with pq.ParquetWriter(target, schema) as writer:
        for block in source:
            arrays = [pa.array(block.ids), pa.array([_printable(path) for path in block.paths])]
            arrays += [pa.array(block.columns[name], field) for name, field in fields[2 : 2 + len(source.names)]]
            arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(block.vectors.ravel()), source.catalogue.dim))
            if with_neighbours:
                arrays.append(pa.array(list(_by_row(source, block)), near))
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return [target]


AWAY: Mapping[Metric, Callable[[Scores], Scores]] = {
    "cosine": lambda scores: 1 - scores,
    "ip": lambda scores: -scores,
    "l2": lambda scores: np.sqrt(scores),
}


def _by_row(source: _Source, block: Block) -> Iterator[dict[str, list[Any]]]:
    """Name neighbours as embedding-atlas does: by row of the table, with a distance that grows."""
    away = AWAY[source.catalogue.metric]
    for ids, scores in source.neighbours(block):
        rows = np.searchsorted(source.ids, ids)
        yield {"ids": rows.tolist(), "distances": away(scores).tolist()}


def _fiftyone(source: _Source, target: Path) -> list[Path]:
    """`labels.json` and the media manifest `data.json`, both by item id."""
    if source.catalogue.root is None:
        raise InputError("FiftyOne shows pictures, and this catalogue has no folder of them.")
    target.mkdir()
    names = [str(number) for number in source.ids.tolist()]
    labels = [None if label is None else str(label) for label in source.labels()]
    files = {"labels.json": {"classes": sorted({label for label in labels if label is not None}), "labels": {}}}
    index = {label: row for row, label in enumerate(files["labels.json"]["classes"])}
    files["labels.json"]["labels"] = dict(
        zip(names, [None if label is None else index[label] for label in labels], strict=True)
    )
    paths = [os.fspath(path) for path in source.catalogue.files(source.ids)]
    files["data.json"] = dict(zip(names, paths, strict=True))
    for name, content in files.items():
        (target / name).write_text(json.dumps(content))
    np.save(target / "vectors.npy", source.catalogue.vectors(source.ids))
    return [target / name for name in (*files, "vectors.npy")]


FORMATS: Mapping[str, Callable[[_Source, Path], list[Path]]] = {
    "npy": _npy,
    "parquet": _parquet,
    "tsv": _tsv,
    "trec": _trec,
    "atlas": _atlas,
    "fiftyone": _fiftyone,
}


def _text(path: Path) -> Any:
    # A path that is not UTF-8 keeps its bytes.
    return path.open("w", encoding="utf-8", errors="surrogateescape", newline="")


def _cell(value: Any) -> str:
    """One cell of a format that has no quoting."""
    return "" if value is None else " ".join(str(value).split("\t")).replace("\n", " ").replace("\r", " ")


def _printable(path: str) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")
