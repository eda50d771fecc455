"""A small catalogue behind a real server on loopback, and a client that is nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lookalike.catalogue.catalogue import Catalogue
from lookalike.server.run import Server
from lookalike.server.settings import Settings

CLASSES = ("blue", "green", "red")
EACH = 6


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """Parsed as strictly as JSON is defined: NaN and Infinity are refused."""
        return json.loads(self.content, parse_constant=_no_constant)


class Client:
    """One request a connection, so that nothing a test does is left over for the next."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        host: str | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Host": host or f"127.0.0.1:{self.port}", **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body, sent = json.dumps(body).encode(), {"Content-Type": "application/json", **sent}
        try:
            connection.request(method, path if path.startswith("/") else f"/api/v1/{path}", body=body, headers=sent)
            got = connection.getresponse()
            return Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())
        finally:
            connection.close()

    def get(self, path: str, **options: Any) -> Answer:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> Answer:
        return self.ask("POST", path, body=body, **options)

    def upload(self, path: str, pictures: list[bytes], request: str = "{}") -> Answer:
        mark = uuid.uuid4().hex
        parts = [f'--{mark}\r\nContent-Disposition: form-data; name="request"\r\n\r\n{request}\r\n'.encode()]
        for picture in pictures:
            head = 'Content-Disposition: form-data; name="pictures"; filename="p"\r\nContent-Type: image/png'
            parts.append(f"--{mark}\r\n{head}\r\n\r\n".encode() + picture + b"\r\n")
        body = b"".join([*parts, f"--{mark}--\r\n".encode()])
        return self.ask("POST", path, body=body, headers={"Content-Type": f"multipart/form-data; boundary={mark}"})

    def finished(self, path: str, body: Any) -> Any:
        """Start a job and return it once it is over."""
        started = self.post(path, body)
        assert started.status == 202, started.content
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            job = self.get(started.json["url"]).json
            if job["state"] in ("done", "failed", "cancelled"):
                return job
            time.sleep(0.05)
        raise AssertionError(f"{path} took longer than two minutes")


def write_picture(path: Path, hue: int, seed: int) -> None:
    """Write a noisy picture of one colour: near the others of its colour, equal to none."""
    rng = np.random.default_rng(seed)
    base = np.zeros((48, 64, 3)) + np.array([[40, 60, 200], [40, 180, 60], [200, 40, 40]][hue])
    base[6 * hue : 6 * hue + 24, 8:40] = 255 - 20 * (seed % 5)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.clip(base + rng.normal(0, 14, base.shape), 0, 255).astype(np.uint8)).save(path)


def make_photos(folder: Path) -> Path:
    """Draw three classes of six pictures."""
    photos = folder / "photos"
    for hue, name in enumerate(CLASSES):
        for number in range(EACH):
            write_picture(photos / name / f"{number}.png", hue, seed=10 * hue + number)
    return photos


def make_catalogue(folder: Path) -> Path:
    """Make a catalogue of three classes of six pictures, one unreadable file, and some columns."""
    photos = make_photos(folder)
    (photos / "broken.png").write_bytes(b"not a picture")
    with Catalogue.create(folder / "shop.la", root=photos, threads=1) as catalogue:
        catalogue.sync()
        ids = catalogue.ids()
        paths = catalogue.paths(ids)
        catalogue.set_columns(
            {
                "label": [path.split("/")[0] for path in paths],
                "identity": [f"{path.split('/')[0]}-{int(path[-5]) // 2}" for path in paths],
                "price": [float(number) + 0.5 for number in range(len(paths))],
            },
            ids=ids.tolist(),
        )
    return folder / "shop.la"


@contextmanager
def running(settings: Settings) -> Iterator[Client]:
    """Serve in a thread until the block ends."""
    server, up = Server(settings), threading.Event()
    thread = threading.Thread(target=server.serve, args=(up.set,))
    thread.start()
    try:
        assert up.wait(30), "the server did not come up"
        yield Client(server.settings.port)
    finally:
        server.stop()
        thread.join(40)
        assert not thread.is_alive(), "the server did not stop"


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")
