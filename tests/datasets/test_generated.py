from __future__ import annotations

import csv
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.datasets.folder import read_folder
from lookalike.datasets.generated import CATEGORIES, generate
from lookalike.datasets.generated.mesh import ball, box, revolve, sheet, tube
from lookalike.datasets.generated.render import Camera, Light, draw, rounded
from lookalike.datasets.generated.surface import MARKS, PATTERNS, Surface, paint
from lookalike.datasets.table import read_table
from lookalike.errors import InputError, LookalikeError

RED = Surface(colours=((255, 0, 0),))


def bytes_of(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.blake2b(path.read_bytes()).hexdigest() for path in paths}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated") / "small"
    generate(folder, seed=3, instances=2, views=2, size=64, workers=1)
    return folder


def test_the_manifest_says_what_and_which_and_who_asks(small: Path) -> None:
    pictures = read_table(small / "manifest.csv")
    assert len(pictures) == 12 * 2 * 2
    assert pictures.values("label") == dict.fromkeys(sorted(CATEGORIES), 4)
    assert set(pictures.values("identity").values()) == {2}
    assert pictures.values("split") == {"gallery": 24, "query": 24}
    assert pictures.values("camera") == {"camera-1": 24, "camera-2": 24}
    assert set(pictures.values("model").values()) == {4}
    for path in pictures.paths:
        with Image.open(path) as image:
            assert (image.size, image.mode, image.format) == ((64, 64), "RGB", "JPEG")


def test_the_folders_alone_give_the_same_labels(small: Path) -> None:
    by_table = read_table(small / "manifest.csv")
    by_folder = read_folder(small)
    assert dict(zip(by_table.names, by_table.column("label"), strict=True)) == dict(
        zip(by_folder.names, by_folder.column("label"), strict=True)
    )


def test_the_same_seed_gives_the_same_bytes_however_many_processes_draw(small: Path, tmp_path: Path) -> None:
    generate(tmp_path / "again", seed=3, instances=2, views=2, size=64, workers=3)
    assert bytes_of(tmp_path / "again") == bytes_of(small)


def test_another_seed_draws_other_pictures_and_no_two_are_the_same(small: Path, tmp_path: Path) -> None:
    generate(tmp_path / "other", seed=4, instances=1, views=2, size=64, workers=1)
    ours = [digest for name, digest in bytes_of(small).items() if name.endswith(".jpg")]
    theirs = [digest for name, digest in bytes_of(tmp_path / "other").items() if name.endswith(".jpg")]
    assert len({*ours, *theirs}) == len(ours) + len(theirs)


def test_a_smaller_catalogue_replaces_a_larger_one_and_leaves_other_files_alone(tmp_path: Path) -> None:
    generate(tmp_path, instances=2, views=3, size=32, workers=1)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/report.txt").write_text("kept")
    manifest = generate(tmp_path, instances=1, views=2, size=32, workers=1)
    with manifest.open(newline="") as file:
        listed = {row["path"] for row in csv.DictReader(file)}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jpg")} == listed
    assert (tmp_path / "runs/report.txt").read_text() == "kept"


