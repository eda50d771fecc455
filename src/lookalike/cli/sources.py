"""The options that say what is measured: the same for `eval`, `leaks` and `tune-rank`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lookalike.cli.opening import Place, store_argument

Function = TypeVar("Function", bound=Callable[..., Any])

EXISTING = click.Path(path_type=Path)

_PICTURES = (
    click.argument("source", required=False, type=Place(), is_eager=True, callback=store_argument),
    click.option("--encoder", help="See: lookalike models list. [default: builtin:effnet-lite0, or the catalogue's]"),
    click.option("--label", metavar="COLUMN", help="The column that says what a picture shows. [default: label]"),
    click.option("--identity", metavar="COLUMN", help="The column that says which one it shows."),
    click.option("--relevance", metavar="COLUMN", help="Relevant means: the same value here. [default: the label]"),
    click.option("--camera", metavar="COLUMN", help="Pictures of the query's identity by its own camera are removed."),
    click.option("--path-column", default="path", show_default=True, help="The manifest's column of paths."),
    click.option("--root", type=EXISTING, help="Where a manifest's relative paths start. [default: its own folder]"),
    click.option("--protocol", metavar="NAME", help="SOURCE is a published benchmark: cub, cars, sop, market1501, …"),
)  # fmt: skip

_SPLIT = (
    click.option("--split-column", metavar="COLUMN", help="The column that says who asks and who answers."),
    click.option("--query-split", metavar="VALUE", default="query", show_default=True,
                 help="With --split-column: what it says of those that ask."),
    click.option("--gallery-split", metavar="VALUE", default="gallery", show_default=True,
                 help="With --split-column: what it says of those that answer."),
    click.option("--query-where", metavar="FILTER", help="A catalogue's items that ask: \"split = 'query'\"."),
    click.option("--gallery-where", metavar="FILTER", help="A catalogue's items that answer."),
    click.option("--holdout", type=float, metavar="SHARE", help="This share asks the rest. [default: leave-one-out]"),
    click.option("--holdout-by", type=click.Choice(["item", "identity"]), default="item", show_default=True,
                 help="identity: whole identities are held out and ask one another."),
)  # fmt: skip

_VECTORS = (
    click.option("--vectors", type=EXISTING, help="Ready vectors (.npy), query and gallery at once, with --labels."),
    click.option("--labels", type=EXISTING, help="A table with a header and one row a vector."),
    click.option("--queries", type=EXISTING, help="Ready query vectors (.npy), with --query-labels."),
    click.option("--query-labels", type=EXISTING, help="A table with a header and one row a query vector."),
    click.option("--gallery", type=EXISTING, help="Ready gallery vectors (.npy), with --gallery-labels."),
    click.option("--gallery-labels", type=EXISTING, help="A table with a header and one row a gallery vector."),
)

_FAILURES = (
    click.option("--failures", type=EXISTING, metavar="FILE",
                 help="Where unreadable files are listed, as JSON lines. [default: in the temporary folder]"),
    click.option("--strict", is_flag=True, help="Stop where any file cannot be read."),
    click.option("--seed", type=int, default=0, show_default=True, help="For the holdout, samples and intervals."),
)  # fmt: skip


def measured(function: Function) -> Function:
    """Add the options that name pictures or vectors, their labels and their split."""
    for decorator in reversed((*_PICTURES, *_SPLIT, *_VECTORS, *_FAILURES)):
        function = decorator(function)
    return function
