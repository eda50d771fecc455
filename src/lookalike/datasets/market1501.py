"""Market-1501 (Zheng et al., ICCV 2015): 1,501 people before six cameras."""

from __future__ import annotations

import os
import re

from lookalike.datasets.layout import Layout
from lookalike.datasets.pictures import LabelledPictures

LAYOUT = Layout(
    title="Market-1501",
    folder="Market-1501-v15.09.15",
    tree="bounding_box_train/, bounding_box_test/ and query/, each with files such as 0002_c1s1_000451_03.jpg.",
)
NAME = re.compile(r"(?P<identity>-1|\d+)_c(?P<camera>\d+)s(?P<sequence>\d+)_\d+_\d+\.jpe?g", re.IGNORECASE)
FOLDERS = {"train": "bounding_box_train", "gallery": "bounding_box_test", "query": "query"}


def read_market1501(root: str | os.PathLike[str]) -> LabelledPictures:
    """Read Market-1501; `identity` and `camera` come from the file name, and `split` from the folder.

    The gallery folder holds two kinds of boxes that are nobody. Junk (identity -1: bad detections of somebody) has the
    split `junk`, because the protocol takes it out of the ranking. Distractors (identity 0000: background) stay in the
    gallery and have no identity, so that they are never right and do take up ranks.

    Raises:
        NotFoundError: a folder is missing; it is named.
        InputError: no pictures with a name of this layout.
    """
    folder = LAYOUT.find(root, *FOLDERS.values())
    names: list[str] = []
    identities: list[str | None] = []
    cameras: list[str] = []
    splits: list[str] = []
    skipped = 0
    for split, inside in FOLDERS.items():
        for entry in sorted(path.name for path in (folder / inside).iterdir()):
            match = NAME.fullmatch(entry)
            if match is None:
                skipped += 1
                continue
            nobody = {-1: "junk", 0: "distractor"}.get(int(match["identity"]))
            names.append(f"{inside}/{entry}")
            identities.append(None if nobody else match["identity"])
            cameras.append(match["camera"])
            splits.append("junk" if nobody == "junk" else split)
    columns = {"identity": tuple(identities), "camera": tuple(cameras), "split": tuple(splits)}
    found = LAYOUT.pictures(folder, names, columns)
    return LabelledPictures(
        root=found.root,
        names=found.names,
        paths=found.paths,
        columns=columns,
        skipped={"other name": skipped} if skipped else {},
    )
