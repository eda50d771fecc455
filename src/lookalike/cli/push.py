"""lookalike push: a catalogue into a database that many machines search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lookalike.cli import opening, options, output, sizes


@click.command("push")
@opening.catalogue
@click.argument("store")
@click.option("--index", type=click.Choice(["hnsw", "ivfflat", "none"]), default="hnsw", show_default=True,
              help="How the engine searches a new store; none compares every row.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["float32", "float16"]), default="float32", show_default=True,
              help="How a new store keeps vectors; float16 is half the bytes.")  # fmt: skip
@click.option("--measure", type=click.IntRange(min=0), default=100, show_default=True, metavar="QUERIES",
              help="Measure the overlap with exact search over so many queries; 0: not at all.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
              metavar="SECONDS", help="The longest one chunk or one search may take.")  # fmt: skip
@options.output_format("table", "json")
@options.running
@click.pass_context
def command(ctx: click.Context, /, catalogue: Path, store: str, **settings: Any) -> None:
    r"""Make STORE hold what CATALOGUE holds: vectors, paths and columns, written row by row where they differ.

    STORE is postgresql://user@host/database?table=shop (PostgreSQL with pgvector), milvus:shop.db (an embedded Milvus
    file), milvus:http://host:19530?collection=shop (a server or a cluster), or env:NAME, an environment variable with
    one of these. It is made where it is not there yet. Run again, or after an interruption, only the rest is written.

    Passwords belong in PGPASSWORD, ~/.pgpass or LOOKALIKE_MILVUS_TOKEN; none is ever printed.

    \b
    lookalike push shop.la postgresql://me@db.example/shop
    lookalike search postgresql://me@db.example/shop query.jpg --rerank k-reciprocal
    """
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.external.opening import create_external, open_external
    from lookalike.catalogue.external.patience import Patience
    from lookalike.catalogue.external.push import measure_overlap, push
    from lookalike.errors import NotFoundError

    patience = Patience(answer_s=settings["timeout"])
    with Catalogue.open(catalogue, encoder=settings["encoder"], readonly=True, threads=settings["threads"]) as shop:
        try:
            engine = open_external(store, patience=patience, threads=settings["threads"])
            _refuse_other(ctx, engine)
        except NotFoundError:
            engine = create_external(
                store, card=shop.card, metric=shop.metric, dtype=settings["dtype"], index=settings["index"],
                columns=shop.columns(), patience=patience, threads=settings["threads"],
            )  # fmt: skip
            if not settings["quiet"]:
                output.note(f"new store {engine.address}")
        with engine:
            before = engine.revision
            with output.progress("pushing", shown=settings["progress"] and not settings["quiet"]) as report:
                result = push(engine, shop, progress=report)
            measured = engine.state.overlap
            if settings["measure"] and len(engine) and (before != result.revision or measured is None):
                measure_overlap(engine, exact=shop, queries=settings["measure"])
                measured = engine.state.overlap
            size = engine.size()
    _write(result, measured, size, settings["output_format"])


def _refuse_other(ctx: click.Context, engine: Any) -> None:
    """Refuse --index and --dtype that the store which is there was not made with."""
    import json

    has = {"index": json.loads(engine.state.index)["kind"], "dtype": engine.state.dtype}
    for name, value in has.items():
        asked = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if asked and ctx.params[name] != value:
            address = engine.address
            engine.close()
            raise click.UsageError(
                f"The store {address} was made with --{name} {value}: leave it out, or name another table."
            )


def _write(result: Any, measured: dict[str, Any] | None, size: int | None, output_format: str) -> None:
    if output_format == "json":
        output.as_json({**result.to_dict(), "overlap": measured, "bytes": size})
        return
    output.data(str(result))
    note = f"{result.items:,} items at revision {result.revision}, {result.seconds:.1f} s"
    if size is not None:
        note += f", {sizes.shown(size)} in the engine"
    output.note(note)
    if measured is not None:
        output.note(
            f"overlap with exact search, measured: {measured['value']:.3f} [{measured['low']:.3f}, "
            f"{measured['high']:.3f}] @{measured['k']} over {measured['queries']} queries"
        )
