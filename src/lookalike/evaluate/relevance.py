"""What counts as a right answer, declared; and the truth it gives for one set of queries and one gallery.

The order is fixed. The query itself is removed from its gallery by id, then what the camera rule and the junk list
remove, and only then are queries without any relevant item left out, counted by reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Mask, factorise, label_key, same_length
from lookalike.errors import InputError, ShapeError
from lookalike.evaluate.pairs import Csr, Listed, Pairs, SameCode, SharedLabels, blocks, union, without

Column: TypeAlias = Sequence[Any] | npt.NDArray[Any]

REASONS: tuple[str, ...] = ("", "label_missing", "label_absent", "self_only", "camera_rule", "junk_only")
"""Why a query is not evaluated; position 0 means it is.

`label_missing`: the query has no label. `label_absent`: no gallery item is relevant to begin with. `self_only`: the
only relevant item was the query itself. `camera_rule` and `junk_only`: the last relevant items fell to that rule.
"""


@dataclass(frozen=True)
class SameLabel:
    """An item is relevant where it carries the query's label (or identity); a missing label matches nothing."""

    queries: Column
    gallery: Column
    name: str = "label"


@dataclass(frozen=True)
class LabelSets:
    """Several labels per picture: relevant where one is shared (`any`) or the item carries all the query's (`all`)."""

    queries: Sequence[Collection[Any]]
    gallery: Sequence[Collection[Any]]
    match: Literal["any", "all"] = "any"

    def __post_init__(self) -> None:
        if self.match not in ("any", "all"):
            raise InputError(f"match={self.match!r} is neither 'any' nor 'all'.")


@dataclass(frozen=True)
class ListedPairs:
    """Pairs written out: position of the query, positions of its gallery items; other queries have none."""

    items: Mapping[int, Collection[int]]

    @classmethod
    def from_names(
        cls, pairs: Iterable[tuple[Any, Any]], queries: Sequence[Any], gallery: Sequence[Any]
    ) -> ListedPairs:
        """Look pairs of (query, item) names up, as a file of pairs gives them; names are ids or paths.

        Raises:
            InputError: a pair names something that is not there; the first one is named.

        >>> ListedPairs.from_names([("q.jpg", "b.jpg")], ["q.jpg"], ["a.jpg", "b.jpg"]).items
        {0: [1]}
        """
        places = [{str(name): place for place, name in enumerate(side)} for side in (queries, gallery)]
        items: dict[int, list[int]] = {}
        for query, item in pairs:
            for name, side, kind in ((query, places[0], "queries"), (item, places[1], "gallery")):
                if str(name) not in side:
                    raise InputError(f"The pair ({query!r}, {item!r}) names {name!r}, which is not in the {kind}.")
            items.setdefault(places[0][str(query)], []).append(places[1][str(item)])
        return cls(items)


@dataclass(frozen=True)
class Revisited:
    """Easy, hard and junk gallery positions of each query (Radenović et al., CVPR 2018).

    `easy`: easy relevant, hard and junk removed. `medium`: easy and hard relevant, junk removed. `hard`: hard
    relevant, easy and junk removed.
    """

    easy: Sequence[Collection[int]]
    hard: Sequence[Collection[int]]
    junk: Sequence[Collection[int]]
    setup: Literal["easy", "medium", "hard"] = "medium"

    def __post_init__(self) -> None:
        if self.setup not in ("easy", "medium", "hard"):
            raise InputError(f"setup={self.setup!r} is none of 'easy', 'medium', 'hard'.")
        same_length(easy=self.easy, hard=self.hard, junk=self.junk)

    def relevant(self) -> ListedPairs:
        """Return the relevant pairs of the setup."""
        lists = {"easy": (self.easy,), "medium": (self.easy, self.hard), "hard": (self.hard,)}[self.setup]
        return ListedPairs({q: [i for part in lists for i in part[q]] for q in range(len(self.easy))})

    def removed(self) -> ListedPairs:
        """Return the pairs removed from the gallery of each query."""
        lists = {"easy": (self.junk, self.hard), "medium": (self.junk,), "hard": (self.junk, self.easy)}[self.setup]
        return ListedPairs({q: [i for part in lists for i in part[q]] for q in range(len(self.easy))})


Relevance: TypeAlias = SameLabel | LabelSets | ListedPairs | Revisited


@dataclass(frozen=True)
class CameraRule:
    """Re-identification: gallery items of the query's identity seen by the query's camera are removed.

    Items of other identities stay, whatever their camera (Zheng et al., ICCV 2015). A missing camera matches none.
    """

    queries: Column
    gallery: Column


