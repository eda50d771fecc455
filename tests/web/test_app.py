"""The web app in a real browser, screen by screen; every number on it is compared with Python or the command line."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path

import pytest

from lookalike.train.triplets import triplet

from .conftest import STATIC, Scenario, lookalike

ITEM = 7


def _ranked(catalogue: Path, *words: object) -> list[dict[str, object]]:
    done = lookalike("search", catalogue, *words, "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [{"rank": row["rank"], "score": f"{row['score']:.4f}", "id": row["id"]} for row in rows]


def test_a_dropped_picture_finds_itself_with_the_scores_of_the_command_line(browse: Scenario, pictures: Path) -> None:
    query = pictures.parent / "pictures/07.png"
    found = browse("picture", picture=str(query))
    assert found["results"] == _ranked(pictures, query, "-k", 6)
    assert found["results"][0]["score"] == "1.0000"
    assert shlex.split(found["command"])[3] == "query.png"


@pytest.mark.parametrize("rerank", ["", "k-reciprocal"])
def test_results_of_an_item_are_those_of_the_command_beside_them(browse: Scenario, rerank: str) -> None:
    found = browse("item", item=ITEM, rerank=rerank)
    words = shlex.split(found["command"])
    assert words[:2] == ["lookalike", "search"]
    assert found["results"] == _ranked(Path(words[2]), *words[3:])


def test_parts_are_added_and_taken_away_and_stay_in_the_address(browse: Scenario) -> None:
    assert browse("combination", item=ITEM)["weights"] == ["1", "0.5"]


def test_a_text_is_refused_by_an_encoder_of_pictures_with_its_reason(browse: Scenario) -> None:
    found = browse("refused text")
    assert "builtin:effnet-lite0" in found["said"] and "open_clip:" in found["said"]
    assert "Text is off" in found["note"]


def test_self_matches_lift_recall_to_one_and_are_marked_as_no_measurement(browse: Scenario) -> None:
    found = browse("self-match", relevance="identity")
    done = lookalike(*shlex.split(found["command"])[1:], "--ks", "1,5", "--format", "json")
    metrics = json.loads(done.stdout)["metrics"]
    assert found["before"] == f"{metrics['recall@1']:.3f}" != "1.000"
    assert found["at5"] == f"{metrics['recall@5']:.3f}"


def test_a_dragged_corner_changes_the_loss_to_what_python_computes(browse: Scenario) -> None:
    found = browse("triplet", triplet=[1, 2, 20])
    assert found["before"]["plain"] != found["dragged"]["plain"] != found["byKey"]["plain"]
    for state in found.values():
        cosines = re.search(r"triplet\(([^,]+), ([^,]+), margin=0\.2\)", state["command"])
        assert cosines is not None
        made = triplet(ast.literal_eval(cosines[1]), ast.literal_eval(cosines[2]), margin=0.2)
        assert [state["plain"], state["squared"]] == [f"{made.loss_plain:.4f}", f"{made.loss_squared:.4f}"]
        assert state["python"] == [state["plain"], state["squared"]]


def test_a_batch_of_three_classes_of_four_has_288_triplets(browse: Scenario) -> None:
    found = browse("batch", relevance="label")  # 3 classes: 3 · 4 · 3 · 8
    assert found["heading"] == "288 valid triplets" and found["rows"] > 0


def test_moving_nprobe_measures_again(browse_large: Scenario) -> None:
    found = browse_large("nprobe")
    assert found["after"] != found["before"]


def test_bytes_of_a_million_vectors_are_the_hand_checked_ones(browse: Scenario) -> None:
    found = browse("bytes")
    assert found["total"] == "80,716,288 bytes"
    done = lookalike(*shlex.split(found["command"])[1:], "--format", "json")
    assert json.loads(done.stdout)["total"] == 80_716_288


def test_a_lasso_around_everything_selects_and_exports_every_item(browse: Scenario) -> None:
    found = browse("lasso")
    assert found["renderer"] == "webgl", "the page's policy forbids what regl compiles at run time: npm run shaders"
    assert found["heading"] == "45 items selected"
    assert found["rows"][0] == "id,path,label,identity" and len(found["rows"]) == 46


def test_the_map_is_used_by_keyboard(browse: Scenario) -> None:
    assert "pick=" in browse("map by keyboard")["address"]


def test_without_webgl_the_map_is_drawn_on_a_canvas_and_says_so(browse: Scenario) -> None:
    found = browse("canvas fallback")
    assert found["heading"] == "45 items selected"
    assert "without WebGL" in found["note"]


def test_facets_and_failed_files(browse: Scenario) -> None:
    found = browse("facets", value="blue")
    assert found["status"] == "15 items"
    assert shlex.split(found["command"])[-1] == "label = 'blue'"
    [row] = browse("failed files")["rows"]
    assert row.startswith("broken.jpg")


def test_two_evaluations_are_saved_compared_and_shown_on_the_map(browse: Scenario) -> None:
    found = browse("runs", relevance="identity")
    assert found["report"].startswith("[evaluation]\nnum queries: 45\nnum gallery: 45\nembedding_dim: 1280\n")
    assert found["compared"].startswith("recall@1")


@pytest.mark.parametrize("name", ["keyboard", "theme", "narrow", "accessible"])
def test_every_screen_is_usable_by(browse: Scenario, name: str) -> None:
    browse(name, item=ITEM)


@pytest.mark.slow
def test_a_hundred_thousand_items_are_drawn_and_scrolled_with_a_bounded_page(browse_large: Scenario) -> None:
    found = browse_large("large", n=100_000)
    assert found["most"] < 200
    assert found["renderer"] == "webgl"


def test_the_built_page_names_no_other_address() -> None:
    files = [*STATIC.rglob("*.js"), *STATIC.rglob("*.css"), *STATIC.rglob("*.html")]
    if not files:
        pytest.skip("the app is not built: npm run build --prefix web")
    named = {found for file in files for found in re.findall(r"https?://[\w.-]+", file.read_text(encoding="utf-8"))}
    # The namespace of SVG, and pages that errors of Svelte and regl point their reader to; none is asked for.
    assert named <= {"http://www.w3.org", "https://svelte.dev", "http://get.webgl.org", "https://www.npmjs.com"}, named
