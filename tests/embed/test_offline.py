"""No encoder opens a socket, and a missing model is named at once, with the place it should be."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FORBID = """
import socket, sys
def refuse(*args, **kwargs):
    print('OPENED A SOCKET', file=sys.stderr)
    raise OSError('sockets are forbidden')
class Forbidden(socket.socket):
    def __init__(self, *args, **kwargs): refuse()
socket.socket = Forbidden
socket.create_connection = socket.getaddrinfo = socket.gethostbyname = refuse
"""


def _environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub"), "TORCH_HOME": str(tmp_path / "torch")}


@pytest.mark.parametrize(
    ("name", "module", "missing", "place"),
    [
        (
            "timm:vit_small_patch14_dinov2.lvd142m",
            "timm",
            "model.safetensors",
            "models--timm--vit_small_patch14_dinov2",
        ),
        ("timm:resnet50", "timm", "model.safetensors", "models--timm--resnet50"),
        ("hf:facebook/dinov2-base", "transformers", "config.json", "models--facebook--dinov2-base"),
        (
            "open_clip:hf-hub:timm/ViT-B-16-SigLIP",
            "open_clip",
            "open_clip_config.json",
            "models--timm--ViT-B-16-SigLIP",
        ),
        (
            "open_clip:ViT-B-32/openai",
            "open_clip",
            "open_clip_model.safetensors",
            "models--timm--vit_base_patch32_clip",
        ),
    ],
)
def test_a_missing_model_is_named_without_a_socket(
    name: str, module: str, missing: str, place: str, tmp_path: Path
) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    code = (
        f"{FORBID}\nimport atexit\n"
        "heavy = ('torch', 'timm', 'open_clip', 'transformers')\n"
        "atexit.register(lambda: print('IMPORTED', *(n for n in heavy if n in sys.modules), file=sys.stderr))\n"
        f"from lookalike.cli.main import main\nmain(['models', 'path', {name!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{missing}" in done.stderr
    assert "is missing; looked in" in done.stderr
    assert place in done.stderr
    assert f"lookalike models pull {name}" in done.stderr
    assert "SOCKET" not in done.stderr
    assert done.stderr.endswith("IMPORTED\n"), "importing a model library takes longer than the answer may"


def test_an_encoder_on_disk_opens_without_a_socket(tmp_path: Path) -> None:
    for module in ("torch", "transformers", "timm", "open_clip"):
        pytest.importorskip(module, reason="the libraries' own loading code is what could open a socket")
    code = f"""{FORBID}
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from models import tiny
from lookalike.embed.registry import encoder
root = Path({str(tmp_path)!r})
names = [
    f"hf:{{tiny.save_clip(root / 'clip')}}",
    f"timm:local-dir:{{tiny.save_timm(root / 'timm', 'resnet10t')}}",
    f"open_clip:local-dir:{{tiny.save_open_clip(root / 'open_clip')}}",
]
for name in names:
    found = encoder(name)
    assert found.encode_images(tiny.random_pictures((50, 80))).shape == (1, found.card.dim)
    if found.card.supports_text:
        assert found.encode_texts(['a red shoe']).shape == (1, found.card.dim)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "SOCKET" not in done.stderr


def test_the_built_in_encoder_opens_without_a_socket() -> None:
    code = f"""{FORBID}
import numpy as np
from lookalike.embed.registry import encoder
assert encoder('builtin:effnet-lite0').encode_images([np.zeros((9, 9, 3), np.uint8)]).shape == (1, 1280)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_pull_offline_opens_no_socket(by: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    flag = ", '--offline'" if by == "flag" else ""
    code = f"{FORBID}\nfrom lookalike.cli.main import main\nmain(['models', 'pull', 'hf:facebook/dinov2-base'{flag}])\n"
    environment = _environment(tmp_path) | ({"HF_HUB_OFFLINE": "1"} if by == "variable" else {"HF_HUB_OFFLINE": "0"})
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Fetching is not allowed offline" in done.stderr
    assert "SOCKET" not in done.stderr


@pytest.mark.parametrize(("source", "extra"), [("timm", "timm"), ("open_clip", "open-clip"), ("hf", "hf")])
def test_a_missing_library_names_its_extra(source: str, extra: str) -> None:
    hidden = ("torch", "timm", "open_clip", "transformers")
    code = (
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *rest: None if name in {hidden!r} else found(name, *rest)\n"
        f"from lookalike.cli.main import main\nmain(['models', 'check', '{source}:any/model'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert f"pip install 'lookalike[{extra}]'" in done.stderr
