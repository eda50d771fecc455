"""Revisited Oxford and Paris (Radenović et al., CVPR 2018): 70 queries, each with easy, hard and junk answers."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.datasets.layout import Layout
from lookalike.datasets.pictures import LabelledPictures
from lookalike.errors import InputError, NotFoundError

Names = frozenset[str]

SETS = {"oxford": "roxford5k", "paris": "rparis6k"}


@dataclass(frozen=True, kw_only=True)
class RevisitedTruth:
    """For each query, by name, the pictures that are easy to find, hard to find, and neither right nor wrong (junk).

    Names, not positions, because a picture that cannot be read would shift every position after it.
    """

    easy: dict[str, Names]
    hard: dict[str, Names]
    junk: dict[str, Names]

    def positions(self, queries: Sequence[str], gallery: Sequence[str]) -> dict[str, list[list[int]]]:
        """Return, under `easy`, `hard` and `junk`, for each query the positions in this gallery, ascending.

        Raises:
            InputError: a query the truth does not know.
        """
        place = {name: position for position, name in enumerate(gallery)}
        unknown = [name for name in queries if name not in self.easy]
        if unknown:
            raise InputError(f"The ground truth holds no query {unknown[0]!r}.")
        return {
            kind: [sorted(place[name] for name in answers[query] if name in place) for query in queries]
            for kind, answers in (("easy", self.easy), ("hard", self.hard), ("junk", self.junk))
        }


def read_roxford(root: str | os.PathLike[str]) -> LabelledPictures:
    """Read revisited Oxford; see `read_revisited`."""
    return read_revisited(root, "oxford")


def read_rparis(root: str | os.PathLike[str]) -> LabelledPictures:
    """Read revisited Paris; see `read_revisited`."""
    return read_revisited(root, "paris")


def read_revisited(root: str | os.PathLike[str], which: str) -> LabelledPictures:
    """Read the queries and the gallery; `box` is the part of a query that is asked for, `left,top,right,bottom`.

    Raises:
        NotFoundError: a file is missing; it is named.
        InputError: a ground truth that cannot be read, or holds anything but lists and numbers.
    """
    layout, folder, truth = _open(root, which)
    queries, gallery = (truth["qimlist"], truth["imlist"])
    boxes = [",".join(str(float(edge)) for edge in each["bbx"]) for each in truth["gnd"]]
    columns = {
        "split": ("query",) * len(queries) + ("gallery",) * len(gallery),
        "box": (*boxes, *(None for _ in gallery)),
    }
    return layout.pictures(folder, [_name(each) for each in (*queries, *gallery)], columns)


def read_truth(root: str | os.PathLike[str], which: str) -> RevisitedTruth:
    """Read which pictures are easy, hard and junk for each query.

    Raises:
        NotFoundError: a file is missing; it is named.
        InputError: a ground truth that cannot be read, or that points outside its own list.
    """
    _, _, truth = _open(root, which)
    gallery = [_name(each) for each in truth["imlist"]]
    kinds: dict[str, dict[str, Names]] = {"easy": {}, "hard": {}, "junk": {}}
    for query, answers in zip(truth["qimlist"], truth["gnd"], strict=True):
        for kind, found in kinds.items():
            positions = [int(each) for each in answers[kind]]
            if positions and not 0 <= min(positions) <= max(positions) < len(gallery):
                raise InputError(f"The ground truth of {query} points outside its {len(gallery)} pictures.")
            found[_name(query)] = frozenset(gallery[each] for each in positions)
    return RevisitedTruth(**kinds)


def _name(stem: str) -> str:
    return f"jpg/{stem}.jpg"


def _open(root: str | os.PathLike[str], which: str) -> tuple[Layout, Path, dict[str, Any]]:
    name = SETS[which]
    layout = Layout(
        title=f"revisited {which.capitalize()}",
        folder=name,
        tree=f"{name}/ with gnd_{name}.pkl (or .json, the same content) and jpg/….jpg.",
    )
    readers = {f"gnd_{name}.json": _from_json, f"gnd_{name}.pkl": _from_pickle}
    for file, read in readers.items():
        try:
            folder = layout.find(root, file, "jpg")
        except NotFoundError:
            continue
        return layout, folder, _checked(read(folder / file), folder / file)
    layout.find(root, f"gnd_{name}.pkl", "jpg")
    raise NotFoundError(f"{str(root)!r} is not {layout.title}.", hint=f"Expected: {layout.tree}")


def _from_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}.") from error


def _from_pickle(path: Path) -> Any:
    with path.open("rb") as file:
        try:
            return _Plain(file, encoding="latin1").load()
        except InputError:
            raise
        except Exception as error:  # a pickle is a program: a broken one can raise anything
            raise InputError(f"{path} cannot be read as a pickle: {error}.") from error


class _Plain(pickle.Unpickler):
    """Loads lists, dictionaries, text and numbers, numpy's included, and refuses to name anything else.

    A pickle may call any function it can name; the ground truth needs only those below.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few names admitted."""
        plain = _admitted()
        short = module.removeprefix("numpy.core.").removeprefix("numpy._core.")
        if (short, name) not in plain:
            raise InputError(
                f"The ground truth asks for {module}.{name}, which is no plain data.",
                hint="It may have been tampered with; fetch it again from the authors' page.",
            )
        return plain[short, name]


def _admitted() -> dict[tuple[str, str], Any]:
    """What a pickle of lists, text, numbers and numpy arrays names, in any protocol, from Python 2 and 3."""
    import numpy as np
    from numpy._core import multiarray

    return {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("multiarray", "scalar"): multiarray.scalar,
        ("multiarray", "_reconstruct"): multiarray._reconstruct,
        ("numeric", "_frombuffer"): lambda buffer, dtype, shape, order: np.frombuffer(buffer, dtype=dtype).reshape(
            shape, order=order
        ),
        ("_codecs", "encode"): _latin1,
        ("__builtin__", "bytes"): lambda: b"",  # how protocols below 3 write empty bytes; bytes(10**12) is refused
        ("builtins", "bytes"): lambda: b"",
    }


def _latin1(text: str, encoding: str) -> bytes:
    """Do the one encoding by which numpy writes bytes into a pickle of protocol 2."""
    if encoding not in ("latin1", "latin-1"):
        raise InputError(f"The ground truth asks for the encoding {encoding!r}.")
    return text.encode("latin1")


def _checked(content: Any, path: Path) -> dict[str, Any]:
    """Check that all three lists are there and fit."""
    if not isinstance(content, dict) or not {"imlist", "qimlist", "gnd"} <= content.keys():
        raise InputError(f"{path} holds no dictionary of imlist, qimlist and gnd.")
    if len(content["qimlist"]) != len(content["gnd"]):
        raise InputError(f"{path} has {len(content['qimlist'])} queries and {len(content['gnd'])} answers.")
    for query, answers in zip(content["qimlist"], content["gnd"], strict=True):
        lacking = sorted({"bbx", "easy", "hard", "junk"} - set(answers))
        if lacking:
            raise InputError(f"{path}: the query {query} has no {', '.join(lacking)}.")
    return content
