"""Cars-196 (Krause et al., 2013): 16,185 cars of 196 models, in either of its two published layouts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lookalike.datasets.layout import Layout
from lookalike.datasets.pictures import LabelledPictures
from lookalike.errors import InputError, NotFoundError

LAYOUT = Layout(
    title="Cars-196",
    folder="stanford_cars",
    tree="cars_annos.mat beside car_ims/000001.jpg, …; or cars_train/, cars_test/ and devkit/ with cars_meta.mat, "
    "cars_train_annos.mat and cars_test_annos_withlabels.mat.",
)
TRAINING_CLASSES = 98
"""Classes 1..98 train and 99..196 test: the split of metric learning (Song et al., CVPR 2016), by whole models."""


def read_cars(root: str | os.PathLike[str]) -> LabelledPictures:
    """Read Cars-196; `label` is the model and `split` that of metric learning, not of classification.

    Raises:
        NotFoundError: a file is missing; it is named.
        InputError: an annotation file that cannot be read.
    """
    try:
        folder = LAYOUT.find(root, "cars_annos.mat")
    except NotFoundError:
        folder = LAYOUT.find(root, "devkit/cars_meta.mat", "devkit/cars_train_annos.mat", *_WITH_LABELS)
        found = _read_devkit(folder)
        models = _names(_load(folder / "devkit/cars_meta.mat"))
    else:
        annotations = _load(folder / "cars_annos.mat")
        models = _names(annotations)
        found = [(str(each["relative_im_path"]), int(each["class"])) for each in _rows(annotations)]
    for name, number in found:
        if not 1 <= number <= len(models):
            raise InputError(f"{folder}: {name} has class {number}, outside 1..{len(models)}.")
    columns = {
        "label": tuple(models[number - 1] for _, number in found),
        "split": tuple("train" if number <= TRAINING_CLASSES else "test" for _, number in found),
    }
    return LAYOUT.pictures(folder, [name for name, _ in found], columns)


_WITH_LABELS = ("devkit/cars_test_annos_withlabels.mat",)


def _read_devkit(folder: Path) -> list[tuple[str, int]]:
    parts = (("cars_train", "cars_train_annos.mat"), ("cars_test", "cars_test_annos_withlabels.mat"))
    return [
        (f"{pictures}/{each['fname']}", int(each["class"]))
        for pictures, annotations in parts
        for each in _rows(_load(folder / "devkit" / annotations))
    ]


def _load(path: Path) -> dict[str, Any]:
    import scipy.io

    try:
        content: dict[str, Any] = scipy.io.loadmat(str(path), squeeze_me=True, mat_dtype=False)
    except (ValueError, TypeError, NotImplementedError, OSError) as error:
        raise InputError(f"{path} cannot be read as a MATLAB file: {error}") from error
    return content


def _rows(content: dict[str, Any]) -> list[Any]:
    if "annotations" not in content:
        raise InputError("The annotation file of Cars-196 has no variable 'annotations'.")
    return list(content["annotations"].ravel())


def _names(content: dict[str, Any]) -> list[str]:
    if "class_names" not in content:
        raise InputError("The annotation file of Cars-196 has no variable 'class_names'.")
    return [str(name) for name in content["class_names"].ravel()]
