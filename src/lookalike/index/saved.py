"""An index on disk: whole generations in one folder, and one small file that says which of them answers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Ids
from lookalike.errors import CatalogueError, NotFoundError
from lookalike.index.ann import AnnIndex
from lookalike.index.fresh import Changes
from lookalike.index.kinds import settings_dict, settings_for
from lookalike.index.library import faiss
from lookalike.index.neighbours import check_metric
from lookalike.index.overlap import Overlap
from lookalike.index.scan import Gallery
from lookalike.index.structure import Structure

FORMAT = 1
CURRENT = "CURRENT"
KEPT = 2  # the newest generation, and the one before it for readers that still have it open
_DAMAGED = "Delete the folder and build the index again; it holds nothing the vectors do not."


def save(
    index: AnnIndex, folder: Path, *, vectors_file: Path | None = None, stamp: Mapping[str, Any] | None = None
) -> Path:
    """Write a new generation and switch to it; until the switch, and after any failure, the old one answers.

    `vectors_file` is an .npy file that already holds the (n, d) float32 vectors in id order (the derived vector file of
    a catalogue): it is referred to, not copied. `stamp` is kept with the generation (`read_stamp`): the revision of the
    catalogue, the digest of the encoder. Older generations than the last two are removed.

    Raises:
        OSError: the disk is full or read-only; nothing has changed.
        CatalogueError: `vectors_file` has another shape than the index.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(path.name[4:]) for path in _generations(folder)), default=0)
    draft = folder / f"draft-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    draft.mkdir()
    try:
        _write(index, draft, folder, vectors_file, dict(stamp or {}))
        final = folder / f"gen-{number:06d}"
        draft.rename(final)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    _sync(folder)
    _switch(folder, final.name)
    for old in _generations(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def load(folder: Path, *, mapped: bool = False) -> AnnIndex:
    """Open the current generation; original vectors are mapped, the structure is read (mapped too with `mapped`).

    Raises:
        NotFoundError: no index was saved there.
        CatalogueError: a file is missing or damaged, or was written by a newer version; its name is given.
    """
    here = _current(folder)
    meta = _meta(here)
    try:
        ids: Ids = np.load(here / "ids.npy")
        if len(ids) != meta["count"] or _digest(ids) != meta["ids_digest"]:
            raise CatalogueError(f"{here / 'ids.npy'} is not the file the index was saved with.", hint=_DAMAGED)
        gallery = _gallery(here, meta)
        dead = np.load(here / "dead.npy") if meta["dead"] else None
        changes = Changes(dead, np.load(here / "fresh_ids.npy"), np.load(here / "fresh_vectors.npy"))
        structure = None
        settings = settings_for(meta["kind"], meta["settings"])
        if meta["kind"] != "flat":
            library = faiss()
            flags = library.IO_FLAG_MMAP_IFC if mapped else 0
            raw = library.read_index(str(here / "index.faiss"), flags)
            structure = Structure(raw, settings, gallery.metric, meta["rotated"])
            if structure.n != len(ids):
                raise CatalogueError(f"{here / 'index.faiss'} holds {structure.n} rows, not {len(ids)}.", hint=_DAMAGED)
    except (OSError, ValueError, KeyError, EOFError, RuntimeError) as error:
        if isinstance(error, CatalogueError):
            raise
        raise CatalogueError(f"The index in {here} cannot be read: {_first_line(error)}", hint=_DAMAGED) from error
    return AnnIndex(
        gallery,
        ids,
        structure,
        settings,
        asked=settings_for(meta["kind"], meta["asked"]),
        seed=meta["seed"],
        notices=meta["notices"],
        overlap=Overlap(**meta["overlap"]) if meta["overlap"] else None,
        changes=changes,
    )


def read_stamp(folder: Path) -> dict[str, Any]:
    """Return the stamp of the current generation.

    Raises:
        NotFoundError, CatalogueError: as `load`.
    """
    stamp: dict[str, Any] = _meta(_current(folder))["stamp"]
    return stamp


def _write(index: AnnIndex, draft: Path, folder: Path, vectors_file: Path | None, stamp: dict[str, Any]) -> None:
    changes, gallery = index.changes, index.gallery
    if vectors_file is None:
        np.save(draft / "vectors.npy", gallery.vectors)
        where = "vectors.npy"
    else:
        shape = np.load(vectors_file, mmap_mode="r").shape
        if shape != gallery.vectors.shape:
            raise CatalogueError(f"{vectors_file} holds {shape} vectors and the index {gallery.vectors.shape}.")
        where = os.path.relpath(vectors_file.resolve(), folder.resolve() / "gen-000000")
    np.save(draft / "ids.npy", index.indexed_ids)
    np.save(draft / "fresh_ids.npy", changes.ids)
    np.save(draft / "fresh_vectors.npy", changes.vectors)
    if changes.dead is not None:
        np.save(draft / "dead.npy", changes.dead)
    if index.structure is not None:
        faiss().write_index(index.structure.index, str(draft / "index.faiss"))
    (draft / "meta.json").write_text(json.dumps(_describe(index, where, stamp), indent=1), encoding="utf-8")
    for path in draft.iterdir():
        _sync(path)
    _sync(draft)


def _describe(index: AnnIndex, where: str, stamp: dict[str, Any]) -> dict[str, Any]:
    gallery = index.gallery
    return {
        "format": FORMAT,
        "kind": index.kind,
        "settings": settings_dict(index.settings),
        "asked": settings_dict(index.asked),
        "metric": index.metric,
        "dim": index.dim,
        "count": len(index.indexed_ids),
        "ids_digest": _digest(index.indexed_ids),
        "vectors": where,
        "longest": gallery.longest,
        "ready": "none" if gallery.ready is None else "same" if gallery.ready is gallery.vectors else "copy",
        "dead": index.changes.dead is not None,
        "rotated": index.structure.rotated if index.structure is not None else False,
        "seed": index.seed,
        "notices": list(index.notices),
        "overlap": None if index.overlap is None else vars(index.overlap),
        "faiss": faiss().__version__,
        "stamp": stamp,
    }


def _gallery(here: Path, meta: dict[str, Any]) -> Gallery:
    mapped = np.load(here / meta["vectors"], mmap_mode="r" if meta["count"] else None)  # nothing cannot be mapped
    if mapped.shape != (meta["count"], meta["dim"]) or mapped.dtype != np.float32:
        raise CatalogueError(f"{here / meta['vectors']} holds {mapped.shape} {mapped.dtype}.", hint=_DAMAGED)
    vectors = np.asarray(mapped)  # a plain view of the map: the subclass costs microseconds at every index
    metric = check_metric(meta["metric"])
    if meta["ready"] == "copy":
        return Gallery.of(vectors, metric, scale=True)
    return Gallery(vectors, metric, vectors if meta["ready"] == "same" else None, meta["longest"])


def _current(folder: Path) -> Path:
    pointer = folder / CURRENT
    if not pointer.is_file():
        raise NotFoundError(f"No index was saved in {folder}.", hint="Build one first.")
    here = folder / pointer.read_text(encoding="utf-8").strip()
    if not here.is_dir():
        raise CatalogueError(f"{pointer} names {here.name}, which is not there.", hint=_DAMAGED)
    return here


def _meta(here: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads((here / "meta.json").read_text(encoding="utf-8"))
        version = int(meta["format"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogueError(f"{here / 'meta.json'} cannot be read: {_first_line(error)}", hint=_DAMAGED) from error
    if version > FORMAT:
        raise CatalogueError(f"{here} was written by a newer version (format {version}, known up to {FORMAT}).")
    return meta


def _switch(folder: Path, name: str) -> None:
    draft = folder / f"{CURRENT}.{os.getpid()}"
    draft.write_text(name, encoding="utf-8")
    _sync(draft)
    draft.replace(folder / CURRENT)
    _sync(folder)


def _generations(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("gen-*") if path.name[4:].isdigit())


def _digest(ids: Ids) -> str:
    return hashlib.blake2b(np.ascontiguousarray(ids).tobytes(), digest_size=16).hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
