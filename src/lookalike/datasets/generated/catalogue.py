"""The generated catalogue: which categories, objects and views there are, and the files that hold them."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from lookalike.datasets.generated import belongings, footwear, furniture, instruments, vessels
from lookalike.datasets.generated.look import Look, look
from lookalike.datasets.generated.mesh import Mesh, lift
from lookalike.datasets.generated.photograph import Conditions, photograph
from lookalike.datasets.generated.workers import divide
from lookalike.errors import InputError

Builder: TypeAlias = Callable[[np.random.Generator, Look], list[Mesh]]

CATEGORIES: Mapping[str, Builder] = {
    "backpack": belongings.backpack,
    "bottle": vessels.bottle,
    "chair": furniture.chair,
    "clock": instruments.clock,
    "flower-pot": vessels.flower_pot,
    "guitar": instruments.guitar,
    "headphones": belongings.headphones,
    "lamp": furniture.lamp,
    "mug": vessels.mug,
    "sneaker": footwear.sneaker,
    "teapot": vessels.teapot,
    "umbrella": belongings.umbrella,
}
PATTERNS = ("plain", "rings", "stripes", "dots", "checks", "zigzag", "waves", "band", "speckle", "fade")
COLOURWAYS = 2
"""Objects of one model: the same shape, pattern and mark in other colours, as shops sell them."""
MANIFEST = "manifest.csv"
COLUMNS = ("path", "label", "identity", "model", "split", "camera")


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One picture to be taken: view `view` of object `instance` of the category."""

    category: str
    instance: int
    view: int

    @property
    def identity(self) -> str:
        """`mug-03`"""
        return f"{self.category}-{self.instance:02d}"

    @property
    def path(self) -> str:
        """`mug/mug-03/1.jpg`"""
        return f"{self.category}/{self.identity}/{self.view}.jpg"


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """What is drawn: everything that decides the bytes.

    Raises:
        InputError: a number out of range.
    """

    seed: int = 0
    instances: int = 10
    views: int = 5
    size: int = 256

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("instances", 1), ("views", 2), ("size", 32)):
            if getattr(self, name) < least:
                raise InputError(f"{name}={getattr(self, name)} is less than {least}.")

    def shots(self) -> list[Shot]:
        """Every picture, in the order of the manifest."""
        return [
            Shot(category=category, instance=instance, view=view)
            for category in CATEGORIES
            for instance in range(self.instances)
            for view in range(self.views)
        ]

    def take(self, shot: Shot, folder: Path) -> None:
        """Build the object, photograph it and write the file; nothing depends on what was drawn before."""
        place = list(CATEGORIES).index(shot.category)
        of_model = np.random.default_rng([self.seed, place, shot.instance // COLOURWAYS])
        of_object = np.random.default_rng([self.seed, place, shot.instance, 0])
        of_view = np.random.default_rng([self.seed, place, shot.instance, shot.view + 1])
        parts = lift(CATEGORIES[shot.category](of_model, look(of_model, of_object, PATTERNS)))
        picture = photograph(parts, of_view, Conditions(), self.size)
        picture.save(folder / shot.path, "JPEG", quality=90)


def generate(
    root: str | os.PathLike[str],
    *,
    seed: int = 0,
    instances: int = 10,
    views: int = 5,
    size: int = 256,
    workers: int | None = None,
) -> Path:
    """Draw a catalogue of twelve categories of things and return its manifest: 600 pictures, about 15 s on two cores.

    Each picture has a `label` (WHAT it is: mug), an `identity` (WHICH one it is: mug-03), a `model` (objects that
    differ in colour alone share one), a `camera` (one a view) and a `split`: the last two views of every object are
    `query`, the others `gallery`. The objects of a category differ in colours, pattern, mark and proportions; the
    views of one object in pose, size, light, background and in what stands in the way. So a general encoder finds the
    category easily, and the object hardly.

    The same seed gives the same bytes, however many processes draw. Files of a catalogue that is there are replaced;
    the manifest is written last, so that where it is, the pictures are.

    Args:
        root: A new folder, an empty one, or one that a catalogue was generated into.
        seed: Another seed draws other objects; from 0.
        instances: Objects a category, from 1.
        views: Pictures an object, from 2.
        size: Pixels a side, from 32.
        workers: Processes that draw; one a processor by default.

    Raises:
        InputError: a folder that holds something else, or a number out of range.
    """
    catalogue = Catalogue(seed=seed, instances=instances, views=views, size=size)
    folder = Path(root)
    unfinished = folder / f"{MANIFEST}.part"
    _claim(folder, unfinished)
    shots = catalogue.shots()
    wanted = {folder / shot.path for shot in shots}
    for path in {path.parent for path in wanted}:
        path.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*/*-[0-9][0-9]/*.jpg"):  # of a larger catalogue drawn here before
        if path.parts[-3] in CATEGORIES and path not in wanted:
            path.unlink()
    settings = {"seed": seed, "instances": instances, "views": views, "size": size}
    if not divide(settings, folder, pictures=len(shots), workers=workers):
        for shot in shots:
            catalogue.take(shot, folder)
    with unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_rows(shots, views))
    return unfinished.replace(folder / MANIFEST)


def _claim(folder: Path, unfinished: Path) -> None:
    """Mark the folder as ours and unfinished, so that a killed run can be repeated and nothing else is overwritten."""
    ours = (folder / MANIFEST).exists() or unfinished.exists()
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not ours)):
        raise InputError(f"{str(folder)!r} exists and holds no generated catalogue.", hint="Name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    unfinished.touch()


def _rows(shots: list[Shot], views: int) -> Iterator[tuple[str, ...]]:
    asking = min(2, views - 1)
    for shot in shots:
        split = "query" if shot.view >= views - asking else "gallery"
        model = f"{shot.category}-model-{shot.instance // COLOURWAYS}"
        yield shot.path, shot.category, shot.identity, model, split, f"camera-{shot.view + 1}"
