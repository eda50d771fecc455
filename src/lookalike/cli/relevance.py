"""From the options of `lookalike eval` to what counts as a right answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lookalike.cli.eval_inputs import Inputs
from lookalike.datasets.table import read_label_columns
from lookalike.errors import InputError
from lookalike.evaluate.question import Declare, listed_pairs, revisited, shared_labels


def relevance(inputs: Inputs, settings: Mapping[str, Any]) -> str | Declare:
    """Return the column whose value must be equal, or a declaration of another kind.

    Raises:
        click.UsageError: two kinds at once.
        InputError: a table of pairs without its two columns.
    """
    if settings["pairs"] and settings["separator"]:
        raise click.UsageError("--pairs and --separator each declare what is right; name one of them.")
    benchmark = inputs.benchmark
    if benchmark is not None and benchmark.truth is not None:
        truth, setup = benchmark.truth, settings["setup"]
        return lambda queries, gallery: revisited(
            queries, gallery, truth.positions(queries.names, gallery.names), setup
        )
    if settings["pairs"]:
        pairs = _pairs(settings["pairs"])
        return lambda queries, gallery: listed_pairs(queries, gallery, pairs)
    if settings["separator"]:
        separator, match = settings["separator"], settings["match"]
        return lambda queries, gallery: shared_labels(
            queries, gallery, inputs.relevance, separator=separator, match=match
        )
    return inputs.relevance


def _pairs(path: Path) -> list[tuple[str, str]]:
    columns = read_label_columns(path, None)
    missing = [name for name in ("query", "gallery") if name not in columns]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}.", hint=f"It has: {', '.join(columns)}.")
    rows = zip(columns["query"], columns["gallery"], strict=True)
    pairs = [(query, item) for query, item in rows if query is not None and item is not None]
    if not pairs:
        raise InputError(f"{path} holds no pairs.")
    return pairs
