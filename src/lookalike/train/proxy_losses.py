"""Losses that compare pictures with learned class proxies: no mining, and every picture counts, alone or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lookalike.train.loss import Loss


@dataclass(frozen=True, kw_only=True)
class ProxyNCA(Loss):
    """NCA against one learned proxy a class (Movshovitz-Attias et al., 2017)."""

    library_class: ClassVar[str] = "ProxyNCALoss"
    pairs: ClassVar[bool] = False
    softmax_scale: float = 9.0


@dataclass(frozen=True, kw_only=True)
class ProxyAnchor(Loss):
    """Each proxy as an anchor over the whole batch (Kim et al., 2020)."""

    library_class: ClassVar[str] = "ProxyAnchorLoss"
    pairs: ClassVar[bool] = False
    margin: float = 0.1
    alpha: float = 32.0


@dataclass(frozen=True, kw_only=True)
class ArcFace(Loss):
    """Softmax with an additive angle, in degrees (Deng et al., 2019)."""

    library_class: ClassVar[str] = "ArcFaceLoss"
    pairs: ClassVar[bool] = False
    margin: float = 28.6
    scale: float = 64.0


@dataclass(frozen=True, kw_only=True)
class SubCenterArcFace(ArcFace):
    """ArcFace with several centres a class, for noisy labels (Deng et al., 2020)."""

    library_class: ClassVar[str] = "SubCenterArcFaceLoss"
    sub_centers: int = 3


@dataclass(frozen=True, kw_only=True)
class CosFace(Loss):
    """Softmax with an additive cosine (Wang et al., 2018)."""

    library_class: ClassVar[str] = "CosFaceLoss"
    pairs: ClassVar[bool] = False
    margin: float = 0.35
    scale: float = 64.0


@dataclass(frozen=True, kw_only=True)
class NormalisedSoftmax(Loss):
    """Softmax over cosines to one weight a class (Zhai and Wu, 2019)."""

    library_class: ClassVar[str] = "NormalizedSoftmaxLoss"
    pairs: ClassVar[bool] = False
    temperature: float = 0.05


@dataclass(frozen=True, kw_only=True)
class SoftTriple(Loss):
    """Softmax over several centres a class (Qian et al., 2019)."""

    library_class: ClassVar[str] = "SoftTripleLoss"
    pairs: ClassVar[bool] = False
    centers_per_class: int = 10
    la: float = 20.0
    gamma: float = 0.1
    margin: float = 0.01
