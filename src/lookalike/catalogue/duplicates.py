"""Duplicates at three levels: the same bytes, the same pixels, and pictures that merely look alike."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from lookalike.catalogue.components import components
from lookalike.catalogue.items import Item
from lookalike.embed.ordered import ordered_map
from lookalike.errors import ImageError, InputError
from lookalike.images.load import Failure, load
from lookalike.threads import resolve as resolve_threads

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue

Level: TypeAlias = Literal["bytes", "pixels", "similar"]
PIXELS_COSINE = 0.97
"""Files whose decoded pixels are equal have all but equal vectors (a JPEG may have been decoded at a reduced scale):
only pictures of one size and at least this cosine are decoded to be compared."""


@dataclass(frozen=True)
class Group:
    """Items that are duplicates of each other at one level, the keeper first."""

    level: Level
    items: tuple[Item, ...]

    @property
    def keeper(self) -> Item:
        """The one to keep: the largest picture, then the oldest file, then the first path."""
        return self.items[0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "level": self.level,
            "items": [{"id": item.id, "path": item.path} for item in self.items],
            "keeper": self.keeper.id,
        }


@dataclass(frozen=True)
class Duplicates:
    """All groups, strongest level first, and the files that could not be compared."""

    groups: tuple[Group, ...]
    unreadable: tuple[Failure, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"groups": [group.to_dict() for group in self.groups]}


def duplicates(
    catalogue: Catalogue,
    *,
    at_least: float = 0.97,
    where: str | None = None,
    pixels: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Duplicates:
    """Group the items that are the same bytes, the same decoded pixels, or have a cosine of at least `at_least`.

    A group of a weaker level is listed only where it holds more than one group, or item, of the stronger ones. Nothing
    is deleted. `pixels=False` opens no file. The similar level compares all pairs: 100,000 items of 1280-d take
    minutes, not seconds.

    Raises:
        InputError: `at_least` outside -1..1, or a filter that cannot be understood.
    """
    if not -1 <= at_least <= 1:
        raise InputError(f"at_least={at_least}: a cosine lies between -1 and 1.")
    ids = catalogue.ids(where=where)
    every = catalogue.items(ids)
    same_bytes = _grouped(every, lambda item: item.file.content or item.id)
    firsts = [group[0] for group in same_bytes]
    vectors = catalogue.vectors(np.array([item.id for item in firsts], dtype=np.int64))
    linked = components(vectors, at_least, progress=progress)
    near = linked if at_least <= PIXELS_COSINE else components(vectors, PIXELS_COSINE, progress=progress)
    unreadable: list[Failure] = []
    hashes = _pixel_hashes(catalogue, firsts, near.tolist(), unreadable) if pixels and catalogue.root else {}
    by_first = {group[0].id: group for group in same_bytes}
    same_pixels = _grouped(firsts, lambda item: hashes.get(item.id, item.id))
    component = {item.id: int(label) for item, label in zip(firsts, linked, strict=True)}
    similar = _grouped([group[0] for group in same_pixels], lambda item: component[item.id])
    by_pixel = {group[0].id: [item for first in group for item in by_first[first.id]] for group in same_pixels}
    found = [Group("bytes", _kept_first(group)) for group in same_bytes if len(group) > 1]
    found += [Group("pixels", _kept_first(by_pixel[group[0].id])) for group in same_pixels if len(group) > 1]
    found += [
        Group("similar", _kept_first(item for first in group for item in by_pixel[first.id]))
        for group in similar
        if len(group) > 1
    ]
    return Duplicates(tuple(found), tuple(unreadable))


def agreement(found: Duplicates, labels: Mapping[int, Hashable], *, level: Level = "similar") -> float | None:
    """Return the share of pairs within groups of a level whose labels are equal (precision against labels).

    Items without a label are left out; None where no pair is left.
    """
    equal = pairs = 0
    for group in found.groups:
        if group.level != level:
            continue
        counts: dict[Hashable, int] = defaultdict(int)
        for item in group.items:
            if labels.get(item.id) is not None:
                counts[labels[item.id]] += 1
        n = sum(counts.values())
        pairs += n * (n - 1) // 2
        equal += sum(count * (count - 1) // 2 for count in counts.values())
    return equal / pairs if pairs else None


def _grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    groups: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return list(groups.values())


def _kept_first(group: Iterable[Item]) -> tuple[Item, ...]:
    def rule(item: Item) -> tuple[float, float, str]:
        area = (item.file.width or 0) * (item.file.height or 0)
        age = item.file.mtime_ns if item.file.mtime_ns is not None else float("inf")
        return -area, age, item.path

    return tuple(sorted(group, key=rule))


def _pixel_hashes(
    catalogue: Catalogue, firsts: list[Item], near: list[int], unreadable: list[Failure]
) -> dict[int, bytes]:
    """Return the hash of the decoded pixels of every item that has a rival of its size nearby."""
    candidates: dict[Hashable, list[Item]] = defaultdict(list)
    for item, label in zip(firsts, near, strict=True):
        if item.file.content:
            candidates[label, item.file.width, item.file.height].append(item)
    rivals = [item for group in candidates.values() if len(group) > 1 for item in group]
    root = catalogue.root or Path()
    count = resolve_threads(catalogue.threads)

    def hashed(item: Item) -> bytes | Failure:
        try:
            return _hash(os.fspath(root / item.path))
        except ImageError as error:
            return Failure(item.path, error.reason, error.detail)

    hashes = {}
    for item, result in zip(rivals, ordered_map(hashed, rivals, threads=count, ahead=2 * count), strict=True):
        if isinstance(result, Failure):
            unreadable.append(result)
        else:
            hashes[item.id] = result
    return hashes


def _hash(path: str) -> bytes:
    pixels = load(path).pixels
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()