@dataclass(frozen=True)
class Truth:
    """Which gallery items are relevant to each query, which are removed, and which queries are not evaluated."""

    num_queries: int
    num_gallery: int
    relevant: Pairs
    """Before removals; `rows` takes them out."""
    removals: tuple[Pairs, ...]
    reasons: npt.NDArray[np.int8]
    """(q,) positions in REASONS; 0 where the query is evaluated."""
    num_relevant: Ids
    """(q,) relevant items after removals."""
    num_removed: Ids
    """(q,) items removed from the query's gallery."""
    removed_by: Mapping[str, int] = field(default_factory=dict)
    """Pairs removed by each rule: `self`, `camera`, `junk`."""
    touched_by: Mapping[str, int] = field(default_factory=dict)
    """Queries that lost at least one item to each rule."""

    @property
    def evaluated(self) -> Mask:
        """(q,) queries with at least one relevant item left."""
        return np.asarray(self.reasons == 0)

    @property
    def excluded(self) -> dict[str, int]:
        """Queries left out, by reason; reasons that do not occur are not listed."""
        counts = np.bincount(self.reasons, minlength=len(REASONS))
        return {name: int(count) for name, count in zip(REASONS[1:], counts[1:], strict=True) if count}

    @property
    def gallery_sizes(self) -> Ids:
        """(q,) gallery size of each query after removals."""
        return self.num_gallery - self.num_removed

    def rows(self, queries: Ids) -> tuple[Csr, Csr]:
        """Return the relevant items (removed ones taken out) and the removed items of these queries."""
        removed = union(self.removals, queries, self.num_gallery)
        return without(self.relevant.of(queries), removed, self.num_gallery), removed


def build_truth(
    relevance: Relevance,
    *,
    num_queries: int,
    num_gallery: int,
    query_ids: Ids | None = None,
    gallery_ids: Ids | None = None,
    camera: CameraRule | None = None,
    junk: ListedPairs | None = None,
) -> Truth:
    """Apply the declared rules in their order to one set of queries and one gallery.

    `query_ids` and `gallery_ids` name the same items by the same number: where both are given, a query is removed
    from its own gallery. Junk is a list of positions, like `ListedPairs`.

    Raises:
        ShapeError: a column is not as long as the queries or the gallery.
        InputError: a position outside the gallery, or a camera rule without labels.

    >>> truth = build_truth(SameLabel(["a", "b"], ["a", "a", "c"]), num_queries=2, num_gallery=3)
    >>> truth.excluded, truth.num_relevant.tolist()
    ({'label_absent': 1}, [2, 0])
    """
    relevant, missing = _relevant(relevance, num_queries, num_gallery)
    rules: dict[str, Pairs] = {}
    if query_ids is not None and gallery_ids is not None:
        _, rows, items = np.intersect1d(query_ids, gallery_ids, return_indices=True)
        rules["self"] = Listed.from_pairs(rows, items, num_queries, num_gallery)
    if camera is not None:
        rules["camera"] = _same_camera(relevant, camera, num_queries, num_gallery)
    lists = [junk, relevance.removed() if isinstance(relevance, Revisited) else None]
    pairs = [_pairs(listed, num_queries, num_gallery) for listed in lists if listed is not None]
    if pairs:
        rows, items = (np.concatenate(part) for part in zip(*pairs, strict=True))
        rules["junk"] = Listed.from_pairs(rows, items, num_queries, num_gallery)
    return _apply(relevant, rules, missing)


def _apply(relevant: Pairs, rules: Mapping[str, Pairs], missing: Mask) -> Truth:
    left = relevant.counts()
    num_queries, num_gallery = len(left), relevant.num_items
    reasons = np.where(missing, 1, np.where(left == 0, 2, 0)).astype(np.int8)
    num_removed = np.zeros(num_queries, dtype=np.int64)
    removed_by: dict[str, int] = {}
    touched_by: dict[str, int] = {}
    for position, (name, rule) in enumerate(rules.items()):
        earlier = tuple(rules.values())[:position]
        lost, gone = _losses(relevant, rule, earlier)
        left = left - lost
        num_removed += gone
        removed_by[name] = int(gone.sum())
        touched_by[name] = int((gone > 0).sum())
        code = REASONS.index({"self": "self_only", "camera": "camera_rule", "junk": "junk_only"}[name])
        reasons[(reasons == 0) & (left == 0)] = code
    return Truth(
        num_queries, num_gallery, relevant, tuple(rules.values()), reasons, left, num_removed, removed_by, touched_by
    )


