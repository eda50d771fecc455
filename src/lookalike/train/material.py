"""What a run learns from, and which identities it may not see."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lookalike.arrays import Codes, Ids, Vectors, as_vectors, factorise, label_key, same_length, unit
from lookalike.embed.encoder import Card
from lookalike.errors import InputError
from lookalike.evaluate.protocol import items_digest
from lookalike.evaluate.relevance import Column
from lookalike.evaluate.splits import Split, holdout
from lookalike.train.settings import Settings

_FEWEST = 3
"""Identities below which none can be held out: two ask each other and one must be left."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Pictures as the frozen encoder sees them, and what they are called.

    `test` says which rows are compared before and after, and is never trained on; without it whole identities are held
    out, as many as `Settings.holdout` says. `train` says which rows may be learned from; without it all that the test
    leaves.
    """

    vectors: Vectors
    """(n, d) vectors of the frozen encoder, of any length."""
    labels: Column
    """(n,) text or whole numbers; None, NaN and "" are missing."""
    names: Sequence[str] | None = None
    """(n,) distinct names, paths usually; row numbers where None."""
    encoder: str = ""
    """Name of the frozen encoder, which the finished run will ask for: `builtin:effnet-lite0`."""
    card: Card | None = None
    pictures: Sequence[Path] | None = None
    """(n,) files, for fine-tuning the whole network."""
    truth: Column | None = None
    """(n,) true labels where `labels` are guessed: the test is held out and judged by these."""
    guessed: bool = False
    """`labels` are guessed (`pseudo`); without `truth` the test then measures agreement with a guess, and says so."""
    test: Split | None = None
    train: Sequence[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", unit(as_vectors(self.vectors)))
        same_length(
            vectors=self.vectors, labels=self.labels, names=self.names, pictures=self.pictures, truth=self.truth
        )

    @property
    def texts(self) -> list[str | None]:
        """(n,) labels as text, None where missing."""
        return [label_key(label) for label in self.labels]

    @property
    def judged(self) -> list[str | None]:
        """(n,) labels the test is judged by, as text."""
        return self.texts if self.truth is None else [label_key(label) for label in self.truth]

    @property
    def digest(self) -> str:
        """16 hex digits over vectors, labels and names."""
        digest = hashlib.blake2b(self.vectors.tobytes(), digest_size=8).hexdigest()
        return items_digest([digest], self.texts, self.judged, self.names or range(len(self.vectors)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Rows to train on, rows that pick the epoch, rows that give the final number: no identity in two of them."""

    train: Ids
    codes: Codes
    """(len(train),) codes of the training rows, 0 to classes - 1, -1 for no label."""
    classes: int
    validation: Split | None
    test: Split | None
    notes: tuple[str, ...]


def plan(material: Material, settings: Settings) -> Plan:
    """Hold out identities for the test, then others for the choice of the epoch, and train on the rest.

    With fewer than three identities to choose from nothing is held out, and a note says so.

    Raises:
        InputError: a row is in the test and in the training set, or nothing is left to train on.
    """
    names = [str(name) for name in material.names or range(len(material.vectors))]
    labels, notes = material.texts, []
    test = material.test
    if test is None and settings.holdout:
        test = _held(names, material.judged, settings.holdout, settings.seed)
        notes += [] if test else ["too few identities to hold any out: this run has no held-out number"]
    if material.guessed and material.truth is None and test is not None:
        notes.append("the labels are guessed and so is the test: agreement with the guess, not a measurement")
    rows = _trainable(material, test)
    validation = None
    if settings.validation:
        inside = _held([names[r] for r in rows], [labels[r] for r in rows], settings.validation, settings.seed + 1)
        if inside is None:
            notes.append("too few identities to choose the epoch by: the last one is kept")
        else:
            validation, rows = _lift(inside, rows), rows[np.array(inside.rest, dtype=np.int64)]
    codes = factorise([labels[row] for row in rows])[0]
    if not len(rows):
        raise InputError("Nothing is left to train on.", hint="Hold out less, or hand in more labelled pictures.")
    return Plan(
        train=rows,
        codes=codes,
        classes=int(codes.max(initial=-1)) + 1,
        validation=validation,
        test=test,
        notes=tuple(notes),
    )


def _held(names: list[str], labels: list[str | None], fraction: float, seed: int) -> Split | None:
    """Hold out identities of at least two pictures, or none where there are too few."""
    counts: dict[str, int] = {}
    for label in labels:
        if label is not None:
            counts[label] = counts.get(label, 0) + 1
    # An identity of one picture can neither be found nor teach; held out, it would only empty the split.
    paired = [label if label is not None and counts[label] > 1 else None for label in labels]
    if len(set(paired) - {None}) < _FEWEST + 1:
        return None
    return holdout(names, paired, fraction, by="identity", seed=seed)


def _lift(split: Split, rows: Ids) -> Split:
    """Turn row numbers of a part into those of the whole."""
    lifted = [tuple(int(rows[i]) for i in part) for part in (split.query, split.gallery, split.rest)]
    return Split(query=lifted[0], gallery=lifted[1], rest=lifted[2], description=split.description, digest=split.digest)


def _trainable(material: Material, test: Split | None) -> Ids:
    every = range(len(material.vectors))
    if material.train is None:
        return np.array(every if test is None else test.rest, dtype=np.int64)
    rows = np.array(material.train, dtype=np.int64)
    if rows.size and not (rows.min() >= 0 and rows.max() < len(every)):
        raise InputError(f"A training row lies outside 0..{len(every) - 1}.")
    asked = set(test.query if test else ()) & set(rows.tolist())
    if asked:
        raise InputError(
            f"{len(asked)} pictures are asked in the test and trained on as well, row {min(asked)} first.",
            hint="Train on other rows: a number from pictures that were learned by heart measures nothing.",
        )
    return rows
