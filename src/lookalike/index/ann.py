"""One contract for every kind of index: k true scores in order, filters, deletions, and items found at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Mask, Vectors, as_ids, as_vectors, unit
from lookalike.errors import InputError, InputTypeError
from lookalike.index.fresh import Changes
from lookalike.index.kinds import Settings, changed, resolve, settings_dict, settings_of
from lookalike.index.library import single_thread
from lookalike.index.neighbours import Metric, Neighbours, check_metric
from lookalike.index.overlap import Overlap, overlap
from lookalike.index.queries import Queries, as_allowed, as_exclusions, chunks
from lookalike.index.scan import Gallery
from lookalike.index.structure import Effort, Structure, build_structure, effort_of
from lookalike.index.view import Answer, View, joined
from lookalike.threads import resolve as resolve_threads

TAIL_ROWS, TAIL_SHARE = 1_000, 0.02  # the tail is scanned by every query: 2 % of the rows cost about one probe in fifty
DEAD_SHARE = 0.2
"""Past these the index asks to be rebuilt: fresh rows beyond 1,000 + 2 %, or a fifth of the rows dead."""
KNOBS = ("nprobe", "ef_search", "k_factor")  # what a single search may set for itself


class AnnIndex:
    """An index over (n, d) vectors with the caller's own int64 ids; made by `build` or `load`.

    Scores are true: whatever a kind compresses decides which candidates are found, and each of them is then scored
    against its original vector in float64. Searching changes nothing, so any number of threads may search while one
    adds or removes; a search sees the version it started with.
    """

    def __init__(
        self,
        gallery: Gallery,
        ids: Ids,
        structure: Structure | None,
        settings: Settings,
        *,
        asked: Settings | None = None,
        seed: int = 0,
        notices: Sequence[str] = (),
        overlap: Overlap | None = None,
        changes: Changes | None = None,
    ) -> None:
        self.gallery = gallery
        self.structure = structure
        self.settings = settings
        self.asked = settings if asked is None else asked
        self.seed = seed
        self.notices = tuple(notices)
        self.overlap = overlap
        self._ids = ids  # ascending: row order is id order, so a tie by row is a tie by id
        self._changes = Changes.none(gallery.vectors.shape[1]) if changes is None else changes
        self._plain: tuple[Changes, View] | None = None  # what a search without options sees, made once a version
        self._writing = threading.Lock()

    def __len__(self) -> int:
        changes = self._changes
        return len(self._ids) - changes.deaths + len(changes.ids)

    @property
    def kind(self) -> str:
        """Name of the kind, as in `kinds.KINDS`."""
        return self.settings.kind

    @property
    def metric(self) -> Metric:
        """The metric, applied alike to items and queries."""
        return self.gallery.metric

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return int(self.gallery.vectors.shape[1])

    @property
    def ids(self) -> Ids:
        """(live,) ids that can be found, ascending."""
        return np.sort(np.concatenate([self._ids[_live_rows(self._changes, len(self._ids))], self._changes.ids]))

    @property
    def indexed_ids(self) -> Ids:
        """(n,) ids of the rows of the build, ascending, dead or alive."""
        return self._ids

    @property
    def changes(self) -> Changes:
        """What happened since the build, as of now."""
        return self._changes

    @property
    def needs_rebuild(self) -> str | None:
        """Why the index should be rebuilt, or None."""
        n, changes = len(self._ids), self._changes
        allowed = int(TAIL_ROWS + TAIL_SHARE * n)
        if self.structure is not None and len(changes.ids) > allowed:
            return f"{len(changes.ids):,} fresh vectors are searched one by one; {allowed:,} are allowed at this size."
        if n and changes.deaths > DEAD_SHARE * n:
            return f"{changes.deaths:,} of {n:,} indexed rows are dead; {DEAD_SHARE:.0%} are allowed."
        return None

    def search(
        self,
        queries: npt.ArrayLike,
        k: int,
        *,
        allowed: npt.ArrayLike | None = None,
        exclude: Sequence[npt.ArrayLike] | None = None,
        settings: Settings | None = None,
        exact: bool = False,
        threads: int | None = None,
    ) -> Neighbours:
        """Return the k nearest live items of each of the (q, d) queries, best first, equal scores in id order.

        A query has fewer than k answers only where fewer items are live, allowed and not excluded. `allowed` are the
        ids that may be returned; `exclude` one array of ids a query that may not. `settings` of the same kind lend
        their nprobe, ef_search and k_factor to this search alone; `exact` scans everything instead.

        Raises:
            ShapeError, NonFiniteError: queries that are no (q, dim) finite vectors (of non-zero length, for cosine).
            InputError: k below 1, settings of another kind, not one exclusion a query.

        >>> index = build([[1, 0], [0, 1], [1, 1]], [7, 8, 9], kind="flat")
        >>> [(ids.tolist(), scores.tolist()) for ids, scores in index.search([[1, 0]], 2, exclude=[[7]])]
        [([9, 8], [0.7071067811865475, 0.0])]
        """
        asked = Queries.of(queries, self.dim, self.metric)
        if not isinstance(k, int | np.integer) or isinstance(k, bool):
            raise InputTypeError(f"k must be a whole number, not {k!r}.")
        if k < 1:
            raise InputError(f"k={k}: ask for at least 1 neighbour.")
        k = int(k)  # FAISS takes Python's own numbers only
        view = self._view(allowed, settings, exact=exact)
        barred = as_exclusions(exclude, len(asked.given))
        need = k if barred is None else k + max(map(len, barred), default=0)
        if len(asked.given) == 1:
            with single_thread():
                return joined([view.answer(asked, k, need, barred)], self.metric)

        def answer(part: slice) -> Answer:
            with single_thread():
                return view.answer(asked.at(part), k, need, None if barred is None else barred[part])

        parts = chunks(len(asked.given), self.dim)
        workers = min(resolve_threads(threads), len(parts))
        if workers <= 1:
            return joined([answer(part) for part in parts], self.metric)
        with ThreadPoolExecutor(workers) as pool:
            return joined(list(pool.map(answer, parts)), self.metric)

    def add(self, vectors: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Add items, or replace those whose id is known; they are found by the next search.

        Raises:
            ShapeError, NonFiniteError, InputError: rows that do not fit, or an id twice in one call.
        """
        fresh = as_vectors(vectors, dim=self.dim)
        new_ids = as_ids(ids, len(fresh))
        if self.metric == "cosine":
            unit(fresh)  # refuses a row without direction before anything has changed
        with self._writing:
            changes = self._changes.buried(self._rows_of(new_ids), len(self._ids)).dropped(new_ids)
            self._changes = changes.added(new_ids, fresh)

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove items and return how many there were; unknown ids are passed over."""
        gone = np.unique(np.asarray(ids, dtype=np.int64))
        with self._writing:
            before = len(self)
            self._changes = self._changes.buried(self._rows_of(gone), len(self._ids)).dropped(gone)
            return before - len(self)

    def vectors_of(self, ids: npt.ArrayLike) -> Vectors:
        """Return the (n, d) vectors of live ids, in the order asked, as they were given.

        Raises:
            InputError: an id that is not live; it is named.
        """
        asked = np.asarray(ids, dtype=np.int64).reshape(-1)
        changes = self._changes
        out = np.empty((len(asked), self.dim), dtype=np.float32)
        place = np.searchsorted(self._ids, asked)
        inside = place < len(self._ids)
        inside[inside] = self._ids[place[inside]] == asked[inside]
        if changes.dead is not None:
            inside[inside] = ~changes.dead[place[inside]]
        out[inside] = self.gallery.vectors[place[inside]]
        order = np.argsort(changes.ids)
        tail = np.searchsorted(changes.ids, asked, sorter=order)
        fresh = tail < len(changes.ids)
        fresh[fresh] = changes.ids[order[tail[fresh]]] == asked[fresh]
        out[fresh] = changes.vectors[order[tail[fresh]]]
        unknown = asked[~(inside | fresh)]
        if unknown.size:
            raise InputError(f"id {unknown[0]} is not in the index ({unknown.size} of {len(asked)} ids are not).")
        return out

    def rebuilt(self) -> AnnIndex:
        """Return a new index over the live items, with the same settings and seed."""
        ids = self.ids
        return build(self.vectors_of(ids), ids, kind=self.asked, metric=self.metric, seed=self.seed)

    def measured(self, *, k: int = 10, sample: int = 200, settings: Settings | None = None) -> Overlap | None:
        """Return the overlap with exact search over a seeded sample of its own items, each without itself.

        None where there are fewer than two items. An item of the index is an easier query than one it has never seen;
        `tune` holds its queries out.
        """
        rows = np.flatnonzero(_live_rows(self._changes, len(self._ids)))
        if len(rows) < 2:
            return None
        if len(rows) > sample:
            rows = np.sort(np.random.default_rng(self.seed).choice(rows, sample, replace=False))
        queries, own = self.gallery.vectors[rows], list(self._ids[rows, None])
        found = self.search(queries, k, exclude=own, settings=settings, threads=1)
        exact = self.search(queries, k, exclude=own, exact=True, threads=1)
        return overlap(found, exact, k, seed=self.seed)

    def why_fewer(self, k: int, *, allowed: npt.ArrayLike | None = None) -> str | None:
        """Return why a query may get fewer than k answers, or None."""
        live = len(self)
        if k > live:
            return f"{k} neighbours were asked for and the index holds {live}."
        if allowed is None:
            return None
        left = int(np.isin(self.ids, np.asarray(allowed)).sum())
        return f"{k} neighbours were asked for and the filter leaves {left}." if k > left else None

    def _rows_of(self, ids: Ids) -> Ids:
        place = np.searchsorted(self._ids, ids)
        inside = place < len(self._ids)
        rows = place[inside]
        return np.asarray(rows[self._ids[rows] == ids[inside]], dtype=np.int64)

    def _view(self, allowed: npt.ArrayLike | None, settings: Settings | None, *, exact: bool) -> View:
        changes = self._changes
        plain = allowed is None and settings is None and not exact
        known = self._plain
        if plain and known is not None and known[0] is changes:
            return known[1]
        wanted = None if changes.dead is None else ~changes.dead
        tail, tail_ids = changes.gallery(self.metric), changes.ids
        if allowed is not None:
            asked = as_allowed(allowed)
            mask = np.zeros(len(self._ids), dtype=np.bool_)
            mask[self._rows_of(asked)] = True
            wanted = mask if wanted is None else mask & wanted
            inside = np.isin(tail_ids, asked)
            if not inside.all():
                tail_ids = tail_ids[inside]
                tail = Gallery.of(changes.vectors[inside], self.metric, scale=True)
        chosen = settings if settings is not None else self.settings
        if chosen.kind != self.kind:
            raise InputError(f"settings of {chosen.kind} were given to a search in {self.kind}.")
        structure = None if exact else self.structure
        view = View.of(self.gallery, self._ids, structure, self._effort(chosen), wanted, (tail, tail_ids))
        if plain:
            self._plain = (changes, view)
        return view

    def _effort(self, given: Settings) -> Effort:
        if given is self.settings:
            return effort_of(given)
        own = settings_dict(self.settings)
        knobs = {name: value for name, value in settings_dict(given).items() if name in KNOBS and value is not None}
        if "nprobe" in knobs:
            knobs["nprobe"] = min(knobs["nprobe"], own["nlist"])
        return effort_of(changed(self.settings, knobs))


def build(
    vectors: npt.ArrayLike,
    ids: npt.ArrayLike | None = None,
    *,
    kind: str | Settings = "hnsw",
    metric: str = "cosine",
    seed: int = 0,
    sample: int = 200,
    like: AnnIndex | None = None,
    progress: Callable[[int], None] | None = None,
) -> AnnIndex:
    """Build an index over (n, d) vectors; row i has `ids[i]`, or i where None.

    The vectors are kept as given (a memory map stays a map) for true scores, exact scans and refining; they are copied
    only where ids are not ascending, or where cosine needs rows of length 1 and they are not. Overlap with exact search
    is measured on `sample` items and kept. Building takes one thread, so that the same seed gives the same index on any
    machine; `like`, an index over the same vectors, lends its cells and saves most of that time.

    Raises:
        ShapeError, NonFiniteError, InputTypeError: vectors that cannot be indexed; ids not one a row.
        InputError: an id twice, or settings that are impossible for these vectors.
        UnknownNameError: no such kind or metric.

    >>> index = build(np.eye(3), [30, 10, 20], kind="flat", metric="l2")
    >>> index.search([[0, 1, 0.1]], 2)[0][0].tolist()
    [10, 20]
    """
    checked = as_vectors(vectors)
    chosen = check_metric(metric)
    known = np.arange(len(checked)) if ids is None else as_ids(ids, len(checked))
    if len(known) > 1 and not (np.diff(known) > 0).all():
        order = np.argsort(known)
        known, checked = known[order], checked[order]
    if seed < 0:
        raise InputError(f"seed={seed}: a seed is a whole number from 0.")
    asked = settings_of(kind)
    settings, notices = resolve(asked, len(checked), checked.shape[1])
    scale = settings.kind == "flat" or getattr(settings, "refine", "none") == "vectors"
    gallery = Gallery.of(checked, chosen, scale=scale)
    structure = None
    if settings.kind != "flat":
        structure = build_structure(
            checked, settings, chosen, seed, like=None if like is None else like.structure, tick=progress
        )
    index = AnnIndex(gallery, known, structure, settings, asked=asked, seed=seed, notices=notices)
    if structure is not None and sample:
        index.overlap = index.measured(sample=sample)
    return index


def _live_rows(changes: Changes, n: int) -> Mask:
    return np.ones(n, dtype=np.bool_) if changes.dead is None else ~changes.dead
