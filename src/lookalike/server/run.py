"""Listening: one process, one socket, an address on standard output, and a clean end."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import uvicorn

from lookalike.errors import InputError
from lookalike.server import static
from lookalike.server.app import Application, application
from lookalike.server.pictures import prune
from lookalike.server.security import PARAMETER
from lookalike.server.settings import Settings
from lookalike.server.shop import existing
from lookalike.server.warming import warm

_GRACE_S = 20
"""Requests under way may take this long to end once the server was asked to stop."""
_BACKLOG = 512


class Server:
    """A server that has its socket, so that its address is known before it answers."""

    def __init__(self, settings: Settings) -> None:
        """Open the catalogue and the socket.

        Raises:
            NotFoundError: no catalogue there.
            InputError: the address cannot be listened on.
        """
        existing(settings.catalogue)
        self._socket = _listening(settings.host, settings.port)
        self.settings = replace(settings, port=int(self._socket.getsockname()[1]))
        try:
            self.application: Application = application(self.settings)
        except BaseException:
            self._socket.close()
            raise
        self._stop: Callable[[], None] | None = None

    @property
    def address(self) -> str:
        """Where it is to be opened, without the token."""
        host = self.settings.host
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.settings.port}/"

    @property
    def entrance(self) -> str:
        """The address with the token, which the browser keeps as a cookie and takes out of sight."""
        token = self.settings.token
        return self.address + (f"?{PARAMETER}={quote(token, safe='')}" if token else "")

    @property
    def app_is_built(self) -> bool:
        """Whether there is a page to open."""
        return static.present()

    def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        """Answer until SIGINT or SIGTERM (in the main thread), or until `stop`.

        Then nothing new is accepted, requests under way end, jobs are asked to end (what they have committed stays),
        and the catalogue is closed.
        """
        app = self.application
        config = uvicorn.Config(
            app.guarded, log_config=None, log_level="warning", access_log=False, lifespan="on", server_header=False,
            date_header=False, proxy_headers=False, ws="none", timeout_keep_alive=15,
            timeout_graceful_shutdown=_GRACE_S, limit_concurrency=1_000, h11_max_incomplete_event_size=64 << 10,
            backlog=_BACKLOG,
        )  # fmt: skip
        shop = app.routes.state.shop
        warming = threading.Thread(target=warm, args=(shop,), name="lookalike-warm", daemon=True)

        def answering() -> None:
            ready()
            warming.start()

        server = _Uvicorn(config, answering, app.routes.state.jobs.stop)
        self._stop = server.ask
        threading.Thread(target=prune, args=(shop,), name="lookalike-prune", daemon=True).start()
        server.run(sockets=[self._socket])
        if warming.ident is not None:
            warming.join(_GRACE_S)  # a library that is loading does not take well to the end of the process

    def stop(self) -> None:
        """End as a signal does, from any thread."""
        if self._stop is not None:
            self._stop()


class _Uvicorn(uvicorn.Server):
    """uvicorn, which tells when it answers, lets go of long streams when it stops, and leaves without a signal."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready, self._stopping = ready, stopping

    def ask(self) -> None:
        """Ask it to stop."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, and say so."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ask jobs to end first: a page that watches one would hold its connection open."""
        self._stopping()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM as the wish to stop; uvicorn would raise them again once it has stopped."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[Any, Any] = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InputError(
            f"{host}:{port} cannot be listened on: {error.strerror or error}.", hint="Use --port 0 for any free port."
        ) from error
