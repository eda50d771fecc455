"""P×K batches: P classes, K pictures of each, every usable picture in every epoch, none twice in a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lookalike.arrays import Codes, Ids
from lookalike.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What an epoch shows of the training pictures."""

    pictures: int
    """Rows handed in."""
    usable: int
    seen: int
    """Usable pictures shown at least once; always all of them."""
    repeats: int
    """Showings beyond the first, that filled up a class or a batch."""
    batches: int
    unlabelled: int
    """Left out: no label."""
    alone: int
    """Left out: the only picture of its class, which has no positive."""
    small_classes: int
    """Classes with fewer than K pictures; each brings all it has, and its batches are smaller for it."""

    def __str__(self) -> str:
        left = [
            f"{n} {why}" for n, why in ((self.unlabelled, "without a label"), (self.alone, "alone in a class")) if n
        ]
        small = f"; {self.small_classes} classes have fewer than K pictures" if self.small_classes else ""
        return (
            f"{self.seen} of {self.usable} usable pictures in {self.batches} batches, {self.repeats} shown again"
            f"{small}" + (f"; left out: {', '.join(left)}" if left else "")
        )


@dataclass(frozen=True, kw_only=True)
class PKSampler:
    """Plans the batches of an epoch from the label codes, a seed and the epoch's number, and from nothing else.

    Each class is shuffled and dealt into groups of K; the last group of a class is filled up with other pictures of
    that class. A class with fewer than K pictures is one group of all it has. A batch takes P groups of P different
    classes, classes with most groups left first, and a batch that would hold fewer than P classes is filled up with
    groups drawn from the others. Whatever is shown twice in an epoch is never in one batch twice.

    Any epoch can be planned without the ones before it, which is what makes a resumed run equal to an unbroken one.
    """

    codes: Codes
    """(n,) label codes, -1 for no label."""
    classes: int = 16
    """P."""
    per_class: int = 4
    """K."""
    seed: int = 0
    smallest: int = 2
    """Pictures a class needs to be used: 2, or 1 where the loss needs no positive pair."""

    def __post_init__(self) -> None:
        for name, value, least in (("P", self.classes, 2), ("K", self.per_class, 2), ("smallest", self.smallest, 1)):
            if value < least:
                raise InputError(f"{name}={value} must be at least {least}.", hint="16 classes of 4 are usual.")
        usable = self._members()
        if len(usable) < 2:
            raise InputError(_why_not(self.codes, self.smallest, len(usable)), hint=_WHAT_NOW)

    def epoch(self, number: int) -> list[Ids]:
        """Return the rows of each batch of that epoch, batches in random order."""
        rng = np.random.default_rng([self.seed, number])
        members = self._members()
        groups = {code: self._deal(rows, rng) for code, rows in members.items()}
        width = min(self.classes, len(members))
        batches = []
        while any(groups.values()):
            waiting = [code for code in groups if groups[code]]
            noise = rng.random(len(waiting))
            order = sorted(range(len(waiting)), key=lambda i: (-len(groups[waiting[i]]), noise[i]))
            chosen = [waiting[i] for i in order[:width]]
            rows = [groups[code].pop() for code in chosen]
            others = [code for code in members if code not in set(chosen)]
            extra = rng.permutation(others)[: width - len(chosen)]
            rows.extend(rng.permutation(members[int(code)])[: self.per_class] for code in extra)
            batches.append(np.concatenate(rows))
        return [batches[i] for i in rng.permutation(len(batches))]

    def coverage(self, number: int = 1) -> Coverage:
        """Count what that epoch shows, from its plan."""
        plan = self.epoch(number)
        shown = np.concatenate(plan)
        sizes = np.unique(self.codes[self.codes >= 0], return_counts=True)[1]
        usable = int(sizes[sizes >= self.smallest].sum())
        return Coverage(
            pictures=len(self.codes),
            usable=usable,
            seen=int(np.unique(shown).size),
            repeats=int(shown.size - np.unique(shown).size),
            batches=len(plan),
            unlabelled=int((self.codes < 0).sum()),
            alone=int(sizes[sizes < self.smallest].sum()),
            small_classes=int(((sizes >= self.smallest) & (sizes < self.per_class)).sum()),
        )

    def _members(self) -> dict[int, Ids]:
        """Return the rows of each usable class, classes in code order."""
        labelled = np.flatnonzero(self.codes >= 0)
        order = labelled[np.argsort(self.codes[labelled], kind="stable")]
        codes, starts = np.unique(self.codes[order], return_index=True)
        parts = np.split(order, starts[1:])
        return {int(c): rows for c, rows in zip(codes, parts, strict=False) if rows.size >= self.smallest}

    def _deal(self, rows: Ids, rng: np.random.Generator) -> list[Ids]:
        """Deal one class into groups of K, the last filled up from the others."""
        shuffled = rng.permutation(rows)
        groups = [shuffled[start : start + self.per_class] for start in range(0, rows.size, self.per_class)]
        short = min(self.per_class, rows.size) - groups[-1].size
        if short > 0:
            dealt = shuffled[: rows.size - groups[-1].size]
            groups[-1] = np.concatenate([groups[-1], rng.permutation(dealt)[:short]])
        return groups


_WHAT_NOW = "Check the column of labels, or group the pictures first (labels from near-duplicates)."


def _why_not(codes: Codes, smallest: int, usable: int) -> str:
    """Say why these labels cannot be trained on."""
    sizes = np.unique(codes[codes >= 0], return_counts=True)[1]
    if sizes.size == 1:
        return f"All {sizes[0]} labelled pictures are of one class, so there is nothing to push apart."
    if not sizes.size:
        return f"None of the {codes.size} pictures has a label."
    return (
        f"Training needs two classes of at least {smallest} pictures and there are {usable}: "
        f"{codes.size} pictures, {sizes.size} classes, the largest of {sizes.max()}."
    )
