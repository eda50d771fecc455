"""What a run measured, stated so that two numbers can be compared or refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lookalike.index.neighbours import Metric

SelfRule: TypeAlias = Literal["removed by id", "queries are not in the gallery", "kept: not a measurement"]

# What the definition line of each report says; other libraries call recall@K hit rate, accuracy@K or CMC.
RECALL_DEFINITION = "share of evaluated queries with at least one relevant item among their first K"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Everything that decides which number comes out, except the vectors.

    Two runs with equal `digest` asked the same questions of the same gallery under the same rules, so that their
    numbers may be compared query by query. Cut-offs and seed are stated but do not enter the digest: a run at K = 1, 5
    is comparable with one at K = 1, 10.
    """

    relevance: str
    """In words: `same label (column 'label')`."""
    metric: Metric
    self_rule: SelfRule
    ks: tuple[int, ...]
    split: str
    """In words: `leave-one-out`, `split column 'split': test against train`, `holdout 0.2 by item`."""
    seed: int
    items: str
    """Digest of the queries and the gallery: names and labels, in id order."""

    @property
    def digest(self) -> str:
        """16 hex digits over the rules and the items."""
        return _digest(json.dumps(self._rules(), sort_keys=True).encode())

    def differences(self, other: Protocol) -> list[str]:
        """Name every rule in which two runs differ, as `rule: mine != theirs`."""
        mine, theirs = self._rules(), other._rules()
        return [f"{key}: {mine[key]!r} != {theirs[key]!r}" for key in mine if mine[key] != theirs[key]]

    def to_dict(self) -> dict[str, Any]:
        """Return the protocol and its digest as plain JSON values."""
        return {**dataclasses.asdict(self), "ks": list(self.ks), "digest": self.digest}

    def _rules(self) -> dict[str, Any]:
        rules = dataclasses.asdict(self)
        del rules["ks"], rules["seed"]
        return rules


def items_digest(*columns: Iterable[Any]) -> str:
    """16 hex digits over columns of names, ids or labels, in order.

    >>> items_digest(["a", "b"]) == items_digest(["ab"])
    False
    """
    return _digest(json.dumps([[str(value) for value in column] for column in columns]).encode())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
