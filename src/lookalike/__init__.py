"""lookalike: image retrieval and metric learning you can trust.

The names below are imported when they are first used, so that `import lookalike` is quick and loads no heavy library.

>>> import lookalike as la
>>> la.recall_at_k([[1.0, 0.0]], [[1.0, 0.1], [0.0, 1.0]], ["mug"], ["mug", "cup"], ks=(1,))
{1: 1.0}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> the module that defines it
_PUBLIC = {
    "Candidate": "lookalike.catalogue.store",
    "Card": "lookalike.embed.encoder",
    "Catalogue": "lookalike.catalogue.catalogue",
    "Encoder": "lookalike.embed.encoder",
    "Hits": "lookalike.catalogue.store",
    "KReciprocalReranker": "lookalike.rank.kreciprocal",
    "LookalikeError": "lookalike.errors",
    "MemoryStore": "lookalike.catalogue.memory",
    "Report": "lookalike.evaluate.report",
    "encode_all": "lookalike.embed.pipeline",
    "encoder": "lookalike.embed.registry",
    "evaluate": "lookalike.evaluate.run",
    "load": "lookalike.images.load",
    "recall_at_k": "lookalike.evaluate.recall",
}

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.memory import MemoryStore
    from lookalike.catalogue.store import Candidate, Hits
    from lookalike.embed.encoder import Card, Encoder
    from lookalike.embed.pipeline import encode_all
    from lookalike.embed.registry import encoder
    from lookalike.errors import LookalikeError
    from lookalike.evaluate.recall import recall_at_k
    from lookalike.evaluate.report import Report
    from lookalike.evaluate.run import evaluate
    from lookalike.images.load import load
    from lookalike.rank.kreciprocal import KReciprocalReranker

__all__ = [
    "Candidate",
    "Card",
    "Catalogue",
    "Encoder",
    "Hits",
    "KReciprocalReranker",
    "LookalikeError",
    "MemoryStore",
    "Report",
    "encode_all",
    "encoder",
    "evaluate",
    "load",
    "recall_at_k",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'lookalike' has no attribute {name!r}")
    module = importlib.import_module(_PUBLIC[name])
    return getattr(module, name) if name != "evaluate" else importlib.import_module("lookalike.evaluate")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
