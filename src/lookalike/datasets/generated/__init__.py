"""A catalogue of things that never were: drawn, deterministic, labelled by what and by which."""

from lookalike.datasets.generated.catalogue import CATEGORIES, generate

__all__ = ["CATEGORIES", "generate"]
