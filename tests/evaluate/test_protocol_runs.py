"""Each published benchmark through `lookalike eval --protocol`, on small trees of its layout."""

from __future__ import annotations

import importlib.util
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lookalike.cli.main import run
from lookalike.errors import InputError
from lookalike.evaluate.boxes import part_of

_SPEC = importlib.util.spec_from_file_location("layouts", Path(__file__).parents[1] / "datasets/test_protocols.py")
assert _SPEC is not None
assert _SPEC.loader is not None
layouts = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(layouts)

COLOURS = {"red": (200, 40, 40), "green": (40, 180, 60), "blue": (40, 60, 200), "grey": (128, 128, 128)}


def draw(path: Path, colour: str, *, box: tuple[int, int, int, int] | None = None, inside: str = "grey") -> None:
    """Write a noisy picture of one colour, another inside the box."""
    rng = np.random.default_rng(zlib.crc32(path.name.encode()))
    pixels = np.zeros((64, 64, 3)) + COLOURS[colour]
    if box is not None:
        left, top, right, bottom = box
        pixels[top:bottom, left:right] = COLOURS[inside]
    path.parent.mkdir(parents=True, exist_ok=True)
    noisy = np.clip(pixels + rng.normal(0, 8, pixels.shape), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(path, format="PNG")  # the name says .jpg, the bytes say what it is


@pytest.fixture
def evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run `lookalike eval TREE --protocol NAME` in this process and return the report."""

    def measured(name: str, *more: str, code: int = 0) -> Any:
        done = run(["eval", str(tmp_path), "--protocol", name, *more, "--threads", "1", "--format", "json"])
        captured = capsys.readouterr()
        assert done == code, captured.err
        return json.loads(captured.out) if code in (0, 3) else json.loads(captured.err)

    return measured


def test_cub_asks_among_the_last_hundred_birds(tmp_path, evaluate):
    layouts.make_cub(tmp_path)
    images = tmp_path / "CUB_200_2011/images"
    for name, colour in (("101.Tern/b", "red"), ("101.Tern/c", "red"), ("200.Wren/d", "blue")):
        draw(images / f"{name}.jpg", colour)
    report = evaluate("cub")  # the training picture of the pelican is not there, and nobody asks for it
    assert (report["num_queries"], report["num_evaluated"], report["excluded"]) == (3, 2, {"self_only": 1})
    assert report["metrics"]["recall@1"] == 1.0
    assert report["protocol"]["ks"] == [1, 2, 4, 8]
    assert report["protocol"]["split"] == "protocol cub"


def test_cars_asks_among_the_last_ninety_eight_models(tmp_path, evaluate):
    from scipy.io import savemat

    layouts.make_cars(tmp_path)
    rows = [(f"car_ims/{n}.jpg", 1, label, 0) for n, label in ((1, 98), (2, 99), (3, 99), (4, 196), (5, 196))]
    names = np.array([f"Model {number}" for number in range(1, 197)], dtype=object)
    fields = ["relative_im_path", "bbox_x1", "class", "test"]
    savemat(tmp_path / "cars_annos.mat", {"annotations": layouts.annotations(rows, fields), "class_names": names})
    for number, colour in ((2, "red"), (3, "red"), (4, "blue"), (5, "blue")):
        draw(tmp_path / f"car_ims/{number}.jpg", colour)
    report = evaluate("cars")
    assert (report["num_queries"], report["num_gallery"], report["num_evaluated"]) == (4, 4, 4)
    assert report["metrics"]["map@r"] == 1.0


def test_sop_asks_by_product_and_not_by_kind(tmp_path, evaluate):
    layouts.make_sop(tmp_path)
    folder = tmp_path / "Stanford_Online_Products"
    rows = [f"{n} {n // 2} 1 bicycle_final/{n // 2}_{n % 2}.JPG" for n in range(4)]
    layouts.write(folder / "Ebay_test.txt", "image_id class_id super_class_id path", *rows)
    for product, views in ((0, ("red", "red")), (1, ("blue", "red"))):
        for view, colour in enumerate(views):
            draw(folder / f"bicycle_final/{product}_{view}.JPG", colour)
    report = evaluate("sop")
    assert report["protocol"]["relevance"] == "same value in column 'identity'"
    assert report["protocol"]["ks"] == [1, 10, 100, 1000]
    assert (
        report["metrics"]["recall@1"] <= 0.5
    )  # the red view of product 1 is nearer to product 0, which is another one
    assert report["metrics"]["recall@10"] == 1.0


def test_inshop_asks_a_gallery_of_its_own(tmp_path, evaluate):
    layouts.make_inshop(tmp_path)
    folder = tmp_path / "Img/img"
    for name, colour in (
        ("WOMEN/Dresses/id_00000002/02_1_front", "red"),
        ("WOMEN/Dresses/id_00000002/02_2_side", "red"),
        ("MEN/Denim/id_00000003/01_1_front", "blue"),
    ):
        draw(folder / f"{name}.jpg", colour)
    report = evaluate("inshop")
    assert (report["num_queries"], report["num_gallery"]) == (1, 2)
    assert report["metrics"]["recall@1"] == 1.0
    assert report["protocol"]["self_rule"] == "queries are not in the gallery"


def make_market(root: Path, *, other_camera: bool = True) -> None:
    layouts.make_market(root)
    folder = root / "Market-1501-v15.09.15"
    draw(folder / "query/0002_c1s1_000451_00.jpg", "red")
    draw(folder / "bounding_box_test/0002_c1s1_000351_01.jpg", "red")  # own camera: removed
    draw(folder / "bounding_box_test/0000_c3s2_107328_04.jpg", "red")  # a distractor: stays, and is wrong
    draw(folder / "bounding_box_test/0002_c2s1_000801_01.jpg", "blue")
    draw(folder / "bounding_box_test/-1_c6s4_018577_02.jpg", "red")  # junk: in no gallery
    if not other_camera:
        (folder / "bounding_box_test/0002_c2s1_000801_01.jpg").unlink()


def test_market_removes_the_query_camera_and_junk_and_keeps_distractors(tmp_path, evaluate):
    make_market(tmp_path)
    report = evaluate("market1501")
    assert report["num_gallery"] == 3
    assert (report["metrics"]["recall@1"], report["metrics"]["recall@5"]) == (0.0, 1.0)
    assert report["metrics"]["map"] == 0.5  # behind the distractor
    assert "without the query's own camera" in report["protocol"]["relevance"]
    assert any(
        "camera rule removed 1 pairs of query and gallery item, at 1 of 1 queries; 0 queries have nothing right left"
        in w
        for w in report["warnings"]
    )


def test_where_the_camera_rule_leaves_nothing_right_the_report_says_how_much_it_took(tmp_path, evaluate):
    # elsewhere: "All query identities do not appear in gallery", after hours of training
    make_market(tmp_path, other_camera=False)
    report = evaluate("market1501")
    assert report["num_evaluated"] == 0
    assert report["metrics"]["recall@1"] is None
    assert report["excluded"] == {"camera_rule": 1}
    assert any("removed 1 pairs" in w and "1 queries have nothing right left" in w for w in report["warnings"])
    assert "taken by the query's own camera" in report["diagnosis"][0]
    assert "camera_rule 1 of 1" in report["diagnosis"][0]


def make_oxford(root: Path) -> None:
    """q1: easy a, hard c, junk d; q2: hard b and c. What q1 asks for lies in its box, and looks like c."""
    layouts.make_revisited("roxford5k")(root)
    jpg = root / "roxford5k/jpg"
    draw(jpg / "q1.jpg", "red", box=(1, 2, 30, 40), inside="green")
    draw(jpg / "q2.jpg", "blue", box=(0, 0, 5, 5), inside="blue")
    for name, colour in (("a", "blue"), ("b", "red"), ("c", "green"), ("d", "green")):
        draw(jpg / f"{name}.jpg", colour)


@pytest.mark.parametrize(("setup", "num_evaluated", "removed"), [("easy", 1, 4), ("medium", 2, 1), ("hard", 2, 2)])
def test_revisited_setups_move_answers_between_right_and_removed(tmp_path, evaluate, setup, num_evaluated, removed):
    # removed: easy takes q1's junk and hard (2) and q2's hard (2); medium the junk (1); hard q1's junk and easy (2)
    make_oxford(tmp_path)
    report = evaluate("roxford5k", "--setup", setup)
    assert report["num_evaluated"] == num_evaluated
    assert any(f"junk rule removed {removed} pairs" in warning for warning in report["warnings"])
    assert report["protocol"]["relevance"] == f"revisited, setup {setup}"
    assert set(report["metrics"]) >= {"map", "precision@1", "precision@5", "precision@10"}


def test_a_revisited_query_is_what_lies_in_its_box(tmp_path, evaluate):
    # The whole of q1 is mostly red, like b, which is wrong; its box is green, like c, which is right under `hard`.
    make_oxford(tmp_path)
    saved = tmp_path / "run"
    evaluate("roxford5k", "--setup", "hard", "--save", str(saved))
    first = dict(line.split(",")[:2] for line in (saved / "per_query.csv").read_text().splitlines()[1:])
    assert first["jpg/q1.jpg"] == "1"
    truth = json.loads((saved / "report.json").read_text())["protocol"]
    assert truth["split"] == "protocol roxford5k"


def test_another_setup_is_another_protocol(tmp_path, evaluate):
    make_oxford(tmp_path)
    digests = {evaluate("roxford5k", "--setup", setup)["protocol"]["digest"] for setup in ("easy", "medium", "hard")}
    assert len(digests) == 3


def test_paris_is_read_like_oxford(tmp_path, evaluate):
    layouts.make_revisited("rparis6k")(tmp_path)
    for name in ("q1", "q2", "a", "b", "c", "d"):
        draw(tmp_path / f"rparis6k/jpg/{name}.jpg", "red")
    assert evaluate("rparis6k")["num_evaluated"] == 2


def test_a_picture_of_a_benchmark_that_cannot_be_read_is_listed_and_shifts_nothing(tmp_path, evaluate):
    make_oxford(tmp_path)
    (tmp_path / "roxford5k/jpg/b.jpg").write_bytes(b"broken")
    report = evaluate("roxford5k", "--setup", "hard", code=3)
    assert [failure["reason"] for failure in report["failed"]] == ["unknown-format"]
    assert (report["num_gallery"], report["num_evaluated"]) == (3, 2)
    assert any("junk rule removed 2 pairs" in warning for warning in report["warnings"])


@pytest.mark.parametrize("more", [["--holdout", "0.5"], ["--split-column", "split"], ["--folds", "2"]])
def test_a_protocol_and_a_split_of_ones_own_do_not_go_together(tmp_path, evaluate, more):
    layouts.make_sop(tmp_path)
    error = evaluate("sop", *more, code=2)
    assert "--protocol" in error["error"]


def test_missing_files_and_names_are_one_clear_error(tmp_path, evaluate):
    assert "Expected:" in evaluate("sop", code=2)["hint"]
    assert "Did you mean 'market1501'" in str(evaluate("market", code=2))


def test_a_box_that_holds_no_pixel_or_is_no_box_is_named(tmp_path):
    draw(tmp_path / "q.jpg", "red")
    assert part_of(str(tmp_path / "q.jpg"), "1.0,2.5,30,40").shape == (
        38,
        29,
        3,
    )  # 2.5 to even: 2
    assert part_of(str(tmp_path / "q.jpg"), "-5,-5,500,500").shape == (64, 64, 3)
    with pytest.raises(InputError, match="holds no pixel of its 64 × 64"):
        part_of(str(tmp_path / "q.jpg"), "70,70,80,80")
    with pytest.raises(InputError, match=r"is not left,top,right,bottom"):
        part_of(str(tmp_path / "q.jpg"), "1,2,3")