def _losses(relevant: Pairs, rule: Pairs, earlier: tuple[Pairs, ...]) -> tuple[Ids, Ids]:
    """Count, for each query, what a rule takes beyond earlier rules: relevant items, and items at all."""
    counts = rule.counts()
    lost, gone = np.zeros_like(counts), np.zeros_like(counts)
    for queries in blocks(counts):
        csr = rule.of(queries)
        rows, items = queries[csr.rows], csr.items
        for other in earlier:
            fresh = ~other.has(rows, items)
            rows, items = rows[fresh], items[fresh]
        gone += np.bincount(rows, minlength=len(counts))
        lost += np.bincount(rows[relevant.has(rows, items)], minlength=len(counts))
    return lost, gone


def _relevant(relevance: Relevance, num_queries: int, num_gallery: int) -> tuple[Pairs, Mask]:
    if isinstance(relevance, SameLabel):
        _check(relevance.queries, relevance.gallery, num_queries, num_gallery, relevance.name)
        queries, items = factorise(relevance.queries, relevance.gallery)
        return SameCode(queries, items), queries < 0
    if isinstance(relevance, LabelSets):
        _check(relevance.queries, relevance.gallery, num_queries, num_gallery, "labels")
        shared = _label_sets(relevance, num_gallery)
        return shared, shared.queries.counts == 0
    listed = relevance.relevant() if isinstance(relevance, Revisited) else relevance
    if isinstance(relevance, Revisited) and len(relevance.easy) != num_queries:
        raise ShapeError(f"The revisited lists have {len(relevance.easy)} queries where there are {num_queries}.")
    rows, positions = _pairs(listed, num_queries, num_gallery)
    return Listed.from_pairs(rows, positions, num_queries, num_gallery), np.zeros(num_queries, dtype=bool)


def _label_sets(relevance: LabelSets, num_gallery: int) -> SharedLabels:
    codes: dict[str, int] = {}
    sides = []
    for column in (relevance.queries, relevance.gallery):
        keys = [sorted({key for label in labels if (key := label_key(label)) is not None}) for labels in column]
        rows = np.repeat(np.arange(len(keys)), [len(row) for row in keys])
        sides.append((rows, np.array([codes.setdefault(key, len(codes)) for row in keys for key in row], np.int64)))
    (rows, labels), (items, held) = sides
    top = max(len(codes), 1)
    queries = Listed.from_pairs(rows, labels, len(relevance.queries), top).csr
    holders = Listed.from_pairs(held, items, top, max(num_gallery, 1)).csr
    return SharedLabels(queries, holders, num_gallery, relevance.match == "all")


def _same_camera(relevant: Pairs, camera: CameraRule, num_queries: int, num_gallery: int) -> Pairs:
    if not isinstance(relevant, SameCode):
        raise InputError("The camera rule needs one identity per picture: declare relevance by label or identity.")
    _check(camera.queries, camera.gallery, num_queries, num_gallery, "cameras")
    queries, items = factorise(camera.queries, camera.gallery)
    width = int(max(queries.max(initial=0), items.max(initial=0))) + 1
    both = [
        np.where((codes < 0) | (seen < 0), -1, codes * width + seen)
        for codes, seen in ((relevant.queries, queries), (relevant.items, items))
    ]
    values, codes = np.unique(np.concatenate(both), return_inverse=True)
    codes = codes - int(values.size > 0 and values[0] < 0)
    return SameCode(codes[:num_queries], codes[num_queries:])


def _pairs(listed: ListedPairs, num_queries: int, num_gallery: int) -> tuple[Ids, Ids]:
    rows = np.repeat(
        np.fromiter(listed.items, np.int64, len(listed.items)), [len(items) for items in listed.items.values()]
    )
    items = np.array([item for row in listed.items.values() for item in row], dtype=np.int64)
    for name, values, limit in (("query", rows, num_queries), ("gallery item", items, num_gallery)):
        bad = values[(values < 0) | (values >= limit)]
        if bad.size:
            raise InputError(f"A listed pair names {name} {bad[0]}, outside 0..{limit - 1}.")
    return rows, items


def _check(queries: Sequence[Any] | Column, gallery: Column, num_queries: int, num_gallery: int, name: str) -> None:
    for side, column, count in (("query", queries, num_queries), ("gallery", gallery, num_gallery)):
        if len(column) != count:
            raise ShapeError(f"{name}: {len(column)} {side} entries for {count} {side} vectors; one each is needed.")
