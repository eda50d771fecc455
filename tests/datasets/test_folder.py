from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from lookalike.datasets.folder import read_folder
from lookalike.errors import InputError, NotFoundError


def put(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(root / name, "jpeg")
    return root


def test_the_first_folder_is_the_label_at_any_depth(tmp_path: Path) -> None:
    pictures = read_folder(put(tmp_path, "mug/red/1.jpg", "mug/2.jpg", "lamp/a/b/3.jpg", "4.jpg"))
    assert dict(zip(pictures.names, pictures.column("label"), strict=True)) == {
        "4.jpg": None,
        "lamp/a/b/3.jpg": "lamp",
        "mug/2.jpg": "mug",
        "mug/red/1.jpg": "mug",
    }
    assert pictures.missing("label") == 1
    assert pictures.paths[0] == str(tmp_path / "4.jpg")


def test_a_relative_root_gives_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "in", "a/1.jpg", "b/2.jpg")
    monkeypatch.chdir(tmp_path)
    assert read_folder("in").paths[1] == str(tmp_path / "in/b/2.jpg")


def test_what_is_passed_over_is_counted(tmp_path: Path) -> None:
    put(tmp_path, "a/1.jpg", "b/2.jpg")
    (tmp_path / "a/notes.txt").write_text("x")
    assert read_folder(tmp_path).skipped == {".txt": 1}


def test_any_folder_name_is_a_label(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    pictures = read_folder(put(tmp_path, "-rf/1.jpg", "кружка\n2/2.jpg", f"{odd}/3.jpg", "0.jpg/4.jpg"))
    assert set(pictures.column("label")) == {"-rf", "кружка\n2", odd, "0.jpg"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "There are no pictures"),
        (["1.jpg", "2.jpg"], "lie in no class folders"),
        (["mug/1.jpg", "mug/2.jpg", "3.jpg"], "single class folder 'mug'"),
    ],
)
def test_a_folder_that_measures_nothing_is_refused(tmp_path: Path, names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_folder(put(tmp_path, *names))


def test_no_folder_is_not_found_and_a_file_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="There is no folder"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a folder"):
        read_folder(put(tmp_path, "1.jpg") / "1.jpg")


def test_real_class_folders(shared: Path) -> None:
    pictures = read_folder(shared / "data/dreambooth30/images")
    assert len(pictures) == 158
    assert len(pictures.values("label")) == 30
