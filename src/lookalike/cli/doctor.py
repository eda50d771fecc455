"""lookalike doctor: what is installed, what is missing, what that costs."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from typing import Any

import click

from lookalike import __version__, threads
from lookalike.cli import options, output

CORE = (
    "numpy", "scipy", "faiss-cpu", "onnxruntime", "pillow", "pillow-heif", "numba", "click", "rich", "pydantic",
    "fastapi", "uvicorn", "python-multipart", "leather", "threadpoolctl",
)  # fmt: skip

# extra -> (its packages, what needs it)
EXTRAS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "parquet": (("pyarrow",), "manifests and exports in Parquet"),
    "train": (("torch", "pytorch-metric-learning", "accelerate", "onnx", "onnxscript"), "lookalike train and export"),
    "timm": (("timm", "torch", "torchvision"), "encoders named timm:…"),
    "open-clip": (("open_clip_torch", "torch", "torchvision"), "encoders named open_clip:…, and searching with words"),
    "hf": (("transformers", "torch", "sentencepiece"), "encoders named hf:…, and searching with words"),
    "geometry": (("opencv-python-headless",), "geometric verification"),
    "maps": (("umap-learn",), "UMAP maps in the web app (PCA is always there)"),
    "cluster": (("dask", "distributed", "fsspec"), "embedding on several machines"),
    "pgvector": (("psycopg",), "searching in PostgreSQL"),
    "milvus": (("pymilvus",), "searching in Milvus"),
}


@click.command("doctor")
@options.output_format("table", "json")
@click.pass_context
def command(ctx: click.Context, output_format: str) -> None:
    """Say what is installed, what is missing and what that costs.

    Leaves with 0 where everything the core needs is there, with 4 where something is missing.
    """
    rows = [*_machine(), *_packages(), *_checks()]
    if output_format == "json":
        output.as_json({"version": __version__, "ok": all(row["state"] != "broken" for row in rows), "checks": rows})
    else:
        output.as_table(rows)
    if any(row["state"] == "broken" for row in rows):
        ctx.exit(4)


def _row(what: str, state: str, detail: str) -> dict[str, Any]:
    return {"what": what, "state": state, "detail": detail}


def _machine() -> list[dict[str, Any]]:
    return [
        _row("lookalike", "ok", __version__),
        _row("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        _row("processors", "ok", f"{threads.usable()} usable"),
    ]


def _packages() -> list[dict[str, Any]]:
    rows = []
    for name in CORE:
        version = _version(name)
        rows.append(_row(name, "ok" if version else "broken", version or f"missing: pip install {name}"))
    for extra, (packages, needed_for) in EXTRAS.items():
        missing = [name for name in packages if _version(name) is None]
        if missing:
            detail = f"needed for {needed_for}: pip install 'lookalike[{extra}]'"
        else:
            detail = ", ".join(f"{name} {_version(name)}" for name in packages)
        rows.append(_row(f"extra {extra}", "not installed" if missing else "ok", detail))
    return rows


def _checks() -> list[dict[str, Any]]:
    from lookalike.embed.builtin import BuiltinEncoder
    from lookalike.images.formats import readable_formats

    unreadable = [row.name for row in readable_formats() if not row.available]
    formats = f"not readable: {', '.join(unreadable)}" if unreadable else "all readable"
    try:
        difference = BuiltinEncoder().check()
        encoder = _row("builtin encoder", "ok", f"golden vectors reproduced, largest difference {difference:.1e}")
    except Exception as error:
        encoder = _row("builtin encoder", "broken", str(error))
    return [_row("picture formats", "ok" if not unreadable else "partly", formats), encoder]


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
