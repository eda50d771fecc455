"""Where the pictures of `index` and `sync` are, and who embeds them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lookalike.cli import output

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.work import Work
    from lookalike.images.scan import Scan

Function = TypeVar("Function", bound=Callable[..., Any])

_TABLES = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq")  # as datasets.table, which is not imported for --help


class Photos(click.ParamType["Path | str"]):
    """A folder, a manifest, or the URI of a folder in an object store."""

    name = "PHOTOS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """Keep a URI as it is: a path would lose one of its slashes."""
        del param, ctx
        return value if isinstance(value, Path) or "://" in str(value) else Path(value)


def spread(function: Function) -> Function:
    """--on and --workers: embed in other processes."""
    on = click.option("--on", metavar="dask[:ADDRESS]",
                      help="Embed on a Dask cluster: worker processes of this machine, or a scheduler's.")  # fmt: skip
    workers = click.option("--workers", type=click.IntRange(min=1), metavar="N",
                           help="With --on dask: so many processes here. [default: one a processor]")  # fmt: skip
    return on(workers(function))


def is_table(photos: Path | str) -> bool:
    """Tell whether these are the rows of a manifest."""
    return isinstance(photos, Path) and photos.suffix.lower() in _TABLES and photos.is_file()


def root_of(photos: Path | str) -> Path | None:
    """Return the folder the paths of these pictures start from; None for a URI."""
    if isinstance(photos, str):
        return None
    return photos.resolve().parent if is_table(photos) else photos


def lister(photos: Path | str | None) -> Callable[[], Scan] | None:
    """Return what lists the pictures, where they are not simply those of the catalogue's folder."""
    if photos is None or (isinstance(photos, Path) and not is_table(photos)):
        return None
    from lookalike.catalogue.sources import files_of, folder_at, is_uri

    if isinstance(photos, str):
        return folder_at(photos)
    from lookalike.datasets.table import read_table

    rows = read_table(photos)
    paths = [name if is_uri(name) else path for name, path in zip(rows.names, rows.paths, strict=True)]
    start = rows.root.rstrip("/") + "/"
    names = [name if is_uri(name) else path.removeprefix(start) for name, path in zip(rows.names, paths, strict=True)]
    return files_of(rows.root, names, paths)


def apply_rows(catalogue: Catalogue, table: Path) -> None:
    """Set the columns a manifest has beside its paths."""
    from lookalike.datasets.table import read_table

    rows = read_table(table)
    if rows.columns:
        catalogue.set_columns(dict(rows.columns), paths=list(rows.names), missing_ok=True)


@contextlib.contextmanager
def worked(catalogue: Catalogue, settings: Mapping[str, Any]) -> Iterator[Work | None]:
    """Yield who embeds: the workers of a cluster, or None for this process."""
    if not settings.get("on"):
        if settings.get("workers"):
            raise click.UsageError("--workers is how many processes --on dask starts: name both.")
        yield None
        return
    from lookalike.catalogue.work import OnCluster
    from lookalike.embed.cluster import Cluster

    address = Cluster.parse(settings["on"])
    with Cluster.connect(address, workers=settings.get("workers"), threads=settings["threads"]) as cluster:
        if not settings["quiet"]:
            watched = (
                f", dashboard {cluster.dashboard}" if cluster.dashboard else " (for a dashboard: pip install bokeh)"
            )
            output.note(f"Dask: {cluster.slots} task slots{watched}")
        yield OnCluster(cluster, lambda: catalogue.encoder)
