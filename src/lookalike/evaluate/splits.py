"""Which pictures ask and which answer, when the source does not say: hold-outs and folds, seeded."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lookalike.errors import InputError, ShapeError

HoldoutBy: TypeAlias = Literal["item", "identity"]


@dataclass(frozen=True, kw_only=True)
class Split:
    """Rows that ask, rows that answer, and rows that do neither.

    Where `leave_one_out` is true, query and gallery are the same rows: every picture asks, and its own row is removed
    from the answers by id. `digest` is that of the names on either side, and of no seed: two ways to the same split
    are the same split.
    """

    query: tuple[int, ...]
    gallery: tuple[int, ...]
    rest: tuple[int, ...]
    """Rows left out: the identities a model may train on, and pictures without a label."""
    description: str
    """In words, for the report: `holdout 0.2 by item (seed 0)`."""
    digest: str

    @classmethod
    def of_rows(cls, names: Sequence[str], query: Sequence[int], gallery: Sequence[int], description: str) -> Split:
        """Make a split of rows that the source itself names, for example by a column `split`."""
        used = {*query, *gallery}
        digest = hashlib.blake2b(digest_size=8)
        for rows in (query, gallery):
            for name in sorted(names[row] for row in rows):
                digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
            digest.update(b"\1")
        return cls(
            query=tuple(sorted(query)),
            gallery=tuple(sorted(gallery)),
            rest=tuple(row for row in range(len(names)) if row not in used),
            description=description,
            digest=digest.hexdigest(),
        )

    @property
    def leave_one_out(self) -> bool:
        """Whether query and gallery are the same rows."""
        return self.query == self.gallery


def leave_one_out(names: Sequence[str]) -> Split:
    """Let every picture ask all the others.

    >>> leave_one_out(["a", "b"]).query
    (0, 1)
    """
    rows = list(range(len(names)))
    return Split.of_rows(names, rows, rows, "leave-one-out")


def holdout(
    names: Sequence[str],
    labels: Sequence[str | None],
    fraction: float,
    *,
    by: HoldoutBy = "item",
    seed: int = 0,
) -> Split:
    """Hold out a share of the pictures of every class (`item`), or a share of the classes themselves (`identity`).

    By item: in every class of n ≥ 2 pictures round(fraction · n) of them ask, at least one and at most n - 1, and the
    others answer; the only picture of a class answers. This measures classes the gallery knows.

    By identity: whole classes are held out, round(fraction · classes) and at least two, and their pictures ask one
    another, leave-one-out; everything else is `rest`, which is what a model may be trained on. This is the protocol of
    metric learning (classes never seen in training), and it is an easier task than a search through everything,
    because the gallery is that much smaller: compare it only with itself.

    Which ones is decided by a hash of seed and name, so that the order of the input changes nothing, and a picture
    that is added later moves only its own class. Pictures without a label are neither asked nor answered.

    Args:
        names: (n,) distinct names.
        labels: (n,) the class of each, or None; for `identity` the identity column.
        fraction: The share held out, strictly between 0 and 1.
        by: What is held out.
        seed: Any whole number; another seed is another split.

    Raises:
        InputError: a fraction outside (0, 1), fewer than two classes, or no class of two pictures.
        ShapeError: as many names as labels are needed.

    >>> split = holdout(["a", "b", "c", "d", "e"], ["x", "x", "x", "y", None], 0.34)
    >>> len(split.query), len(split.gallery), split.rest
    (1, 3, (4,))
    """
    if not (0 < fraction < 1):
        raise InputError(f"holdout={fraction} is outside 0..1.", hint="0.2 holds out one fifth.")
    classes = _classes(names, labels)
    description = f"holdout {fraction:g} by {by} (seed {seed})"
    if by == "item":
        query = [row for rows in classes.values() for row in _drawn(names, rows, fraction, seed)]
        if not query:
            raise InputError(
                "No class has two pictures, so there is nothing to find.", hint="Check the column of labels."
            )
        gallery = sorted({row for rows in classes.values() for row in rows} - set(query))
        return Split.of_rows(names, query, gallery, description)
    if len(classes) < 3:
        raise InputError(
            f"holdout by identity needs at least 3 identities and there are {len(classes)}.",
            hint="Hold out by item instead, or check the column of identities.",
        )
    count = min(max(2, _half_up(fraction * len(classes))), len(classes) - 1)
    held = sorted(classes, key=lambda label: _rank(seed, label))[:count]
    rows = [row for label in held for row in classes[label]]
    return Split.of_rows(names, rows, rows, description)


def class_folds(names: Sequence[str], labels: Sequence[str | None], folds: int, *, seed: int = 0) -> tuple[Split, ...]:
    """Deal whole classes into folds of about equal size; each fold asks itself, leave-one-out, and the rest may train.

    Classes are dealt in rounds, the largest first, the largest of a round to the fold with the fewest pictures so far.

    Raises:
        InputError: fewer than 2 folds, or fewer than two classes a fold.
        ShapeError: as many names as labels are needed.

    >>> [len(fold.query) for fold in class_folds(list("abcdef"), list("vvwxyz"), 2)]
    [3, 3]
    """
    classes = _classes(names, labels)
    if folds < 2 or 2 * folds > len(classes):
        raise InputError(
            f"{folds} folds of {len(classes)} classes: 2..{len(classes) // 2} folds are possible.",
            hint="A fold needs two classes, or everything in it is right.",
        )
    ordered = sorted(classes, key=lambda label: (-len(classes[label]), _rank(seed, label)))
    dealt: list[list[int]] = [[] for _ in range(folds)]
    for start in range(0, len(ordered), folds):  # in rounds, so that no fold is one huge class on its own
        by_size = sorted(dealt, key=len)
        for fold, label in zip(by_size, ordered[start : start + folds], strict=False):
            fold.extend(classes[label])
    return tuple(
        Split.of_rows(names, rows, rows, f"fold {place} of {folds} by class (seed {seed})")
        for place, rows in enumerate(dealt, start=1)
    )


def _classes(names: Sequence[str], labels: Sequence[str | None]) -> Mapping[str, list[int]]:
    """Return the rows of each class, classes in sorted order."""
    if len(names) != len(labels):
        raise ShapeError(f"There are {len(names)} names and {len(labels)} labels.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"The name {twice[0]!r} comes more than once.", hint="A split needs distinct names.")
    classes: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        if label is not None:
            classes.setdefault(label, []).append(row)
    if len(classes) < 2:
        only = f"only {next(iter(classes))!r}" if classes else "none"
        raise InputError(
            f"Two classes are needed and there is {only}.", hint="With one class every answer would be right."
        )
    return {label: classes[label] for label in sorted(classes)}


def _drawn(names: Sequence[str], rows: list[int], fraction: float, seed: int) -> list[int]:
    """Return the rows of one class that ask."""
    if len(rows) < 2:
        return []
    count = min(max(1, _half_up(fraction * len(rows))), len(rows) - 1)
    return sorted(rows, key=lambda row: _rank(seed, names[row]))[:count]


def _half_up(value: float) -> int:
    return math.floor(value + 0.5)


def _rank(seed: int, name: Hashable) -> tuple[bytes, str]:
    text = str(name)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8, key=str(seed).encode()).digest()
    return digest, text