def test_a_killed_run_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "manifest.csv.part").touch()
    assert generate(tmp_path, instances=1, views=2, size=32, workers=1).name == "manifest.csv"
    assert not (tmp_path / "manifest.csv.part").exists()


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="holds no generated catalogue"):
        generate(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("setting", [{"seed": -1}, {"instances": 0}, {"views": 1}, {"size": 8}, {"workers": 0}])
def test_a_number_out_of_range_is_named(tmp_path: Path, setting: dict[str, int]) -> None:
    with pytest.raises(InputError, match=rf"{next(iter(setting)) if 'workers' not in setting else 'threads'}=-?\d"):
        generate(tmp_path / "new", **setting)


def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    from lookalike.datasets.generated.workers import divide

    with pytest.raises(LookalikeError, match=r"failed: .*number of things"):
        divide({"number of things": 1}, tmp_path, pictures=1000, workers=2)


def test_every_quad_of_a_closed_shape_faces_outwards() -> None:
    for part in (
        ball(1.0, RED),
        tube([(0, 0, 0), (0, 1, 0), (0.5, 2, 0)], 0.1, RED),
        revolve([(0, 0), (1, 0), (1, 1), (0, 1)], RED, smooth=0),
    ):
        edges = part.points[:, 2] - part.points[:, 0], part.points[:, 3] - part.points[:, 1]
        volume = np.einsum(
            "fi,fi->", part.points.mean(1), part.normals.mean(1) * np.linalg.norm(np.cross(*edges), axis=1)[:, None]
        )
        assert volume > 0


def test_a_box_has_the_size_asked_for_and_stands_on_the_ground() -> None:
    points = np.concatenate([side.points.reshape(-1, 3) for side in box(2, 3, 1, RED)])
    assert np.allclose(points.min(0), [-1, 0, -0.5])
    assert np.allclose(points.max(0), [1, 3, 0.5])


def test_a_picture_shows_the_nearer_part_where_it_should() -> None:
    corners = np.array([[[-1.0, 1, 0], [1, 1, 0]], [[-1, -1, 0], [1, -1, 0]]])
    blue = Surface(colours=((0, 0, 255),), shine=0)
    parts = [sheet(corners * 0.5, blue).move(z=1), sheet(corners, Surface(colours=((255, 0, 0),), shine=0))]
    camera = Camera(azimuth=0, elevation=0, distance=5, target=(0, 0, 0), zoom=1.25)
    light = Light(direction=(0, 0, 1), key=(0, 0, 0), sky=(1, 1, 1), bounce=(1, 1, 1))
    colour, covered = draw(parts, camera, light, 40)
    picture = rounded(colour)
    assert covered[20, 20] == 1 and covered[0, 0] == 0
    assert picture[20, 20].argmax() == 2  # the small blue sheet is in front, a quarter of a unit nearer its edge
    assert picture[20, 12].argmax() == 0  # beside it, the red one
    assert abs(int((covered > 0.5).sum()) - 400) < 50  # 2 units × 1.25 × 40 px / 5 = 20 px a side


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_mixes_two_colours(pattern: str) -> None:
    u, v = (each.ravel() for each in np.meshgrid(np.linspace(0, 0.999, 97), np.linspace(0, 0.999, 97)))
    black_and_white = Surface(colours=((0, 0, 0), (255, 255, 255)), pattern=pattern, repeats=(7, 5))
    shades = paint(black_and_white, u, v)
    assert shades.min() >= 0 and shades.max() <= 1
    assert pattern == "plain" or shades.max() - shades.min() > 0.4


@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark != "none"])
def test_a_mark_covers_some_of_its_box_and_nothing_far_from_it(mark: str) -> None:
    x, y = (each.ravel() for each in np.meshgrid(np.linspace(-3, 3, 121), np.linspace(-3, 3, 121)))
    inside = MARKS[mark](x, y)
    assert 0.1 < inside[np.maximum(np.abs(x), np.abs(y)) <= 1].mean() <= 1
    assert not inside[np.maximum(np.abs(x), np.abs(y)) > 1.6].any()


@pytest.mark.slow
def test_the_encoder_finds_the_kind_easily_and_the_object_hardly(tmp_path: Path) -> None:
    from lookalike.embed.pipeline import embed_files

    pictures = read_table(generate(tmp_path / "shop", instances=4, views=4, size=192))
    vectors = np.concatenate([chunk.vectors for chunk in embed_files(pictures.paths, "builtin:effnet-lite0")])
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    nearest = scores.argmax(1)
    share = {
        name: np.mean([pictures.column(name)[row] == pictures.column(name)[best] for row, best in enumerate(nearest)])
        for name in ("label", "identity")
    }
    assert share["label"] > 0.9
    assert 0.3 < share["identity"] < 0.8
    assert Counter(pictures.column("label"))["mug"] == 16
