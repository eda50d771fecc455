"""lookalike serve: the web app and the HTTP API over one catalogue."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output
from lookalike.cli.settings import catalogue_argument

if TYPE_CHECKING:
    from lookalike.server.settings import Settings


@click.command("serve")
@click.argument("catalogue", type=click.Path(path_type=Path), is_eager=True, callback=catalogue_argument)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address needs a token.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--token", envvar="LOOKALIKE_TOKEN", show_envvar=True, metavar="TOKEN",
              help="Asked of everybody, at least 16 characters where others can reach the server.")  # fmt: skip
@click.option("--allow-host", multiple=True, metavar="NAME", help="Another name this server is called by.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the app.")
@click.option("--encoder", help="Which of the catalogue's encoders answers. [default: its first]")
@click.option("--runs", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Where runs are kept. [default: runs/ in the catalogue]")  # fmt: skip
@options.running
def command(**settings: Any) -> None:
    """Serve CATALOGUE: the web app with search and the five labs, and the HTTP API below /api/v1.

    Prints its address on standard output once it answers. Ctrl-C or SIGTERM stop it: requests under way end, jobs are
    asked to end, what they have committed stays, and it leaves with 0.

    Listens on this machine alone unless told otherwise. With --host it needs a token (--token or LOOKALIKE_TOKEN); the
    address it prints then carries it, and the browser keeps it as a cookie.
    """
    from lookalike.server.run import Server
    from lookalike.server.static import MISSING_SENTENCE

    server = Server(_server_settings(settings))
    quiet = settings["quiet"]

    def ready() -> None:
        output.data(server.entrance)
        if not quiet:
            output.note(f"serving {settings['catalogue']}; Ctrl-C stops it")
            if not server.app_is_built:
                output.note(f"note: {MISSING_SENTENCE}")
        if settings["browser"] and server.app_is_built:
            threading.Thread(target=click.launch, args=(server.entrance,), daemon=True).start()  # may take its time

    server.serve(ready)
    if not quiet:
        output.note("stopped")


def _server_settings(settings: dict[str, Any]) -> Settings:
    from lookalike.server.settings import Settings

    return Settings(
        catalogue=settings["catalogue"], host=settings["host"], port=settings["port"], token=settings["token"] or None,
        hosts=settings["allow_host"], encoder=settings["encoder"], runs=settings["runs"], threads=settings["threads"],
    )  # fmt: skip
