"""lookalike search: the most similar pictures of a catalogue."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from lookalike.cli import opening, options, output

if TYPE_CHECKING:
    from lookalike.arrays import Vectors
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.cli.checks import Checks
    from lookalike.rank.query import Term
    from lookalike.rank.search import Ranked
    from lookalike.rank.stages import RerankStage, Stage


@click.command("search")
@click.argument("catalogue", type=opening.Place(), is_eager=True, callback=opening.store_argument)
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--item", type=int, multiple=True, metavar="ID", help="Ask with an item of the catalogue.")
@click.option("--vector", type=click.Path(path_type=Path), help="Ask with the rows of a .npy file.")
@click.option("--plus", multiple=True, metavar="[W*]QUERY", help="Add this picture or text to every query.")
@click.option("--minus", multiple=True, metavar="[W*]QUERY", help="Take this picture or text from every query.")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many answers a query.")
@click.option("--where", metavar="FILTER", help="Only items that pass: \"category = 'shoe' and price < 50\".")
@click.option("--rerank", metavar="NAME[:K=V,…]", help="Re-order the pool: k-reciprocal:k1=20,k2=6.")
@click.option("--verify", is_flag=True, help="Then compare the pictures: candidates in one consistent position first.")
@click.option("--min-inliers", type=click.IntRange(min=4), default=15, show_default=True,
              help="With --verify: fewer agreeing points prove nothing.")  # fmt: skip
@click.option("--explain", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="With --verify: write each pair with its matches drawn, as PNG.")  # fmt: skip
@click.option("--pool", type=click.IntRange(min=1), default=100, show_default=True,
              help="How many are re-ranked, verified or fused.")  # fmt: skip
@click.option("--encoder", help="Which of the catalogue's encoders. [default: its first]")
@click.option("--fuse", type=click.Choice(["rrf", "min-max", "z-score"]),
              help="Ask all of the catalogue's encoders and fuse their rankings.")  # fmt: skip
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
    lookalike search shop.la label.jpg --pool 2000 --verify --explain pairs/
    lookalike search "postgresql://me@db.example/shop?table=shop" query.jpg    # after: lookalike push
    lookalike search shop.la query.jpg --format paths0 | xargs -0 -n1 xdg-open
    """
    from lookalike.rank.fusion import FUSIONS
    from lookalike.rank.search import search

    if settings["explain"] and not settings["verify"]:
        raise click.UsageError("--explain draws what --verify found: name both.")
    asked = _asked(settings)
    reranker = _reranker(settings)
    with contextlib.ExitStack() as files:
        # A graph of the gallery is kept in the catalogue; everything else only reads.
        graph = reranker is not None and reranker.method.scope == "gallery"
        catalogue = files.enter_context(_opened(settings, settings["encoder"], readonly=not graph))
        checks = _checks(settings, catalogue, asked)
        others = [files.enter_context(each) for each in _others(settings, catalogue)]
        found = search(
            catalogue, _vectors(asked, catalogue, settings), k=settings["k"], pool=settings["pool"],
            where=settings["where"], stage=_stage(reranker, checks),
            fuse_with=[(other, _vectors(asked, other, settings)) for other in others],
            fuse=FUSIONS[settings["fuse"] or "rrf"], exclude=_items(asked), seed=settings["seed"],
        )  # fmt: skip
        rows = [
            row
            for (name, _), ranked in zip(asked, found, strict=True)
            for row in _rows(name, ranked, catalogue, checks)
        ]
        _write(rows, [path for ranked in found for path in _absolute(catalogue, ranked)], len(asked) > 1, settings)
        if checks is not None:
            checks.finish(found, settings["explain"])


def _opened(settings: Mapping[str, Any], encoder: str | None, *, readonly: bool) -> Catalogue:
    """Open a catalogue, or a store on an engine, which answers the same calls as long as nothing is written."""
    place = settings["catalogue"]
    if isinstance(place, str) and not readonly:
        raise click.UsageError("A graph of the whole gallery is kept in a catalogue: re-rank there, or a pool of this.")
    return cast("Catalogue", opening.open_store(place, encoder=encoder, readonly=readonly, threads=settings["threads"]))


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


