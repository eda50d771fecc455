"""The models with a line in `lookalike models list`: what each is good for, and where its files would lie.

The guidance in short. Which picture shows the same thing (product, instance, near-duplicate): DINOv2 or DINOv3, trained
on pictures alone, whose vectors keep parts, texture and shape that captions never mention. What is described in words:
CLIP, SigLIP, SigLIP 2 or MobileCLIP, trained on pictures with captions, whose vectors keep what captions say. ResNet,
EfficientNet and ConvNeXt, trained on ImageNet labels, are the baselines that everything is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookalike.embed.hub import Repo

_INSTANCE = "same product or instance, near-duplicates"
_TEXT = "text queries and categories"
_BASE = "baseline: categories"


@dataclass(frozen=True)
class Known:
    """One model: its name, its facts as published, and the hub repository of its files."""

    name: str
    dim: int
    image_size: int
    licence: str
    good_for: str
    repo: str
    files: Sequence[str] = ("model.safetensors", "pytorch_model.bin")

    @property
    def on_disk(self) -> bool:
        """Its weights are in the hub's cache."""
        return Repo.parse(self.repo).file(*self.files) is not None


_OPEN = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin", "model.safetensors", "pytorch_model.bin")


def _timm(model: str, dim: int, size: int, licence: str, good_for: str) -> Known:
    return Known(f"timm:{model}", dim, size, licence, good_for, f"timm/{model}")


def _hf(model: str, dim: int, size: int, licence: str, good_for: str) -> Known:
    return Known(f"hf:{model}", dim, size, licence, good_for, model)


def _open_clip(model: str, dim: int, size: int, licence: str, good_for: str, repo: str) -> Known:
    return Known(f"open_clip:{model}", dim, size, licence, good_for, repo, _OPEN)


KNOWN: Sequence[Known] = (
    _timm("vit_small_patch14_dinov2.lvd142m", 384, 518, "apache-2.0", f"{_INSTANCE}; small: first choice for pictures"),
    _timm("vit_base_patch14_reg4_dinov2.lvd142m", 768, 518, "apache-2.0", f"{_INSTANCE}; better, 4 times the cost"),
    _timm("vit_small_patch16_dinov3.lvd1689m", 384, 256, "dinov3-license", f"{_INSTANCE}; fine detail, own licence"),
    _timm("vit_base_patch16_dinov3.lvd1689m", 768, 256, "dinov3-license", f"{_INSTANCE}; fine detail, own licence"),
    _hf("facebook/dinov2-small", 384, 224, "apache-2.0", f"{_INSTANCE}; small, 224 px"),
    _hf("facebook/dinov2-base", 768, 224, "apache-2.0", f"{_INSTANCE}; 224 px"),
    _hf("facebook/dinov3-vits16-pretrain-lvd1689m", 384, 224, "dinov3-license", f"{_INSTANCE}; access on request"),
    _open_clip(
        "ViT-B-32/openai", 512, 224, "mit", f"{_TEXT}; the classic, quick", "timm/vit_base_patch32_clip_224.openai"
    ),
    _open_clip(
        "ViT-B-16/laion2b_s34b_b88k", 512, 224, "mit", f"{_TEXT}; open data", "laion/CLIP-ViT-B-16-laion2B-s34B-b88K"
    ),
    _open_clip(
        "ViT-B-16-SigLIP/webli",
        768,
        224,
        "apache-2.0",
        f"{_TEXT}; better than CLIP at its size",
        "timm/ViT-B-16-SigLIP",
    ),
    _open_clip("ViT-B-16-SigLIP2/webli", 768, 224, "apache-2.0", f"{_TEXT} in many languages", "timm/ViT-B-16-SigLIP2"),
    _open_clip(
        "MobileCLIP2-S0/dfndr2b", 512, 256, "apple-amlr", f"{_TEXT} on small machines", "timm/MobileCLIP2-S0-OpenCLIP"
    ),
    _hf("openai/clip-vit-base-patch32", 512, 224, "mit", f"{_TEXT}; the classic, quick"),
    _hf("google/siglip-base-patch16-224", 768, 224, "apache-2.0", f"{_TEXT}; better than CLIP at its size"),
    _hf("google/siglip2-base-patch16-224", 768, 224, "apache-2.0", f"{_TEXT} in many languages"),
    _timm("resnet50.a1_in1k", 2048, 224, "apache-2.0", f"{_BASE}; what most papers compare with"),
    _timm("tf_efficientnet_lite0.in1k", 1280, 224, "apache-2.0", f"{_BASE}; small and quick"),
    _timm("convnext_tiny.fb_in22k", 768, 224, "apache-2.0", f"{_BASE} of 22,000 kinds"),
)
"""Facts as the models' authors publish them; `models check NAME` compares them with what the weights say."""


def licence_of(name: str) -> str:
    """Return the licence of a known model, `unknown` for another.

    >>> licence_of("hf:facebook/dinov2-base?crop=pad")
    'apache-2.0'
    """
    plain = name.partition("?")[0]
    return next((model.licence for model in KNOWN if model.name == plain), "unknown")


def text_encoders() -> list[str]:
    """Return the names of known models that read text."""
    return [model.name for model in KNOWN if model.good_for.startswith(_TEXT)]
