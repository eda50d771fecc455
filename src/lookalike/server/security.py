"""Who may ask: this machine's own pages, or whoever holds the token. One layer before every route."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookalike.server.problems import response
from lookalike.server.schemas.base import Problem
from lookalike.server.settings import Settings, is_loopback

COOKIE = "lookalike_token_"
"""Followed by the port: cookies are shared by all ports of a machine, and several servers may run on one."""
PARAMETER = "token"

# The app draws thumbnails and pictures it has been given (blob:), runs the map's shaders from its own scripts, styles
# components inline, and speaks to nobody but this server.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Checks Host, Origin and token before anything else looks at a request, and sets the headers of every answer.

    Host: a page elsewhere can point its own name at 127.0.0.1 (DNS rebinding) and would be of our origin; its requests
    carry its name. Origin and Sec-Fetch-Site: browsers send them, and a request that another site caused is refused
    whatever its method. No answer carries a CORS header, so that no other origin can read one.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._token = None if settings.token is None else settings.token.encode()
        self._cookie = f"{COOKIE}{settings.port}"
        self._names = {name.lower() for name in (*settings.hosts, settings.host)}
        self._any_address = not is_loopback(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse or pass on."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    sent[name] = value
                if "Cache-Control" not in sent:
                    sent["Cache-Control"] = "no-store"
            await send(message)

        problem = self._host(headers) or self._origin(headers)
        if problem is not None:
            await response(problem)(scope, receive, sealed)
            return
        if self._token is not None and not self._known(scope, headers):
            given = [value for name, value in _query(scope) if name == PARAMETER]
            if given and scope["method"] == "GET" and self._equal(given[-1:]):
                await self._welcome(scope, headers)(scope, receive, sealed)
                return
            problem = Problem(
                title="Unauthorized", status=401, detail="This server asks for a token.",
                hint="Open the address it printed, or send the header Authorization: Bearer TOKEN.",
            )  # fmt: skip
            await response(problem, {"WWW-Authenticate": "Bearer"})(scope, receive, sealed)
            return
        await self._app(scope, receive, sealed)

    def _host(self, headers: Headers) -> Problem | None:
        hosts = headers.getlist("host")
        name = _name(hosts[0]) if len(hosts) == 1 else None
        if name is not None and (name in self._names or is_loopback(name)):
            return None
        # Bound to every address it cannot know all of its names; there the token stands for them.
        if name is not None and self._any_address and self._token is not None:
            return None
        return Problem(
            title="Misdirected", status=421, detail=f"This server is not called {(hosts or [''])[0][:100]!r}.",
            hint="Open it as http://127.0.0.1:PORT, or name it with --allow-host.",
        )  # fmt: skip

    def _origin(self, headers: Headers) -> Problem | None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        own = headers.get("host", "").lower()
        foreign = origin is not None and urlsplit(origin.lower()).netloc != own
        # A link from elsewhere to the page itself is harmless and looks like this; nothing below /api is a page.
        if not foreign and site in (None, "same-origin", "none"):
            return None
        if not foreign and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document":
            return None
        return Problem(
            title="CrossOrigin", status=403, detail="A page of another origin caused this request.",
            hint="Only the app this server serves may ask it from a browser.",
        )  # fmt: skip

    def _known(self, scope: Scope, headers: Headers) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = [bearer.strip()] if scheme.lower() == "bearer" else []
        for cookie in headers.getlist("cookie"):
            given += [value for name, value in cookie_parser(cookie).items() if name == self._cookie]
        return self._equal(given)

    def _equal(self, given: Iterable[str]) -> bool:
        """Compare in constant time."""
        wanted = self._token or b""
        matches = [hmac.compare_digest(each.encode("utf-8", "surrogateescape"), wanted) for each in given]
        return any(matches)

    def _welcome(self, scope: Scope, headers: Headers) -> RedirectResponse:
        """Keep the token in a cookie that scripts and other sites cannot use, and take it out of the address."""
        rest = urlencode([(name, value) for name, value in _query(scope) if name != PARAMETER])
        path = "/" + scope["path"].lstrip("/\\")  # never another host's address
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(self._cookie, (self._token or b"").decode(), httponly=True, samesite="strict", path="/")
        return answer


def _name(host: str) -> str | None:
    """Return the name in a Host header without its port; None where it is none.

    >>> _name("127.0.0.1:8000"), _name("[::1]:8000"), _name("evil.example:1@127.0.0.1")
    ('127.0.0.1', '::1', None)
    """
    if not host or any(letter in host for letter in "@/\\ ?#"):
        return None
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