def _items(asked: Sequence[tuple[str, Term]]) -> list[int | None]:
    return [int(term.value) if term.kind == "item" else None for _, term in asked]  # type: ignore[arg-type]


def _vectors(asked: Sequence[tuple[str, Term]], catalogue: Catalogue, settings: Mapping[str, Any]) -> Vectors:
    import numpy as np

    from lookalike.rank.query import query_vector

    extra = [*_terms(settings["plus"], 1.0), *_terms(settings["minus"], -1.0)]
    return np.stack([query_vector([term, *extra], catalogue, lambda: catalogue.encoder) for _, term in asked])


def _others(settings: Mapping[str, Any], catalogue: Catalogue) -> list[Catalogue]:
    """Open the catalogue by each of its other encoders, where their rankings are to be fused."""
    if not settings["fuse"]:
        return []
    if isinstance(settings["catalogue"], str):
        raise click.UsageError("--fuse asks several encoders, and an engine holds the vectors of one.")
    if settings["vector"]:
        raise click.UsageError("--fuse asks several encoders, and --vector has the vectors of one.")
    others = [card.digest for card in catalogue.cards() if card.digest != catalogue.card.digest]
    if not others:
        raise click.UsageError(
            f"--fuse needs several encoders: {settings['catalogue']} has {catalogue.card.name} only."
        )
    return [_opened(settings, digest, readonly=True) for digest in others]


def _reranker(settings: Mapping[str, Any]) -> RerankStage | None:
    if settings["rerank"] is None:
        return None
    from lookalike.rank.stages import rerank_stage

    return rerank_stage(settings["rerank"])


def _checks(settings: Mapping[str, Any], catalogue: Catalogue, asked: Sequence[tuple[str, Term]]) -> Checks | None:
    if not settings["verify"]:
        return None
    if isinstance(settings["catalogue"], str):
        raise click.UsageError("--verify compares pictures, and an engine holds vectors: verify in a catalogue.")
    from lookalike.cli.checks import Checks

    return Checks(settings, catalogue, [term for _, term in asked])


def _stage(reranker: RerankStage | None, checks: Checks | None) -> Stage | None:
    """Join what was asked for: first the vectors, then the pictures."""
    if reranker is None or checks is None:
        return checks or reranker
    from lookalike.rank.stages import Chain

    return Chain((reranker, checks))


def _write(rows: Sequence[dict[str, Any]], paths: Sequence[str], several: bool, settings: Mapping[str, Any]) -> None:
    output_format = settings["output_format"]
    if output_format in ("paths", "paths0"):
        end = "\0" if output_format == "paths0" else "\n"
        for path in paths:
            output.raw(f"{path}{end}")
    elif output_format in ("json", "jsonl"):
        output.as_rows(rows, output_format)
    elif output_format == "csv":
        output.as_csv([{key: value for key, value in row.items() if key != "columns"} | row["columns"] for row in rows])
    else:
        _write_table(rows, several)


def _write_table(rows: Sequence[dict[str, Any]], several: bool) -> None:
    shown = ["query"] * several + ["rank", "score", "lift", "id", "path"]
    shown += ["inliers"] * any("inliers" in row for row in rows)
    moved = any(row["first_rank"] != row["rank"] for row in rows)
    table = [
        {key: _cell(row[key]) for key in shown} | ({"was": row["first_rank"]} if moved else {}) | row["columns"]
        for row in rows
    ]
    output.as_table(table, right=("rank", "score", "lift", "id", "inliers", "was"))
    if rows:
        better = "higher" if rows[0]["higher_is_better"] else "lower"
        output.note(f"score: {rows[0]['metric']}, {better} is better; lift: above this query's own median")


def _rows(name: str, ranked: Ranked, catalogue: Catalogue, checks: Checks | None) -> list[dict[str, Any]]:
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
            "first_rank": int(ranked.first_ranks[place]) or None,  # fusion: by this encoder alone it was not there
            **({} if checks is None else {"inliers": checks.inliers(ranked, place)}),
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
