"""In-Shop Clothes Retrieval, of DeepFashion (Liu et al., CVPR 2016): 52,712 pictures of 7,982 garments."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from lookalike.datasets.layout import Layout, lines
from lookalike.datasets.pictures import LabelledPictures
from lookalike.errors import InputError, NotFoundError

LAYOUT = Layout(
    title="In-Shop Clothes Retrieval",
    folder="In-shop Clothes Retrieval Benchmark",
    tree="Eval/list_eval_partition.txt (or Anno/…) and img/WOMEN/Dresses/id_00000002/02_1_front.jpg (or Img/img/…).",
)
SPLITS = frozenset({"train", "query", "gallery"})


def read_inshop(root: str | os.PathLike[str]) -> LabelledPictures:
    """Read In-Shop; `label` is the kind of garment, `identity` the garment and `split` train, query or gallery.

    Raises:
        NotFoundError: the list or the pictures are missing; what is missing is named.
        InputError: a split that is none of the three.
    """
    try:
        folder = LAYOUT.find(root, "Anno/list_eval_partition.txt")
        listed = folder / "Anno/list_eval_partition.txt"
    except NotFoundError:
        folder = LAYOUT.find(root, "Eval/list_eval_partition.txt")
        listed = folder / "Eval/list_eval_partition.txt"
    inside = next((each for each in ("", "Img/") if (folder / each / "img").is_dir()), None)
    if inside is None:
        raise NotFoundError(f"{str(folder)!r} is not {LAYOUT.title}: img is missing.", hint=f"Expected: {LAYOUT.tree}")
    rows = list(lines(listed, 3, skip=2))
    for name, _, split in rows:
        if split not in SPLITS:
            raise InputError(f"{listed}: {name} has the status {split!r}, which is none of train, query, gallery.")
    columns = {
        "label": tuple(PurePosixPath(name).parts[-3] if name.count("/") > 2 else None for name, _, _ in rows),
        "identity": tuple(identity for _, identity, _ in rows),
        "split": tuple(split for _, _, split in rows),
    }
    return LAYOUT.pictures(folder, [f"{inside}{name}" for name, _, _ in rows], columns)
