"""lookalike search: the most similar pictures of a catalogue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output
from lookalike.cli.settings import catalogue_argument

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.rank.query import Term
    from lookalike.rank.search import Ranked


@click.command("search")
@click.argument("catalogue", type=click.Path(path_type=Path), is_eager=True, callback=catalogue_argument)
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--item", type=int, multiple=True, metavar="ID", help="Ask with an item of the catalogue.")
@click.option("--vector", type=click.Path(path_type=Path), help="Ask with the rows of a .npy file.")
@click.option("--plus", multiple=True, metavar="[W*]QUERY", help="Add this picture or text to every query.")
@click.option("--minus", multiple=True, metavar="[W*]QUERY", help="Take this picture or text from every query.")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many answers a query.")
@click.option("--where", metavar="FILTER", help="Only items that pass: \"category = 'shoe' and price < 50\".")
@click.option("--rerank", metavar="NAME[:K=V,…]", help="Re-order the pool: k-reciprocal:k1=20,k2=6.")
@click.option("--pool", type=click.IntRange(min=1), default=100, show_default=True, help="How many are re-ranked.")
@click.option("--encoder", help="Which of the catalogue's encoders. [default: its first]")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the sample lift is measured on.")
@options.output_format("table", "json", "jsonl", "csv", "paths", "paths0")
@options.running
def command(**settings: Any) -> None:
    r"""Find the pictures of CATALOGUE most like each QUERY: a picture's path, or words where the encoder reads text.

    Prints rank, score (with its metric), lift (robust standard deviations above this query's own median score: no
    fixed cut-off fits all queries), id, path, and the rank before re-ranking.

    \b
    lookalike search shop.la query.jpg -k 5
    lookalike search shop.la --item 4711 --where "category = 'shoe'" --rerank k-reciprocal
    lookalike search shop.la shoe.jpg --plus "0.5*leather"
    lookalike search shop.la query.jpg --format paths0 | xargs -0 -n1 xdg-open
    """
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.rank.query import query_vector
    from lookalike.rank.search import search

    with Catalogue.open(
        settings["catalogue"], encoder=settings["encoder"], readonly=True, threads=settings["threads"]
    ) as catalogue:
        asked = _asked(settings)
        extra = [*_terms(settings["plus"], 1.0), *_terms(settings["minus"], -1.0)]
        vectors = [query_vector([term, *extra], catalogue, lambda: catalogue.encoder)[None] for _, term in asked]
        import numpy as np

        own = [int(term.value) if term.kind == "item" else None for _, term in asked]  # type: ignore[arg-type]
        found = search(
            catalogue, np.concatenate(vectors), k=settings["k"], pool=settings["pool"], where=settings["where"],
            stage=_stage(settings), exclude=own, seed=settings["seed"],
        )  # fmt: skip
        _write([name for name, _ in asked], found, catalogue, settings["output_format"])


def _asked(settings: Mapping[str, Any]) -> list[tuple[str, Term]]:
    """Return every query with the name it is shown under."""
    from lookalike.embed.ready import load_vectors
    from lookalike.rank.query import Term, term

    asked = [(text, term(text)) for text in settings["queries"]]
    asked += [(f"item {number}", Term(kind="item", value=number)) for number in settings["item"]]
    if settings["vector"]:
        rows = load_vectors(settings["vector"])
        asked += [(f"{settings['vector']}[{row}]", Term(kind="vector", value=rows[row])) for row in range(len(rows))]
    if not asked:
        raise click.UsageError("Name a QUERY (a picture or words), --item or --vector.")
    return asked


def _terms(texts: Sequence[str], sign: float) -> list[Term]:
    """Parse `0.5*red.jpg` and `leather` into weighted terms."""
    from lookalike.rank.query import term

    terms = []
    for text in texts:
        weight, star, rest = text.partition("*")
        try:
            terms.append(term(rest, sign * float(weight)) if star else term(text, sign))
        except ValueError:  # the star belongs to the text
            terms.append(term(text, sign))
    return terms


def _stage(settings: Mapping[str, Any]) -> Any:
    if settings["rerank"] is None:
        return None
    from lookalike.rank.stages import rerank_stage

    return rerank_stage(settings["rerank"])


def _write(names: Sequence[str], found: Sequence[Ranked], catalogue: Catalogue, output_format: str) -> None:
    if output_format in ("paths", "paths0"):
        end = "\0" if output_format == "paths0" else "\n"
        for ranked in found:
            for path in _absolute(catalogue, ranked):
                output.raw(f"{path}{end}")
        return
    rows = [row for name, ranked in zip(names, found, strict=True) for row in _rows(name, ranked, catalogue)]
    if output_format in ("json", "jsonl"):
        output.as_rows(rows, output_format)
        return
    flat = [{key: value for key, value in row.items() if key != "columns"} | row["columns"] for row in rows]
    if output_format == "csv":
        output.as_csv(flat)
        return
    several = len(names) > 1
    shown = ["query"] * several + ["rank", "score", "lift", "id", "path"]
    moved = any(row["first_rank"] != row["rank"] for row in rows)
    table = [
        {key: _cell(row[key]) for key in shown} | ({"was": row["first_rank"]} if moved else {}) | row["columns"]
        for row in rows
    ]
    output.as_table(table, right=("rank", "score", "lift", "id", "was"))
    if rows:
        better = "higher" if rows[0]["higher_is_better"] else "lower"
        output.note(f"score: {rows[0]['metric']}, {better} is better; lift: above this query's own median")


def _rows(name: str, ranked: Ranked, catalogue: Catalogue) -> list[dict[str, Any]]:
    from lookalike.index.neighbours import higher_is_better

    columns = {column.name: catalogue.column(column.name, ranked.ids) for column in catalogue.columns()}
    return [
        {
            "query": name,
            "rank": place + 1,
            "id": int(ranked.ids[place]),
            "path": path,
            "score": float(ranked.scores[place]),
            "metric": ranked.metric,
            "higher_is_better": higher_is_better(ranked.metric),
            "lift": float(ranked.lifts[place]),
            "first_rank": int(ranked.first_ranks[place]),
            "columns": {column: values[place] for column, values in columns.items()},
        }
        for place, path in enumerate(catalogue.paths(ranked.ids))
    ]


def _absolute(catalogue: Catalogue, ranked: Ranked) -> list[str]:
    if catalogue.root is None:
        return catalogue.paths(ranked.ids)
    return [str(path) for path in catalogue.files(ranked.ids)]


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4f}"
    return value
