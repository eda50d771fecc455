"""A re-ranker or an expansion named in text, with its settings: `k-reciprocal:k1=30,lambda_value=0.2`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lookalike.arrays import Vectors
from lookalike.catalogue.store import Store
from lookalike.errors import InputError, UnknownNameError
from lookalike.index.neighbours import Neighbours
from lookalike.rank.expansion import AlphaExpansion, expand_queries
from lookalike.rank.rerankers import Reranker, reranker

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class RerankStage:
    """A re-ranker with its settings, ready for `rank.search.search`."""

    name: str
    method: Reranker
    settings: Any

    def __call__(self, store: Store, queries: Vectors, found: Neighbours) -> Neighbours:
        """Return the candidates of each query in their new order."""
        return self.method.run(store, queries, found, self.settings)

    def __str__(self) -> str:
        return f"{self.name}:{_listed(self.settings)}"


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
