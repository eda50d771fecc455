"""CUB-200-2011 (Wah et al., 2011): 11,788 birds of 200 species."""

from __future__ import annotations

import os

from lookalike.datasets.layout import Layout, lines, whole
from lookalike.datasets.pictures import LabelledPictures
from lookalike.errors import InputError

LAYOUT = Layout(
    title="CUB-200-2011",
    folder="CUB_200_2011",
    tree="CUB_200_2011/ with images.txt, image_class_labels.txt, classes.txt and images/001.Black_footed_Albatross/….",
)
TRAINING_CLASSES = 100
"""Classes 1..100 train and 101..200 test: the split of metric learning (Song et al., CVPR 2016), by whole species."""


def read_cub(root: str | os.PathLike[str]) -> LabelledPictures:
    """Read CUB-200-2011; `label` is the species and `split` that of metric learning, not of classification.

    Raises:
        NotFoundError: a list is missing; it is named.
        InputError: lists that do not fit one another.
    """
    folder = LAYOUT.find(root, "images.txt", "image_class_labels.txt", "classes.txt", "images")
    names = dict(lines(folder / "images.txt", 2))
    species = dict(lines(folder / "classes.txt", 2))
    of_picture = dict(lines(folder / "image_class_labels.txt", 2))
    for picture in names:
        if of_picture.get(picture) not in species:
            raise InputError(f"{folder}: picture {picture} of images.txt has no class in image_class_labels.txt.")
    classes = [whole(of_picture[picture], folder / "image_class_labels.txt") for picture in names]
    columns = {
        "label": tuple(species[of_picture[picture]] for picture in names),
        "split": tuple("train" if number <= TRAINING_CLASSES else "test" for number in classes),
    }
    return LAYOUT.pictures(folder, [f"images/{name}" for name in names.values()], columns)
