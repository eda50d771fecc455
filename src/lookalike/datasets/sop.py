"""Stanford Online Products (Song et al., CVPR 2016): 120,053 pictures of 22,634 products."""

from __future__ import annotations

import os

from lookalike.datasets.layout import Layout, lines
from lookalike.datasets.pictures import LabelledPictures

LAYOUT = Layout(
    title="Stanford Online Products",
    folder="Stanford_Online_Products",
    tree="Stanford_Online_Products/ with Ebay_train.txt, Ebay_test.txt and bicycle_final/111085122871_0.JPG, ….",
)


def read_sop(root: str | os.PathLike[str]) -> LabelledPictures:
    """Read Stanford Online Products; `label` is the kind (bicycle, chair, …) and `identity` the product.

    Raises:
        NotFoundError: a list is missing; it is named.
        InputError: a line that cannot be read.
    """
    folder = LAYOUT.find(root, "Ebay_train.txt", "Ebay_test.txt")
    rows = [
        (split, identity, name)
        for split in ("train", "test")
        for _, identity, _, name in lines(folder / f"Ebay_{split}.txt", 4, skip=1)
    ]
    columns = {
        "label": tuple(name.partition("/")[0].removesuffix("_final") for _, _, name in rows),
        "identity": tuple(identity for _, identity, _ in rows),
        "split": tuple(split for split, _, _ in rows),
    }
    return LAYOUT.pictures(folder, [name for _, _, name in rows], columns)
