"""lookalike eval: labelled pictures or vectors in, an honest number out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output
from lookalike.cli.main import CHECK_FAILED, SOME_FILES_FAILED
from lookalike.cli.settings import catalogue_argument

if TYPE_CHECKING:
    from lookalike.evaluate.staged import Stages

EXISTING = click.Path(path_type=Path)


@click.command("eval")
@click.argument("source", required=False, type=EXISTING, is_eager=True, callback=catalogue_argument)
@click.option("--encoder", help="See: lookalike models list. [default: builtin:effnet-lite0, or the catalogue's]")
@click.option("--label", metavar="COLUMN", help="The column that says what a picture shows. [default: label]")
@click.option("--identity", metavar="COLUMN", help="The column that says which one it shows.")
@click.option("--relevance", metavar="COLUMN", help="Relevant means: the same value here. [default: the label]")
@click.option("--camera", metavar="COLUMN", help="Pictures of the query's identity by its own camera are removed.")
@click.option("--path-column", default="path", show_default=True, help="The manifest's column of paths.")
@click.option("--root", type=EXISTING, help="Where a manifest's relative paths start. [default: its own folder]")
@click.option("--split-column", metavar="COLUMN", help="The column that says who asks and who answers.")
@click.option("--query-split", metavar="VALUE", default="query", show_default=True)
@click.option("--gallery-split", metavar="VALUE", default="gallery", show_default=True)
@click.option("--query-where", metavar="FILTER", help="A catalogue's items that ask: \"split = 'query'\".")
@click.option("--gallery-where", metavar="FILTER", help="A catalogue's items that answer.")
@click.option("--holdout", type=float, metavar="SHARE", help="Let this share ask the rest. [default: leave-one-out]")
@click.option("--holdout-by", type=click.Choice(["item", "identity"]), default="item", show_default=True,
              help="identity: whole identities are held out and ask one another.")  # fmt: skip
@click.option("--vectors", type=EXISTING, help="Ready vectors (.npy), query and gallery at once, with --labels.")
@click.option("--labels", type=EXISTING, help="A table with a header and one row a vector.")
@click.option("--queries", type=EXISTING, help="Ready query vectors (.npy), with --query-labels.")
@click.option("--query-labels", type=EXISTING)
@click.option("--gallery", type=EXISTING, help="Ready gallery vectors (.npy), with --gallery-labels.")
@click.option("--gallery-labels", type=EXISTING)
@click.option("--rerank", metavar="NAME[:K=V,…]", help="Re-rank each pool: k-reciprocal:k1=20,k2=6,lambda_value=0.3.")
@click.option("--expand", metavar="alpha[:K=V,…]", help="Expand each query first: alpha:n=10,alpha=3.")
@click.option("--pool", type=click.IntRange(min=1), default=100, show_default=True, help="How many are re-ranked.")
@click.option("--ks", type=options.CutOffs(), default="1,5,10", show_default=True, help="Cut-offs of recall@K.")
@click.option("--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine", show_default=True)
@click.option("--self-match", is_flag=True, help="Let each query find itself; the report says: not a measurement.")
@click.option("--seed", type=int, default=0, show_default=True, help="For the holdout and the intervals.")
@click.option("--fail-under", type=options.Threshold(), multiple=True, help="Exit with 1 below it: recall@1=0.6.")
@click.option("--save", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep the run here.")
@click.option("--failures", type=click.Path(path_type=Path), metavar="FILE",
              help="Where unreadable files are listed, as JSON lines. [default: in the temporary folder]")  # fmt: skip
@click.option("--strict", is_flag=True, help="Stop at the first unreadable file.")
@options.output_format("table", "json")
@options.running
@click.pass_context
def command(ctx: click.Context, /, **settings: Any) -> None:
    r"""Measure retrieval: every query ranks the gallery, and recall@K says how often a right picture is among K.

    SOURCE is a catalogue, a folder with one folder a class, or a manifest (CSV, TSV, Parquet) with a column of paths.
    Without a split or a holdout every picture asks all the others, and is never its own answer.

    \b
    lookalike eval photos/ --holdout 0.2
    lookalike eval manifest.csv --split-column split --query-split test --gallery-split train
    lookalike eval --vectors v.npy --labels l.csv
    """
    from lookalike.cli.eval_inputs import read_inputs
    from lookalike.evaluate.run import measure

    inputs = read_inputs(settings)
    report = measure(
        inputs.queries,
        inputs.gallery,
        relevance=inputs.relevance,
        camera=settings["camera"],
        cluster=settings["identity"],
        metric=settings["metric"],
        ks=settings["ks"],
        split=inputs.split,
        seed=settings["seed"],
        self_match=settings["self_match"],
        stages=_stages(settings),
        card=inputs.card,
        failures=inputs.failures,
        timings=inputs.timings,
        threads=settings["threads"],
    )
    if settings["save"]:
        report = report.save(settings["save"])
    if settings["output_format"] == "json":
        output.as_json(report.to_dict())
    else:
        output.data(report.to_text())
    ctx.exit(_exit_code(report.metrics, settings, bool(inputs.failures)))


def _stages(settings: Mapping[str, Any]) -> Stages:
    from lookalike.evaluate.staged import Stages
    from lookalike.rank.stages import expand_stage, rerank_stage

    return Stages(
        expand=expand_stage(settings["expand"]) if settings["expand"] else None,
        rerank=rerank_stage(settings["rerank"]) if settings["rerank"] else None,
        pool=settings["pool"],
    )


def _exit_code(metrics: Mapping[str, float], settings: Mapping[str, Any], some_failed: bool) -> int:
    for name, least in settings["fail_under"]:
        value = metrics.get(name)
        if value is None:
            raise click.UsageError(f"--fail-under {name}: the report has {', '.join(metrics)}.")
        if not value >= least:  # NaN, where nothing was evaluated, is no pass either
            output.note(f"lookalike: check failed: {name} is {value:.4f}, below {least:g}.")
            return CHECK_FAILED
    return SOME_FILES_FAILED if some_failed else 0
