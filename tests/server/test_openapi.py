"""The document and the server say the same: the source of the web app's types, and a fuzzer's map."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lookalike.server.app import document
from lookalike.server.settings import Settings

from .shops import make_catalogue

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_document_is_openapi_3_1_and_the_same_bytes_every_time():
    command = [sys.executable, "-m", "lookalike.server.openapi"]
    first, second = (subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2))
    assert first == second
    assert json.loads(first)["openapi"].startswith("3.1")


def test_the_server_hands_out_the_document(client):
    assert client.get("openapi.json").json == document()


def test_every_reference_leads_somewhere_and_every_operation_can_be_refused():
    made = document()
    names = set(made["components"]["schemas"])
    text = json.dumps(made)
    used = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= names
    for path in made["paths"].values():
        for operation in path.values():
            assert operation["description"]
            assert operation["responses"]["4XX"]["content"].keys() == {"application/problem+json"}


def test_the_types_of_the_web_app_are_made_from_this_document():
    kept = REPOSITORY / "web" / "openapi.json"
    if not kept.is_file():
        pytest.skip("web/openapi.json is not here")
    assert json.loads(kept.read_text()) == document(), "run: python -m lookalike.server.openapi > web/openapi.json"


@pytest.mark.slow
def test_no_request_the_document_allows_or_forbids_is_a_fault(tmp_path, serve):
    """Schemathesis: a few hundred requests, valid and broken, to every operation; each answer as documented."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, Phase, settings
    from schemathesis.checks import CHECKS

    shop = make_catalogue(tmp_path)
    client = serve(Settings(catalogue=shop, port=0, threads=1))
    base = f"http://127.0.0.1:{client.port}"
    schema = schemathesis.openapi.from_dict(document())
    schema.config.update(base_url=base)
    checks = CHECKS.get_by_names([
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    ])  # fmt: skip

    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path.endswith("/events"):
            continue  # a stream ends when its job does

        @settings(
            max_examples=12, deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def one(case):
            case.call_and_validate(base_url=base, checks=checks, timeout=60)

        schemathesis_given(operation)(one)()
    assert client.get("health").status == 200
    assert client.get("items").json["total"] == 18


def schemathesis_given(operation):
    """Return Hypothesis's `given` over requests of an operation, half of them broken on purpose."""
    from hypothesis import given
    from hypothesis import strategies as st
    from schemathesis import GenerationMode

    return given(
        case=st.one_of(
            operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
            operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
        )
    )
