"""The OpenAPI document on standard output: `python -m lookalike.server.openapi > web/openapi.json`."""

from __future__ import annotations

import json
import sys

from lookalike.server.app import document


def text() -> str:
    """Return the document as JSON text, the same bytes every time."""
    return json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(text().encode())
