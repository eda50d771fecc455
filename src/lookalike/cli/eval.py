"""lookalike eval: labelled pictures or vectors in, an honest number out."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output, sources
from lookalike.cli.main import CHECK_FAILED, SOME_FILES_FAILED

if TYPE_CHECKING:
    from lookalike.cli.eval_inputs import Inputs
    from lookalike.evaluate.report import Report
    from lookalike.evaluate.sides import Side
    from lookalike.evaluate.staged import Stages, Verify


_NOT_WITH_FOLDS = (
    *("protocol", "holdout", "split_column", "query_where", "gallery_where", "queries", "gallery"),
    *("pairs", "separator", "self_match", "rerank", "expand", "augment", "verify", "fuse"),
)


@click.command("eval")
@sources.measured
@click.option("--separator", metavar="CHARACTER", help="The relevance column holds several labels, so separated.")
@click.option("--match", type=click.Choice(["any", "all"]), default="any", show_default=True,
              help="Of several labels: one shared, or all the query's.")  # fmt: skip
@click.option("--setup", type=click.Choice(["easy", "medium", "hard"]), default="medium", show_default=True,
              help="Of the revisited benchmarks.")  # fmt: skip
@click.option("--pairs", type=sources.EXISTING, help="A table of relevant pairs: columns query and gallery.")
@click.option("--rerank", metavar="NAME[:K=V,…]", help="Re-rank each pool: k-reciprocal:k1=20,k2=6,lambda_value=0.3.")
@click.option("--expand", metavar="alpha[:K=V,…]", help="Expand each query first: alpha:n=10,alpha=3.")
@click.option("--fuse", type=click.Choice(["rrf", "min-max", "z-score"]),
              help="Fuse the rankings of all of a catalogue's encoders.")  # fmt: skip
@click.option("--augment", metavar="K=V,…", help="Pull each gallery vector to its neighbours first: n=5,alpha=3.")
@click.option("--verify", is_flag=True, help="Then compare the pictures: candidates in one consistent position first.")
@click.option("--min-inliers", type=click.IntRange(min=4), default=15, show_default=True,
              help="With --verify: fewer agreeing points prove nothing.")  # fmt: skip
@click.option("--pool", type=click.IntRange(min=1), default=100, show_default=True, help="How many are re-ranked.")
@click.option("--ks", type=options.CutOffs(), default="1,5,10", show_default=True, help="Cut-offs of recall@K.")
@click.option("--metrics", metavar="NAME,NAME,…", help="Compute these beside recall@K: mrr,map@r,ndcg. [default: all]")
@click.option("--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine", show_default=True,
              help="How vectors are compared: an angle, an inner product or a distance.")  # fmt: skip
@click.option("--self-match", is_flag=True, help="Let each query find itself; the report says: not a measurement.")
@click.option("--fail-under", type=options.Threshold(), multiple=True, help="Exit with 1 below it: recall@1=0.6.")
@click.option("--save", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Keep the run here: report.html, report.json, per_query.csv, run.trec, …")  # fmt: skip
@click.option("--trec-depth", type=click.IntRange(min=0), metavar="N",
              help="Answers a query in run.trec; 0: no such file. [default: 100, or fewer]")  # fmt: skip
@click.option("--folds", type=click.IntRange(min=2), metavar="K", help="Measure K folds of whole classes, each alone.")
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

    _check_folds(settings)
    inputs = read_inputs(settings)
    report = _folds(inputs, settings) if settings["folds"] else _measured(inputs, settings)
    report = dataclasses.replace(report, command=_command_line(ctx))
    if settings["save"]:
        report = report.save(settings["save"], trec_depth=settings["trec_depth"])
    if settings["output_format"] == "json":
        output.as_json(report.to_dict())
    else:
        output.data(report.to_text())
    ctx.exit(_exit_code(report.metrics, settings, bool(inputs.failures)))


def _measured(inputs: Inputs, settings: Mapping[str, Any]) -> Report:
    from lookalike.cli.relevance import relevance
    from lookalike.evaluate.run import measure

    return measure(
        inputs.queries,
        inputs.gallery,
        relevance=relevance(inputs, settings),
        camera=inputs.camera,
        cluster=settings["identity"],
        metric=settings["metric"],
        ks=inputs.ks or settings["ks"],
        metrics=_metrics(inputs, settings),
        split=inputs.split,
        seed=settings["seed"],
        self_match=settings["self_match"],
        stages=_stages(settings),
        card=inputs.card,
        failures=inputs.failures,
        timings=inputs.timings,
        threads=settings["threads"],
    )


def _metrics(inputs: Inputs, settings: Mapping[str, Any]) -> list[str] | None:
    """Return the metrics asked for; those a published protocol quotes come on top of the usual ones."""
    from lookalike.evaluate.chosen import metric_names

    if settings["metrics"]:
        return [name.strip() for name in settings["metrics"].split(",")]
    if inputs.benchmark is None:
        return None
    return [*metric_names(inputs.ks), *inputs.benchmark.protocol.metrics]


def _check_folds(settings: Mapping[str, Any]) -> None:
    """Refuse what says otherwise than --folds who asks whom, before any picture is read."""
    named = [f"--{name.replace('_', '-')}" for name in _NOT_WITH_FOLDS if settings[name]]
    if settings["folds"] and named:
        raise click.UsageError(f"--folds measures whole classes, each fold alone; {named[0]} does not go with it.")


def _folds(inputs: Inputs, settings: Mapping[str, Any]) -> Report:
    from lookalike.evaluate.folds import measure_folds

    def one(side: Side, split: str) -> Report:
        return _measured(dataclasses.replace(inputs, queries=side, gallery=side, split=split), settings)

    column = settings["identity"] or inputs.relevance
    return measure_folds(inputs.queries, column, settings["folds"], one, seed=settings["seed"])


def _command_line(ctx: click.Context) -> str | None:
    """Return the words this process was called with, as a shell would take them."""
    words = ctx.find_root().obj
    return shlex.join(["lookalike", *words]) if isinstance(words, list) else None


def _stages(settings: Mapping[str, Any]) -> Stages:
    from lookalike.evaluate.staged import Stages
    from lookalike.rank.fusion import FUSIONS
    from lookalike.rank.stages import augment_stage, expand_stage, rerank_stage

    return Stages(
        augment=augment_stage(settings["augment"]) if settings["augment"] else None,
        expand=expand_stage(settings["expand"]) if settings["expand"] else None,
        fuse=FUSIONS[settings["fuse"]] if settings["fuse"] else None,
        rerank=rerank_stage(settings["rerank"]) if settings["rerank"] else None,
        verify=_verify(settings),
        pool=settings["pool"],
    )


def _verify(settings: Mapping[str, Any]) -> Verify | None:
    if not settings["verify"]:
        return None
    from lookalike.rank.geometric import Geometric
    from lookalike.rank.verification import verify_stage

    source = settings["source"]
    catalogue = source if isinstance(source, Path) and (source / "catalogue.db").exists() else None
    chosen = Geometric(min_inliers=settings["min_inliers"])
    return verify_stage(chosen, catalogue=catalogue, threads=settings["threads"])


def _exit_code(metrics: Mapping[str, float], settings: Mapping[str, Any], some_failed: bool) -> int:
    for name, least in settings["fail_under"]:
        value = metrics.get(name)
        if value is None:
            raise click.UsageError(f"--fail-under {name}: the report has {', '.join(metrics)}.")
        if not value >= least:  # NaN, where nothing was evaluated, is no pass either
            output.warning(f"lookalike: check failed: {name} is {value:.4f}, below {least:g}.")
            return CHECK_FAILED
    return SOME_FILES_FAILED if some_failed else 0
