"""What changed since an index was built: rows that died and vectors not yet indexed, as snapshots readers can hold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lookalike.arrays import Ids, Mask, Vectors
from lookalike.index.neighbours import Metric
from lookalike.index.scan import Gallery


@dataclass(frozen=True)
class Changes:
    """One version of the changes; a search keeps the version it started with."""

    dead: Mask | None
    """(n,) True where an indexed row was deleted or replaced; None where none was."""
    ids: Ids
    """(t,) ids of the fresh tail, in order of arrival, each once."""
    vectors: Vectors
    """(t, d)."""
    _gallery: Gallery | None = field(default=None, init=False, compare=False, repr=False)

    @classmethod
    def none(cls, d: int) -> Changes:
        """No change yet."""
        return cls(None, np.empty(0, np.int64), np.empty((0, d), np.float32))

    @property
    def deaths(self) -> int:
        """Number of dead rows."""
        return 0 if self.dead is None else int(np.count_nonzero(self.dead))

    def gallery(self, metric: Metric) -> Gallery:
        """Return the tail ready to be scanned; made once a version."""
        if self._gallery is None:
            object.__setattr__(self, "_gallery", Gallery.of(self.vectors, metric, scale=True))
        return self._gallery  # type: ignore[return-value]

    def buried(self, rows: Ids, n: int) -> Changes:
        """Mark rows of an index of n as dead."""
        if not rows.size:
            return self
        dead = np.zeros(n, np.bool_) if self.dead is None else self.dead.copy()
        dead[rows] = True
        return Changes(dead, self.ids, self.vectors)

    def dropped(self, ids: Ids) -> Changes:
        """Remove ids from the tail."""
        keep = ~np.isin(self.ids, ids)
        return self if keep.all() else Changes(self.dead, self.ids[keep], self.vectors[keep])

    def added(self, ids: Ids, vectors: Vectors) -> Changes:
        """Append to the tail; it is copied, so that older versions go on seeing their own."""
        return Changes(self.dead, np.concatenate([self.ids, ids]), np.concatenate([self.vectors, vectors]))
