"""lookalike memory: the bytes of an index before there is one."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from lookalike.cli import options, output, sizes


@click.command("memory")
@click.argument("n", type=sizes.Count())
@click.argument("dim", type=sizes.Count())
@click.option("--kind", default="flat", show_default=True, help="flat, ivf, ivf-pq, hnsw, hnsw-sq8, ivf-pqfs, …")
@click.option("--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine", show_default=True,
              help="How vectors are compared; l2 costs some kinds a table more.")  # fmt: skip
@click.option("--m", type=int, help="Parts of a product code, or links of a graph node.")
@click.option("--nlist", type=int, help="Cells.")
@click.option("--set", "more", multiple=True, metavar="KEY=VALUE", help="Any other setting of the kind.")
@options.output_format("table", "json", "csv")
def command(n: int, dim: int, output_format: str, **settings: Any) -> None:
    r"""Say how many bytes an index of N vectors of DIM dimensions takes, component by component; no data needed.

    \b
    lookalike memory 1000000 512 --kind ivf-pq --m 64 --nlist 4000
    """
    from lookalike.index.kinds import settings_for
    from lookalike.index.memory import predict
    from lookalike.rank.stages import parse

    given = {name: settings[name] for name in ("m", "nlist") if settings[name] is not None}
    kind = type(settings_for(settings["kind"], {}))
    named = parse(kind, ",".join(settings["more"])) if settings["more"] else kind()
    table = predict(n, dim, kind=_with(named, given), metric=settings["metric"])
    if output_format == "json":
        output.as_json({
            "components": dict(table.components), "total": table.total, "bytes_per_vector": table.total / n,
            "exact": table.exact, "kind": table.kind, "settings": dataclasses.asdict(table.settings),
            "file": table.file, "beside": dict(table.beside), "build": dict(table.build),
            "resident": table.resident, "build_peak": table.build_peak,
        })  # fmt: skip
        return
    rows = [_row("index", name, size, n) for name, size in table.components.items()]
    rows.append(_row("index", "total", table.total, n))
    rows += [_row("beside it, resident", name, size, n) for name, size in table.beside.items()]
    rows += [_row("while building", name, size, n) for name, size in table.build.items()]
    output.as_rows(rows, output_format) if output_format == "csv" else output.as_table(rows, right=("bytes", "size"))
    if output_format == "table":
        known = "exact" if table.exact else "the codes are exact, the padding of the lists is estimated"
        output.note(
            f"{known}; resident {sizes.shown(table.resident)}, at most {sizes.shown(table.build_peak)} to build"
        )


def _with(settings: Any, given: dict[str, Any]) -> Any:
    from lookalike.errors import UnknownNameError

    fields = [field.name for field in dataclasses.fields(settings)]
    for name in given:
        if name not in fields:
            raise UnknownNameError(f"setting of {settings.kind}", name, fields)
    return dataclasses.replace(settings, **given)


def _row(where: str, name: str, size: int, n: int) -> dict[str, Any]:
    return {
        "where": where,
        "component": name,
        "bytes": f"{size:,}",
        "size": sizes.shown(size),
        "a vector": f"{size / n:.1f}",
    }
