"""lookalike plan: what fits, before there is any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output, sizes

if TYPE_CHECKING:
    from lookalike.index.plan import PlanRow
    from lookalike.index.scale import Embedding, Shards


class Rate(click.ParamType["float | str"]):
    """Pictures a second, or the word `measure`."""

    name = "RATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Parse."""
        if isinstance(value, float):
            return value
        if value == "measure":
            return "measure"
        try:
            rate = float(value)
        except ValueError:
            rate = 0.0
        if not 0 < rate < float("inf"):
            self.fail(f"{value!r} is no rate: write pictures a second such as 120, or measure.", param, ctx)
        return rate


def measure_rate() -> float:
    """Return the pictures a second that one thread of this machine embeds: photographs of 640 by 480, built-in encoder.

    The best of three passes after one that warms up; a picture of another size takes another time to decode.
    """
    import io
    import time

    import numpy as np
    from PIL import Image

    from lookalike.embed.builtin import BuiltinEncoder
    from lookalike.embed.pipeline import encode_all

    rng = np.random.default_rng(0)
    pictures = []
    for _ in range(16):
        rough = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((640, 480))
        buffer = io.BytesIO()
        rough.save(buffer, "JPEG", quality=88)
        pictures.append(buffer.getvalue())
    encoder, best = BuiltinEncoder(threads=1), float("inf")
    for _ in range(4):
        began = time.perf_counter()
        encode_all(pictures, encoder, threads=1)
        best = min(best, time.perf_counter() - began)
    return len(pictures) / best


@click.command("plan")
@click.option("--items", type=sizes.Count(), required=True, help="How many pictures: 1e8.")
@click.option("--dim", type=sizes.Count(), default="512", show_default=True, help="Length of a vector.")
@click.option("--ram", type=sizes.Bytes(), help="Memory of the machine: 16GB.")
@click.option("--latency", type=sizes.Milliseconds(), help="The longest a query may take: 50ms.")
@click.option("--recall", type=click.FloatRange(0, 1), help="The least overlap with exact search: 0.95.")
@click.option("--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine", show_default=True,
              help="How vectors are compared; l2 costs some kinds a table more.")  # fmt: skip
@click.option("--measure/--no-measure", default=True, help="Measure this machine's scan bandwidth (0.3 s).")
@click.option(
    "--rate",
    type=Rate(),
    metavar="N|measure",
    help="Pictures a second one worker embeds, or measure: the built-in encoder, here. Says how many hours.",
)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="With --rate.")
@options.output_format("table", "json", "csv")
def command(
    items: int, dim: int, ram: int | None, latency: float | None, recall: float | None, metric: str, measure: bool,
    rate: float | str | None, workers: int, output_format: str,
) -> None:  # fmt: skip
    r"""Say which kinds of index fit a demand, what each costs in bytes and, by estimate, in milliseconds.

    Where one machine's --ram does not hold an index, says into how many shards of that memory it goes, a quarter left
    free; and with --rate, how many hours the embedding takes.

    \b
    lookalike plan --items 1e8 --dim 512 --ram 16GB --latency 50ms
    lookalike plan --items 1e9 --dim 512 --ram 256GB --rate measure --workers 64
    """
    from lookalike.index.neighbours import check_metric
    from lookalike.index.plan import measure_bandwidth, plan
    from lookalike.index.scale import embedding, shards

    bandwidth = measure_bandwidth() if measure else None
    found = plan(items, dim, ram=ram, latency_ms=latency, recall=recall, metric=metric, bandwidth=bandwidth)
    cut = {id(row): shards(row, dim, ram=ram, metric=check_metric(metric)) for row in found} if ram else {}
    time = None
    if rate is not None:
        known = measure_rate() if isinstance(rate, str) else rate
        time = embedding(items, rate=known, workers=workers, measured=isinstance(rate, str))
    if output_format == "json":
        told = [row.as_dict() | ({"shards": cut[id(row)].as_dict()} if id(row) in cut else {}) for row in found]
        output.as_json({"bandwidth": bandwidth, "rows": told, "embedding": time.as_dict() if time else None})
        return
    _write(found, cut, output_format)
    if output_format == "table":
        _notes(bandwidth, time)


def _write(found: Sequence[PlanRow], cut: Mapping[int, Shards], output_format: str) -> None:
    rows = []
    for row in found:
        values = row.as_dict()
        tags = values["tags"]
        rows.append({
            "kind": row.kind,
            "refine": values["settings"].get("refine", "none"),
            "fits": "yes" if row.fits else "no",
            "bytes": f"{sizes.shown(values['bytes'])} {tags.get('bytes', '')}".strip(),
            **({"shards": f"{cut[id(row)].count:,} of {sizes.shown(cut[id(row)].bytes)}"} if id(row) in cut else {}),
            "a vector": f"{values['bytes_per_vector']:.0f} B",
            "latency": f"{row.latency_ms:.2f} ms {tags.get('latency_ms', '')}".strip(),
            "overlap": f"{row.overlap:.2f} {tags.get('overlap', '')}".strip(),
            "misses": "; ".join(miss.rstrip(".") for miss in row.misses),
        })  # fmt: skip
    output.as_rows(rows, output_format)


def _notes(bandwidth: float | None, time: Embedding | None) -> None:
    if bandwidth is not None:
        output.note(f"scan bandwidth of this machine, measured: {bandwidth / 1e9:.1f} GB/s on one thread")
    if time is not None:
        source = "measured here with the built-in encoder" if time.measured else "given"
        output.note(
            f"embedding: {time.hours:,.1f} hours, extrapolated from {time.rate:,.1f} pictures a second and worker "
            f"({source}) over {time.workers:,} workers"
        )
    output.note("overlap depends on the vectors: `lookalike tune` measures it on yours")
