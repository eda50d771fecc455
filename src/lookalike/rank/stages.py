"""A re-ranker or an expansion named in text, with its settings: `k-reciprocal:k1=30,lambda_value=0.2`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.store import Store
from lookalike.errors import InputError, UnknownNameError
from lookalike.index.neighbours import Neighbours
from lookalike.rank.expansion import AlphaExpansion, augment, expand_queries
from lookalike.rank.rerankers import Reranker, reranker

Settings = TypeVar("Settings")
Stage: TypeAlias = Callable[[Store, Vectors, Neighbours], Neighbours]
"""A re-ranker with its settings: the candidates of (q, d) queries in, the same candidates in another order out."""


@dataclass(frozen=True)
class RerankStage:
    """A re-ranker with its settings, ready for `rank.search.search`."""

    name: str
    method: Reranker
    settings: Any
    own: Ids | None = None
    """(q,) the item of the store that each query is, or -1; None: no query is one."""

    def __call__(self, store: Store, queries: Vectors, found: Neighbours) -> Neighbours:
        """Return the candidates of each query in their new order."""
        return self.method.rerank(store, queries, found, self.settings, self.own)

    def __str__(self) -> str:
        return f"{self.name}:{_listed(self.settings)}"


@dataclass(frozen=True)
class Chain:
    """Stages one after the other, the first on the candidates as they were retrieved."""

    stages: tuple[Stage, ...]

    def __call__(self, store: Store, queries: Vectors, found: Neighbours) -> Neighbours:
        """Return the candidates in the order of the last stage."""
        for stage in self.stages:
            found = stage(store, queries, found)
        return found


def asked_by_items(stage: Stage, own: Ids | None) -> Stage:
    """Tell a stage which item of the store each of its queries is, (q,), -1 where none."""
    if isinstance(stage, Chain):
        return Chain(tuple(asked_by_items(each, own) for each in stage.stages))
    return dataclasses.replace(stage, own=own) if isinstance(stage, RerankStage) else stage


@dataclass(frozen=True)
class AugmentStage:
    """Database-side augmentation with its settings: new gallery vectors from their nearest neighbours."""

    settings: AlphaExpansion

    def __call__(self, gallery: Vectors, threads: int | None = None) -> Vectors:
        """Return (n, d) unit rows."""
        return augment(gallery, self.settings, threads=threads)

    def __str__(self) -> str:
        return _listed(self.settings)


@dataclass(frozen=True)
class ExpandStage:
    """Alpha query expansion with its settings: new query vectors from the first neighbours."""

    settings: AlphaExpansion

    def __call__(self, store: Store, queries: Vectors, found: Neighbours) -> Vectors:
        """Return (q, d) expanded queries."""
        return expand_queries(store, queries, found, self.settings)

    def __str__(self) -> str:
        return f"alpha:{_listed(self.settings)}"


def rerank_stage(text: str) -> RerankStage:
    """Parse `NAME` or `NAME:setting=value,…`.

    Raises:
        UnknownNameError: no such re-ranker, or no such setting; the right spellings are listed.
        InputError: a value the setting does not take.

    >>> str(rerank_stage("k-reciprocal:k1=30,lambda_value=0.2"))
    'k-reciprocal:k1=30,k2=6,lambda_value=0.2,strict_overlap=False'
    """
    name, _, rest = text.partition(":")
    method = reranker(name)
    return RerankStage(name, method, parse(method.settings, rest))


def expand_stage(text: str) -> ExpandStage:
    """Parse `alpha`, `alpha:n=5,alpha=0`, or a bare number of neighbours.

    Raises:
        UnknownNameError: no such expansion or setting.
        InputError: a value the setting does not take.

    >>> str(expand_stage("alpha:n=5"))
    'alpha:n=5,alpha=3.0'
    """
    name, _, rest = text.partition(":")
    if name != "alpha":
        raise UnknownNameError("expansion", name, ["alpha"])
    return ExpandStage(parse(AlphaExpansion, rest))


def augment_stage(text: str) -> AugmentStage:
    """Parse the settings of database-side augmentation: `n=5,alpha=3`, or nothing for the defaults.

    Raises:
        UnknownNameError: no such setting.
        InputError: a value the setting does not take.

    >>> str(augment_stage("n=5"))
    'n=5,alpha=3.0'
    """
    return AugmentStage(parse(AlphaExpansion, text))


def parse(settings: type[Settings], text: str) -> Settings:
    """Make a settings dataclass from `key=value,…`; what is not named keeps its default."""
    fields = {field.name: field for field in dataclasses.fields(settings)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        if key not in fields:
            raise UnknownNameError("setting", key, fields)
        given[key] = _value(key, value, type(fields[key].default))
    return settings(**given)


def _value(key: str, text: str, kind: type[Any]) -> Any:
    truths: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    try:
        return truths[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise InputError(f"{key}={text!r} is no {kind.__name__}.", hint=f"Write {key}=VALUE.") from None


def _listed(settings: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in dataclasses.asdict(settings).items())
