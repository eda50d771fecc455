"""`models pull` against a hub on this machine that speaks the hub's own protocol; the client is the real one."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

for module in ("torch", "transformers", "huggingface_hub"):
    pytest.importorskip(module, reason="fetching needs the extra hf")

from . import tiny  # noqa: E402

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """One repository, org/dino, read from `folder`."""

    folder: Path
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/":
            return self._send(200, b"", body=body)
        if path.startswith("/api/models/org/dino"):
            files = sorted(file.name for file in self.folder.iterdir())
            if "/tree/" in path:
                listed = [{"type": "file", "path": name, "size": (self.folder / name).stat().st_size, "oid": "0" * 40}
                          for name in files]  # fmt: skip
                return self._send(200, json.dumps(listed).encode(), body=body)
            info = {"id": "org/dino", "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
            return self._send(200, json.dumps(info).encode(), body=body)
        name = path.rpartition("/")[2]
        if path.startswith("/org/dino/resolve/") and (self.folder / name).is_file():
            return self._send(200, (self.folder / name).read_bytes(), body=body)
        headers = {"X-Error-Code": "RepoNotFound"} if "org/dino" not in path else {"X-Error-Code": "EntryNotFound"}
        return self._send(404, b"{}", body=body, **headers)

    def _send(self, code: int, content: bytes, *, body: bool, **headers: str) -> None:
        self.send_response(code)
        for key, value in {
            "Content-Length": str(len(content)), "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Repo-Commit": COMMIT, "Content-Type": "application/json", **headers,
        }.items():  # fmt: skip
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """The address of the hub."""
    folder = tiny.save_dinov2(tmp_path / "source")
    (folder / "flax_model.msgpack").write_bytes(b"not wanted")
    handler = type("OneHub", (Hub,), {"folder": folder})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def _lookalike(*arguments: str, endpoint: str, cache: Path) -> subprocess.CompletedProcess[str]:
    import os

    environment = {
        **os.environ, "HF_ENDPOINT": endpoint, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1", "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "lookalike", *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_pull_fetches_what_the_encoder_needs_and_only_once(hub: str, tmp_path: Path) -> None:
    first = _lookalike("models", "pull", "hf:org/dino", endpoint=hub, cache=tmp_path / "hub")
    assert first.returncode == 0, first.stderr
    folder = Path(first.stdout.strip())
    assert folder == tmp_path / f"hub/models--org--dino/snapshots/{COMMIT}"
    assert {file.name for file in folder.iterdir()} == {"config.json", "preprocessor_config.json", "model.safetensors"}
    assert _lookalike("models", "path", "hf:org/dino", endpoint=hub, cache=tmp_path / "hub").stdout == first.stdout
    nowhere = "http://127.0.0.1:9"
    assert _lookalike("models", "pull", "hf:org/dino", endpoint=nowhere, cache=tmp_path / "hub").stdout == first.stdout
    checked = _lookalike("models", "check", "hf:org/dino", endpoint=nowhere, cache=tmp_path / "hub")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_an_unknown_model_is_said_in_one_sentence(hub: str, tmp_path: Path) -> None:
    done = _lookalike("models", "pull", "hf:org/cat", endpoint=hub, cache=tmp_path / "hub")
    assert done.returncode == 2
    assert "The hub has no org/cat at 'main'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_out_of_reach_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = _lookalike("models", "pull", "hf:org/dino", endpoint=endpoint, cache=tmp_path / "hub")
    assert done.returncode == 2
    assert f"{endpoint} cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr
