"""A finished run as files: the encoder that needs no torch, its card, and one ONNX network where it can be made."""

# torch is an extra; where it is absent its classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,no-untyped-call"

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.embed.crop import CentreCrop
from lookalike.embed.encoder import Card
from lookalike.embed.run import FORMAT, HEAD, NETWORK, RUN, LinearHead
from lookalike.train.head import Head

if TYPE_CHECKING:
    from lookalike.train.trained import Trained

CARD = "README.md"
_VERSIONED = ("lookalike", "torch", "pytorch-metric-learning", "accelerate", "timm", "numpy")


def export(trained: Trained, folder: Path) -> None:
    """Write `run.json` last, so that a folder that has one is a whole run."""
    head = linear(trained.head)
    head.save(folder / HEAD)
    base = trained.material.card
    described: dict[str, Any] = {
        "format": FORMAT,
        "kind": "head",
        "base": {"encoder": trained.material.encoder, "card": _base(trained).to_dict()},
        "settings": trained.settings.to_dict(),
        "data": {
            "digest": trained.material.digest,
            "pictures": len(trained.material.vectors),
            "trained_on": str(trained.coverage),
            "classes": trained.plan.classes,
        },
        "result": trained.to_dict(),
        "versions": versions(),
    }
    weights = head.digest
    if trained.settings.backbone is not None:
        from lookalike.train.finetune import write_network

        described |= {"kind": "network", "crop": write_network(trained, folder / NETWORK)}
        weights = _digest(folder / NETWORK)
    elif base is not None and base.name == "builtin:effnet-lite0":
        compose(head, folder / NETWORK)
    described["card"] = _card(folder, _base(trained), weights, described).to_dict()
    (folder / CARD).write_text(model_card(described), encoding="utf-8")
    (folder / RUN).write_text(json.dumps(described, indent=2, sort_keys=True), encoding="utf-8")


def linear(head: Head) -> LinearHead:
    """Return the head's weights as plain arrays."""
    state = {name: value.detach().cpu().numpy().copy() for name, value in head.state_dict().items()}
    places = range(len(state) // 2)
    return LinearHead(
        tuple(state[f"layers.{i}.weight"] for i in places), tuple(state[f"layers.{i}.bias"] for i in places)
    )


def compose(head: LinearHead, path: Path) -> None:
    """Write the built-in encoder and the head as one ONNX network: `pixels` (n, 224, 224, 3) uint8 -> `vectors`."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from lookalike.embed.builtin import effnet_lite0

    model = onnx.load(Path(effnet_lite0.__file__).with_name("effnet_lite0.onnx"))
    graph, last = model.graph, model.graph.output[0].name
    nodes = [helper.make_node("LpNormalization", [last], ["unit0"], axis=1, p=2)]
    last = "unit0"
    for place, (weight, bias) in enumerate(zip(head.weights, head.biases, strict=True)):
        names = [f"head.weight{place}", f"head.bias{place}"]
        graph.initializer.extend(
            numpy_helper.from_array(np.ascontiguousarray(array, dtype=np.float32), name)
            for array, name in zip((weight, bias), names, strict=True)
        )
        if place:
            nodes.append(helper.make_node("Relu", [last], [f"relu{place}"]))
            last = f"relu{place}"
        nodes.append(helper.make_node("Gemm", [last, *names], [f"linear{place}"], transB=1))
        last = f"linear{place}"
    nodes.append(helper.make_node("LpNormalization", [last], ["vectors"], axis=1, p=2))
    graph.node.extend(nodes)
    graph.output[0].CopyFrom(helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", head.dim]))
    onnx.checker.check_model(model)
    onnx.save(model, path)


def model_card(described: dict[str, Any]) -> str:
    """Return the run in words: what it is for, what it was trained on, and what it was shown to do."""
    card, base, data, result = (described[key] for key in ("card", "base", "data", "result"))
    held = result["held_out"]
    lines = [
        f"# {card['name']}",
        "",
        f"Vectors of {card['dim']} values, cosine. Trained from `{base['encoder'] or 'ready vectors'}` "
        f"(weights {base['card']['weights']}) with the {described['settings']['loss']['name']} loss.",
        "",
        f"- Trained on {data['trained_on']}, {data['classes']} classes of {data['pictures']} pictures in all "
        f"(data {data['digest']}).",
        f"- {result['epochs']} epochs, weights of epoch {result['best_epoch']}"
        + (f"; stopped: {result['stopped']}." if result["stopped"] else "."),
        *(f"- Note: {note}." for note in result["notes"]),
        f"- Licence of the frozen encoder: {card['licence']}.",
        "",
        "## Held-out identities",
        "",
    ]
    if held is None:
        return "\n".join([*lines, "None were held out: nothing is known of pictures it was not trained on.", ""])
    lines += [f"{held['verdict']}", "", "| metric | frozen | trained | difference | 95 % |", "|---|---|---|---|---|"]
    for name, pair in held["paired"].items():
        if pair["interval"] is not None:
            low, high = pair["interval"]
            lines.append(
                f"| {name} | {held['before'][name]:.3f} | {held['after'][name]:.3f} | {pair['difference']:+.3f} "
                f"| {low:+.3f} to {high:+.3f} |"
            )
    protocol = held["protocol"]
    lines += [
        "",
        f"{held['num_evaluated']} queries of {held['identities']} identities against {held['num_gallery']} pictures; "
        f"{protocol['split']}; {protocol['relevance']}; {protocol['self_rule']}; protocol {protocol['digest']}.",
        f"recall@K: {held['definition']}.",
        "",
    ]
    return "\n".join(lines)


def versions() -> dict[str, str]:
    """Return the versions of what decided the weights."""
    found = {}
    for name in _VERSIONED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _base(trained: Trained) -> Card:
    if trained.material.card is not None:
        return trained.material.card
    dim = trained.material.vectors.shape[1]
    return Card(name=trained.material.encoder or "ready vectors", weights="unknown", dim=dim, pooling="none")


def _card(folder: Path, base: Card, weights: str, described: dict[str, Any]) -> Card:
    """Return the card of the run; a whole network has a crop of its own."""
    own: dict[str, Any] = {"weights": f"{base.weights}+{weights}"}
    if described["kind"] == "network":
        crop = CentreCrop(**described["crop"])
        own = {"weights": weights, "image_size": crop.size, "preprocessing": f"upright RGB, {crop}"}
    return dataclasses.replace(
        base,
        name=f"run:{folder.name}",
        dim=described["settings"]["head"]["dim"],
        pooling="head",
        normalised=True,
        supports_text=False,
        **own,
    )


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
