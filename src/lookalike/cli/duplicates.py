"""lookalike duplicates: pictures kept twice."""

from __future__ import annotations

from typing import Any

import click

from lookalike.cli import opening, options, output


@click.command("duplicates")
@opening.catalogue
@click.option("--at-least", type=click.FloatRange(-1, 1), default=0.97, show_default=True, help="Cosine of `similar`.")
@click.option("--where", metavar="FILTER", help="Only items that pass.")
@click.option("--pixels/--no-pixels", default=True, help="Decode likely pairs to find equal pixels in other files.")
@click.option("--label", metavar="COLUMN", help="Also say how often pictures of a group agree in this column.")
@options.output_format("table", "json", "paths", "paths0")
@options.running
def command(**settings: Any) -> None:
    r"""Group the pictures of CATALOGUE that are the same bytes, the same pixels, or similar; nothing is deleted.

    The first of a group is the one to keep: the largest picture, then the oldest file, then the first path.
    `--format paths` lists the others, those one could do without.
    """
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.duplicates import agreement, duplicates

    with Catalogue.open(
        settings["catalogue"], encoder=settings["encoder"], readonly=True, threads=settings["threads"]
    ) as catalogue:
        found = duplicates(catalogue, at_least=settings["at_least"], where=settings["where"], pixels=settings["pixels"])
        if settings["output_format"] in ("paths", "paths0"):
            end = "\0" if settings["output_format"] == "paths0" else "\n"
            spare = {item.path for group in found.groups for item in group.items if item is not group.keeper}
            for path in sorted(spare - {group.keeper.path for group in found.groups}):
                output.raw(f"{catalogue.root / path if catalogue.root else path}{end}")
            return
        agreed = None
        if settings["label"]:
            ids = catalogue.ids()
            labels = dict(zip(ids.tolist(), catalogue.column(settings["label"], ids), strict=True))
            agreed = agreement(found, labels)
    if settings["output_format"] == "json":
        output.as_json(found.to_dict() | ({"agreement": agreed} if settings["label"] else {}))
        return
    for group in found.groups:
        output.data(f"[{group.level}] keep {group.keeper.path}")
        for item in group.items[1:]:
            size = f" ({item.file.width}×{item.file.height})" if item.file.width else ""
            output.data(f"    {item.path}{size}")
    output.note(
        f"{len(found.groups)} groups" + (f"; {agreed:.3f} of similar pairs agree" if agreed is not None else "")
    )
    if found.unreadable:
        output.warning(f"{len(found.unreadable)} files could not be compared, the first: {found.unreadable[0].path}")
