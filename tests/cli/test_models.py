"""lookalike models: the table, the files, the export and the check, as a user types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lookalike.cli.main import run

ROOT = Path(__file__).parents[1]


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty caches."""
    for variable in ("HF_HUB_CACHE", "TORCH_HOME", "LOOKALIKE_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    return tmp_path


def test_list_says_what_each_is_good_for_and_what_is_here(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "list", "--format", "json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert [name for name, row in rows.items() if row["on_disk"]] == ["builtin:effnet-lite0"]
    assert "same product or instance" in rows["timm:vit_small_patch14_dinov2.lvd142m"]["good_for"]
    assert "text queries" in rows["open_clip:ViT-B-32/openai"]["good_for"]
    for family in (
        "dinov2",
        "dinov3",
        "clip",
        "siglip-",
        "siglip2",
        "mobileclip",
        "resnet",
        "efficientnet",
        "convnext",
    ):
        assert any(family in name.lower() for name in rows), family
    place = caches / "HF_HUB_CACHE/models--facebook--dinov2-base"
    (place / "snapshots/1").mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs/main").write_text("1")
    (place / "snapshots/1/model.safetensors").write_bytes(b"")
    assert run(["models", "list", "--format", "json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["hf:facebook/dinov2-base"]["on_disk"]


def test_list_imports_no_model_library(caches: Path) -> None:
    before = {name for name in ("torch", "timm", "open_clip", "transformers", "onnx") if name in sys.modules}
    assert run(["models", "list"]) == 0
    assert {name for name in ("torch", "timm", "open_clip", "transformers", "onnx") if name in sys.modules} == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["path", "builtin:effnet-lite0"], "is not a model of a hub"),
        (["pull", "onnx:folder"], "is not a model of a hub"),
        (["pull", "tim:resnet50"], "Did you mean 'timm'"),
        (["check", "onnx:/nowhere"], "model.onnx is missing; looked in '/nowhere'"),
        (["export", "builtin:effnet-lite0", "folder", "--int8"], "--int8 needs --pictures"),
    ],
)
def test_a_wrong_name_is_one_sentence_and_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["models", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_check_passes_the_built_in_encoder_and_shows_its_card(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "check", "builtin:effnet-lite0", "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"]
    assert result["card"]["dim"] == 1280
    assert [row["what"] for row in result["checks"]] == ["vectors", "batches", "golden vectors"]


def test_a_changed_golden_vector_leaves_with_1(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    assert run(["models", "check", "builtin:effnet-lite0"]) == 0
    [record] = (caches / "LOOKALIKE_CACHE/golden").iterdir()
    np.save(record, -np.load(record))
    assert run(["models", "check", "builtin:effnet-lite0"]) == 1
    assert "failed" in capsys.readouterr().out


def test_check_reports_pictures_that_a_centre_crop_cuts(
    caches: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    (tmp_path / "pictures").mkdir()
    Image.new("RGB", (300, 60)).save(tmp_path / "pictures/belt.png")
    Image.new("RGB", (60, 60), "red").save(tmp_path / "pictures/cup.png")
    (tmp_path / "pictures/broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert run(["models", "check", "builtin:effnet-lite0", "--pictures", str(tmp_path / "pictures")]) == 0
    captured = capsys.readouterr()
    assert "1 of 2 pictures are longer than 2:1, the longest 5.0:1" in captured.out
    assert "broken.png" in captured.err


def test_export_then_check_then_use(caches: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for module in ("torch", "transformers", "onnx", "onnxscript"):
        pytest.importorskip(module, reason="exporting needs the extras hf and train")
    import importlib.util

    spec = importlib.util.spec_from_file_location("tiny", ROOT / "embed/models/tiny.py")
    assert spec is not None
    assert spec.loader is not None
    tiny = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiny)
    from PIL import Image

    model, pictures, target = tiny.save_clip(tmp_path / "clip"), tmp_path / "pictures", tmp_path / "onnx"
    pictures.mkdir()
    for place, picture in enumerate(tiny.random_pictures(*[(40 + 3 * place, 90 - place) for place in range(12)])):
        Image.fromarray(picture).save(pictures / f"{place}.png")
    capsys.readouterr()
    assert run(["models", "path", f"hf:{model}"]) == 0
    assert capsys.readouterr().out.strip() == str(model)
    arguments = ["models", "export", f"hf:{model}", str(target), "--int8", "--pictures", str(pictures)]
    assert run([*arguments, "--format", "json"]) == 0
    full, small = json.loads(capsys.readouterr().out)
    assert (full["encoder"], small["encoder"]) == (f"onnx:{target}", f"onnx:{target}-int8")
    assert small["bytes"] < full["bytes"]
    assert "nearest neighbours are the same" in small["against the original"]
    assert run(["models", "check", f"onnx:{target}"]) == 0
    assert f"from {target / 'golden.npy'}" in capsys.readouterr().out
    assert run(arguments) == 2
    assert "is not empty" in capsys.readouterr().err
