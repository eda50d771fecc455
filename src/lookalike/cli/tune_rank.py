"""lookalike tune-rank: re-ranking settings chosen on one part, reported on the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output, sources

if TYPE_CHECKING:
    from lookalike.evaluate.staged import Stages

K1_K2, LAMBDA = ((5, 2), (10, 3), (20, 6), (30, 6)), (0.1, 0.3, 0.5, 0.7)
NEIGHBOURS, ALPHA = (1, 2, 3, 5, 10), (0.0, 3.0)


@click.command("tune-rank")
@sources.measured
@click.option(
    "--rerank", multiple=True, metavar="NAME[:K=V,…]", help="Try this re-ranker. [default: k-reciprocal grid]"
)
@click.option("--expand", multiple=True, metavar="alpha[:K=V,…]", help="Try this expansion. [default: a grid]")
@click.option("--pool", type=click.IntRange(min=1), default=100, show_default=True, help="How many are re-ranked.")
@click.option("--optimise", default="map", show_default=True, metavar="METRIC", help="What the choice maximises.")
@click.option("--validation", type=float, default=0.5, show_default=True, help="Share of identities that choose.")
@click.option("--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine", show_default=True)
@click.option("--ks", type=options.CutOffs(), default="1,5,10", show_default=True, help="Cut-offs of recall@K.")
@options.output_format("table", "json")
@options.running
def command(**settings: Any) -> None:
    """Choose re-ranking settings on the queries of some identities, and report them, once, on those of the others.

    The gain is shown with its interval, and so is a loss: a setting that lifts mAP may well lower recall@1.
    """
    from lookalike.cli.eval_inputs import read_inputs
    from lookalike.evaluate.tune_rank import tune_rank

    inputs = read_inputs(settings)
    trials = list(_trials(settings))
    with output.progress("trying", shown=settings["progress"] and not settings["quiet"]) as report:
        step = None if report is None else lambda done, total: report(output.Steps(done, total, 0))
        found = tune_rank(
            inputs.queries, inputs.gallery, trials, by=settings["identity"] or inputs.relevance,
            optimise=settings["optimise"], validation=settings["validation"], seed=settings["seed"], progress=step,
            relevance=inputs.relevance, camera=inputs.camera, cluster=settings["identity"], metric=settings["metric"],
            ks=settings["ks"], split=f"{inputs.split}; test identities", card=inputs.card, threads=settings["threads"],
        )  # fmt: skip
    ordered = sorted(found.trials, key=lambda trial: -trial.value)
    rows = [{"setting": str(trial.stages), "validation": trial.value} for trial in ordered]
    if settings["output_format"] == "json":
        output.as_json({
            "optimise": found.metric, "plain": found.plain, "trials": rows, "chosen": str(found.best.stages),
            "test": found.report.to_dict(),
        })  # fmt: skip
        return
    output.data(f"{found.metric} on the validation identities, best first; without any stage {found.plain:.4f}")
    output.as_table([{**row, "validation": f"{row['validation']:.4f}"} for row in rows[:10]])
    if found.report.plain is None:
        output.data("\nNo setting was better than the plain ranking; the plain ranking on the test identities:\n")
    else:
        output.data("\nThe first of them on the test identities, which had no say in the choice:\n")
    output.data(found.report.to_text())


def _trials(settings: dict[str, Any]) -> Iterator[Stages]:
    """Yield what was named, or a grid of both kinds."""
    from lookalike.evaluate.staged import Stages
    from lookalike.rank.stages import expand_stage, rerank_stage

    rerankers, expansions = list(settings["rerank"]), list(settings["expand"])
    if not rerankers and not expansions:
        grid = itertools.product(K1_K2, LAMBDA)
        rerankers = [f"k-reciprocal:k1={k1},k2={k2},lambda_value={weight}" for (k1, k2), weight in grid]
        expansions = [f"alpha:n={n},alpha={alpha}" for n, alpha in itertools.product(NEIGHBOURS, ALPHA)]
    for name in rerankers:
        yield Stages(rerank=rerank_stage(name), pool=settings["pool"])
    for name in expansions:
        yield Stages(expand=expand_stage(name))
    if settings["rerank"] and settings["expand"]:
        for first, second in itertools.product(expansions, rerankers):
            yield Stages(expand=expand_stage(first), rerank=rerank_stage(second), pool=settings["pool"])
