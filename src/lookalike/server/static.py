"""The built web app, served from inside the package; or a page that says that it is missing."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response

BUILT = Path(__file__).parent / "static"
MISSING_SENTENCE = (
    "The web app is not part of this installation; the HTTP API is complete. "
    "Build it with `npm ci && npm run build` in web/, or install a wheel, which contains it."
)
_MISSING = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>lookalike</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}}</style>
<h1>lookalike is running</h1><p>{MISSING_SENTENCE}</p>
<p><a href="/api/v1/openapi.json">The API</a> · <a href="/api/v1/catalogue">the catalogue</a></p></html>"""
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html",
          ".webmanifest": "application/manifest+json", ".json": "application/json", ".woff2": "font/woff2",
          ".png": "image/png", ".ico": "image/x-icon", ".map": "application/json", ".txt": "text/plain"}  # fmt: skip
_FOR_EVER = "public, max-age=31536000, immutable"


def present(folder: Path = BUILT) -> bool:
    """Tell whether the app was built."""
    return (folder / "index.html").is_file()


def install(app: FastAPI, folder: Path = BUILT) -> None:
    """Serve the app's files; every other address that asks for a page gets the app, whose state is in its address."""
    files = (
        {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        if folder.is_dir()
        else {}
    )

    @app.get("/{path:path}", include_in_schema=False)
    async def page(request: Request, path: str) -> Response:
        if path.startswith("api/"):
            raise HTTPException(404)
        found = files.get(path or "index.html")  # a table of names: no address becomes a path
        if found is not None and path not in ("", "index.html"):
            kept = _FOR_EVER if path.startswith("assets/") else "no-cache"
            return FileResponse(found, media_type=_TYPES.get(found.suffix), headers={"Cache-Control": kept})
        if found is None and "." in path.rpartition("/")[2]:
            raise HTTPException(404)
        index = files.get("index.html")
        if index is None:
            return HTMLResponse(_MISSING, status_code=200 if path == "" else 404)
        return FileResponse(index, media_type="text/html", headers={"Cache-Control": "no-cache"})
