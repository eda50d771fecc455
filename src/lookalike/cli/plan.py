"""lookalike plan: what fits, before there is any data."""

from __future__ import annotations

import click

from lookalike.cli import options, output, sizes


@click.command("plan")
@click.option("--items", type=sizes.Count(), required=True, help="How many pictures: 1e8.")
@click.option("--dim", type=sizes.Count(), default="512", show_default=True)
@click.option("--ram", type=sizes.Bytes(), help="Memory of the machine: 16GB.")
@click.option("--latency", type=sizes.Milliseconds(), help="The longest a query may take: 50ms.")
@click.option("--recall", type=click.FloatRange(0, 1), help="The least overlap with exact search: 0.95.")
@click.option("--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine", show_default=True)
@click.option("--measure/--no-measure", default=True, help="Measure this machine's scan bandwidth (0.3 s).")
@options.output_format("table", "json", "csv")
def command(
    items: int, dim: int, ram: int | None, latency: float | None, recall: float | None, metric: str, measure: bool,
    output_format: str,
) -> None:  # fmt: skip
    r"""Say which kinds of index fit a demand, what each costs in bytes and, by estimate, in milliseconds.

    \b
    lookalike plan --items 1e8 --dim 512 --ram 16GB --latency 50ms
    """
    from lookalike.index.plan import measure_bandwidth, plan

    bandwidth = measure_bandwidth() if measure else None
    found = plan(items, dim, ram=ram, latency_ms=latency, recall=recall, metric=metric, bandwidth=bandwidth)
    if output_format == "json":
        output.as_json({"bandwidth": bandwidth, "rows": [row.as_dict() for row in found]})
        return
    rows = []
    for row in found:
        values = row.as_dict()
        tags = values["tags"]
        rows.append({
            "kind": row.kind,
            "fits": "yes" if row.fits else "no",
            "bytes": f"{sizes.shown(values['bytes'])} {tags.get('bytes', '')}".strip(),
            "a vector": f"{values['bytes_per_vector']:.0f} B",
            "latency": f"{row.latency_ms:.2f} ms {tags.get('latency_ms', '')}".strip(),
            "overlap": f"{row.overlap:.2f} {tags.get('overlap', '')}".strip(),
            "misses": "; ".join(miss.rstrip(".") for miss in row.misses),
        })  # fmt: skip
    output.as_rows(rows, output_format)
    if output_format == "table":
        if bandwidth is not None:
            output.note(f"scan bandwidth of this machine, measured: {bandwidth / 1e9:.1f} GB/s on one thread")
        output.note("overlap depends on the vectors: `lookalike tune` measures it on yours")
