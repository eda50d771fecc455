"""lookalike tune-rank: re-ranking settings chosen on one part, reported on the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output, sources

if TYPE_CHECKING:
    from lookalike.evaluate.staged import Stages

K_RECIPROCAL = tuple(
    f"k1={k1},k2={k2},lambda_value={share}"
    for (k1, k2), share in itertools.product(((5, 2), (10, 3), (20, 6), (30, 6)), (0.1, 0.3, 0.5, 0.7))
)
MESSAGES = tuple(
    f"k1={k1},k2={k2},layers={layers}"
    for (k1, k2), layers in itertools.product(((5, 2), (10, 3), (20, 5), (26, 7)), (1, 2))
)
EXPANSION = tuple(f"n={n},alpha={alpha}" for n, alpha in itertools.product((1, 2, 3, 5, 10), (0.0, 3.0)))
GRIDS: Mapping[str, tuple[str, ...]] = {
    "k-reciprocal": K_RECIPROCAL,
    "k-reciprocal-graph": K_RECIPROCAL,
    "k-reciprocal-gallery": K_RECIPROCAL,
    "message-passing": MESSAGES,
    "message-passing-gallery": MESSAGES,
    "alpha": EXPANSION,
}
"""What is tried where a method is named without settings."""


@click.command("tune-rank")
@sources.measured
@click.option(
    "--rerank", multiple=True, metavar="NAME[:K=V,…]",
    help="Try this re-ranker; a bare name: a grid of settings. [default: k-reciprocal]",
)  # fmt: skip
@click.option("--expand", multiple=True, metavar="alpha[:K=V,…]", help="Try this expansion. [default: a grid]")
@click.option("--augment", multiple=True, metavar="K=V,…|grid", help="Try this database-side augmentation.")
@click.option("--pool", type=click.IntRange(min=1), default=100, show_default=True, help="How many are re-ranked.")
@click.option("--optimise", default="map", show_default=True, metavar="METRIC", help="What the choice maximises.")
@click.option("--validation", type=float, default=0.5, show_default=True, help="Share of identities that choose.")
@click.option("--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine", show_default=True,
              help="How vectors are compared: an angle, an inner product or a distance.")  # fmt: skip
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
    """Yield what was named, each alone and a re-ranker after each expansion; without names a grid of both kinds."""
    from lookalike.evaluate.staged import Stages
    from lookalike.rank.stages import augment_stage, expand_stage, rerank_stage

    rerankers = [rerank_stage(text) for text in _spelt_out(settings["rerank"])]
    expansions = [expand_stage(text) for text in _spelt_out(settings["expand"])]
    augmentations = EXPANSION if "grid" in settings["augment"] else settings["augment"]
    if not rerankers and not expansions and not augmentations:
        rerankers = [rerank_stage(text) for text in _spelt_out(["k-reciprocal"])]
        expansions = [expand_stage(text) for text in _spelt_out(["alpha"])]
        together: list[Any] = []
    else:
        together = list(itertools.product(expansions, rerankers))
    for reranker in rerankers:
        yield Stages(rerank=reranker, pool=settings["pool"])
    for expansion in expansions:
        yield Stages(expand=expansion)
    for text in augmentations:
        yield Stages(augment=augment_stage(text))
    for expansion, reranker in together:
        yield Stages(expand=expansion, rerank=reranker, pool=settings["pool"])


def _spelt_out(names: Sequence[str]) -> Iterator[str]:
    """Yield each method as it was named, or with every setting of its grid where it was named without any."""
    for name in names:
        if ":" in name or name not in GRIDS:
            yield name
        else:
            yield from (f"{name}:{settings}" for settings in GRIDS[name])
