"""What a web page elsewhere, or a stranger, could make the server do: nothing."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import InputError
from lookalike.server.security import _name
from lookalike.server.settings import Settings, is_loopback

TOKEN = "a-token-of-32-letters-and-digits"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost@evil.example", ""]
)
def test_a_name_that_was_pointed_at_this_machine_is_refused(client, host):
    answer = client.get("health", host=host or " ")
    assert answer.status in (400, 421)
    if answer.status == 421:
        assert answer.json["hint"]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_the_names_of_this_machine_are_answered(client, name):
    assert client.get("health", host=f"{name}:{client.port}").status == 200


def test_two_host_headers_are_refused(client):
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as wire:
        wire.sendall(
            b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        )
        assert wire.recv(64).split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1", "http://localhost"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_a_request_from_another_origin_is_refused_whatever_its_method(client, origin, method):
    answer = client.ask(method, "/api/v1/items", headers={"Origin": origin})
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_the_app_itself_may_ask(client):
    own = f"http://127.0.0.1:{client.port}"
    headers = {"Origin": own, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert client.get("health", headers=headers).status == 200


def test_a_picture_drawn_by_another_page_is_refused_and_a_link_to_the_app_is_not(client):
    drawn = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert client.get("items/1/thumb", headers=drawn).status == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status == 200


def test_every_answer_forbids_foreign_scripts_frames_and_sniffing(client):
    for path in ("/", "/api/v1/health", "/api/v1/nothing", "/api/v1/items/1/thumb", "/api/v1/items/999999"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "http:" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_other_machines_are_let_in_with_a_token_alone(shop):
    with pytest.raises(InputError, match="there is no token"):
        Settings(catalogue=shop, host="0.0.0.0")
    with pytest.raises(InputError, match="can be guessed"):
        Settings(catalogue=shop, host="0.0.0.0", token="short")
    assert Settings(catalogue=shop, host="0.0.0.0", token=TOKEN).token == TOKEN


def test_with_a_token_nothing_answers_without_it_and_the_address_gives_a_cookie_once(shop, serve):
    client = serve(Settings(catalogue=shop, host="0.0.0.0", port=0, token=TOKEN, threads=1))
    for path in ("/", "/api/v1/health", "/api/v1/items/1/image", f"/?token={TOKEN[:-1]}", "/?token="):
        assert client.get(path).status == 401
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("health", headers=bearer, host="shop.example").status == 200
    assert client.get("health", headers={"Authorization": f"Bearer {TOKEN}x"}).status == 401
    welcome = client.get(f"/?token={TOKEN}&q=red")
    assert (welcome.status, welcome.headers["location"]) == (303, "/?q=red")
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get("health", headers={"Cookie": cookie.partition(";")[0]}).status == 200
    assert client.post("search", {"terms": [{"item": 1}]}).status == 401
    assert client.get(f"//evil.example/?token={TOKEN}").headers["location"].startswith("/evil.example")


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/%2e%2e/run.py", "/..%2fsettings.py", "/assets/../../app.py", "//etc/passwd"]
)
def test_no_address_becomes_a_path(client, path):
    answer = client.get(path)
    # An address without an extension is a state of the app and gets its page.
    assert answer.status in (400, 404) or answer.content == client.get("/").content
    assert b"import lookalike" not in answer.content
    assert b"root:" not in answer.content


def test_a_request_that_is_too_large_is_refused_by_its_header_and_by_its_bytes(shop, serve):
    client = serve(Settings(catalogue=shop, port=0, threads=1, max_body=2_000, max_upload=20_000))
    assert client.post("search", {"terms": [{"text": "x" * 3_000}]}).status == 413
    assert client.upload("search", [b"\0" * 30_000]).status == 413
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as wire:
        head = f"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Type: application/json\r\n"
        wire.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b" " * 0x1000 + b"\r\n")
        assert wire.recv(64).split()[1] == b"413"


def test_a_request_that_does_not_arrive_is_dropped(shop, serve):
    client = serve(Settings(catalogue=shop, port=0, threads=1, body_seconds=0.3))
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as wire:
        head = f"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Type: application/json\r\n"
        wire.sendall(head.encode() + b"Content-Length: 100\r\n\r\n{")
        assert wire.recv(64).split()[1] == b"408"


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(shop, serve, bomb):
    client = serve(Settings(catalogue=shop, port=0, threads=1, max_pixels=10_000))
    answer = client.upload("search", [bomb])
    assert (answer.status, answer.json["title"]) == (422, "ImageError")
    assert "too-large" in answer.json["detail"]


@pytest.fixture
def bomb(tmp_path: Path) -> bytes:
    from PIL import Image

    path = tmp_path / "large.png"
    Image.new("1", (200, 200)).save(path)
    return path.read_bytes()


@given(st.text(max_size=30))
def test_a_host_header_is_parsed_or_refused_and_never_raises(text):
    name = _name(text)
    assert name is None or isinstance(is_loopback(name), bool)
