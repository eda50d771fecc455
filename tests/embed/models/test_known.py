"""The table of `models list` says what the libraries' own tables say."""

from __future__ import annotations

import pytest

from lookalike.embed.known import KNOWN, licence_of, text_encoders

for module in ("timm", "open_clip"):
    pytest.importorskip(module, reason="the libraries' tables are compared with ours")

TIMM = [model for model in KNOWN if model.name.startswith("timm:")]
OPEN_CLIP = [model for model in KNOWN if model.name.startswith("open_clip:")]


@pytest.mark.parametrize("model", TIMM, ids=lambda model: model.name)
def test_a_row_of_timm_is_timms_own(model: object) -> None:
    import timm
    import torch

    config = timm.get_pretrained_cfg(model.name.removeprefix("timm:"))  # type: ignore[attr-defined]
    with torch.device("meta"):  # shapes without weights
        module = timm.create_model(model.name.removeprefix("timm:"), pretrained=False, num_classes=0)  # type: ignore[attr-defined]
    assert (config.input_size[-1], config.hf_hub_id, module.num_features) == (
        model.image_size, model.repo, model.dim,  # type: ignore[attr-defined]
    )  # fmt: skip
    assert config.license == model.licence  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", OPEN_CLIP, ids=lambda model: model.name)
def test_a_row_of_open_clip_is_open_clips_own(model: object) -> None:
    import open_clip

    arch, _, tag = model.name.removeprefix("open_clip:").partition("/")  # type: ignore[attr-defined]
    config, weights = open_clip.get_model_config(arch), open_clip.get_pretrained_cfg(arch, tag)
    size = config["vision_cfg"]["image_size"]
    assert (config["embed_dim"], size) == (model.dim, model.image_size)  # type: ignore[attr-defined]
    assert weights["hf_hub"].rpartition("/")[0] == model.repo  # type: ignore[attr-defined]


def test_text_encoders_are_those_of_open_clip_and_the_clips_of_transformers() -> None:
    assert set(text_encoders()) == {model.name for model in OPEN_CLIP} | {
        "hf:openai/clip-vit-base-patch32", "hf:google/siglip-base-patch16-224", "hf:google/siglip2-base-patch16-224",
    }  # fmt: skip
    assert licence_of("hf:somebody/else") == "unknown"
