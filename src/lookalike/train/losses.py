"""Losses by name: one frozen settings class each, built through pytorch-metric-learning."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from lookalike.errors import InputError, InputTypeError, MissingExtraError, UnknownNameError
from lookalike.train.triplets import check_margin


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What every loss says of itself; the fields of a subclass are its options, checked when it is made."""

    library_class: ClassVar[str]
    """Name in `pytorch_metric_learning.losses`."""
    pairs: ClassVar[bool] = True
    """It compares pictures of a batch with each other, so that a miner may choose which."""
    memory: ClassVar[bool] = False
    """It can compare a batch with a queue of earlier vectors."""
    mining: ClassVar[str] = "all"
    """The miner used where none is named."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(type(self).__name__, field.name, getattr(self, field.name))

    @property
    def squared(self) -> bool:
        """The distance is squared before the loss sees it."""
        return False

    @property
    def triplet_margin(self) -> float:
        """Margin at which an epoch's easy, semi-hard and hard triplets are told apart: its own, or 0.2."""
        return 0.2

    def options(self) -> dict[str, Any]:
        """Return the constructor's arguments for pytorch-metric-learning."""
        return dataclasses.asdict(self)

    def build(self, *, classes: int, dim: int) -> Any:
        """Build the torch module; a loss with proxies gets one a class, of `dim` values.

        Raises:
            MissingExtraError: pytorch-metric-learning is not installed.
        """
        try:
            from pytorch_metric_learning import losses  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError as error:
            raise MissingExtraError("Training", "train") from error
        made = {} if self.pairs else {"num_classes": classes, "embedding_size": dim}
        return getattr(losses, self.library_class)(**self.options(), **made)


@dataclass(frozen=True, kw_only=True)
class Triplet(Loss):
    """max(0, d(a, p) − d(a, n) + margin), averaged over the open hinges (Schroff et al., 2015; Hermans et al., 2017).

    The surprise: 0.2 of squared distance is the published margin of FaceNet, and about 0.1 of plain distance.
    """

    library_class: ClassVar[str] = "TripletMarginLoss"
    memory: ClassVar[bool] = True
    mining: ClassVar[str] = "semi-hard"
    margin: float = 0.2
    squared_distance: bool = False
    swap: bool = False
    """Use d(p, n) where it is the smaller."""
    smooth: bool = False
    """Softplus instead of the hinge."""

    @property
    def squared(self) -> bool:
        """As `squared_distance` says."""
        return self.squared_distance

    @property
    def triplet_margin(self) -> float:
        """Its own margin."""
        return self.margin

    def options(self) -> dict[str, Any]:
        """Return the arguments, with the distance that is exact at zero."""
        from lookalike.train.distance import OpenMean, UnitDistance

        made = {"distance": UnitDistance(squared=self.squared), "reducer": OpenMean()}
        return {"margin": self.margin, "swap": self.swap, "smooth_loss": self.smooth, **made}


@dataclass(frozen=True, kw_only=True)
class TripletSquared(Triplet):
    """The triplet loss in squared distance, as FaceNet printed it."""

    squared_distance: bool = True


@dataclass(frozen=True, kw_only=True)
class Contrastive(Loss):
    """Positives are pulled within one margin, negatives pushed beyond another (Hadsell et al., 2006)."""

    library_class: ClassVar[str] = "ContrastiveLoss"
    memory: ClassVar[bool] = True
    pos_margin: float = 0.0
    neg_margin: float = 1.0
    squared_distance: bool = False

    @property
    def squared(self) -> bool:
        """As `squared_distance` says."""
        return self.squared_distance

    def options(self) -> dict[str, Any]:
        """Return the arguments, with the distance that is exact at zero."""
        from lookalike.train.distance import OpenMean, UnitDistance

        made = {"distance": UnitDistance(squared=self.squared), "reducer": OpenMean()}
        return {"pos_margin": self.pos_margin, "neg_margin": self.neg_margin, **made}


@dataclass(frozen=True, kw_only=True)
class NTXent(Loss):
    """Softmax over one positive and all negatives (InfoNCE; van den Oord et al., 2018; Chen et al., 2020)."""

    library_class: ClassVar[str] = "NTXentLoss"
    memory: ClassVar[bool] = True
    temperature: float = 0.07


@dataclass(frozen=True, kw_only=True)
class SupCon(Loss):
    """InfoNCE averaged over all positives of an anchor (Khosla et al., 2020)."""

    library_class: ClassVar[str] = "SupConLoss"
    memory: ClassVar[bool] = True
    temperature: float = 0.1


@dataclass(frozen=True, kw_only=True)
class MultiSimilarity(Loss):
    """Pairs weighted by their own and by relative similarity (Wang et al., 2019)."""

    library_class: ClassVar[str] = "MultiSimilarityLoss"
    memory: ClassVar[bool] = True
    alpha: float = 2.0
    beta: float = 50.0
    base: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Circle(Loss):
    """Each similarity paced by its distance from its optimum (Sun et al., 2020)."""

    library_class: ClassVar[str] = "CircleLoss"
    memory: ClassVar[bool] = True
    m: float = 0.4
    gamma: float = 80.0


@dataclass(frozen=True, kw_only=True)
class Margin(Loss):
    """Positives within β − margin, negatives beyond β + margin (Wu et al., 2017)."""

    library_class: ClassVar[str] = "MarginLoss"
    memory: ClassVar[bool] = True
    mining: ClassVar[str] = "semi-hard"
    margin: float = 0.2
    nu: float = 0.0
    beta: float = 1.2

    @property
    def triplet_margin(self) -> float:
        """Its own margin."""
        return self.margin


@dataclass(frozen=True, kw_only=True)
class NCA(Loss):
    """Leave-one-out softmax of the neighbours (Goldberger et al., 2004)."""

    library_class: ClassVar[str] = "NCALoss"
    memory: ClassVar[bool] = True
    softmax_scale: float = 9.0


@dataclass(frozen=True, kw_only=True)
class Angular(Loss):
    """An angle at the negative is bounded, in degrees (Wang et al., 2017)."""

    library_class: ClassVar[str] = "AngularLoss"
    memory: ClassVar[bool] = True
    alpha: float = 40.0


@dataclass(frozen=True, kw_only=True)
class LiftedStructure(Loss):
    """All negatives of a pair in one log-sum (Song et al., 2016; Hermans et al., 2017)."""

    library_class: ClassVar[str] = "GeneralizedLiftedStructureLoss"
    memory: ClassVar[bool] = True
    neg_margin: float = 1.0
    pos_margin: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TupletMargin(Loss):
    """A tuple of negatives against an angular margin, in degrees (Yu and Tao, 2019)."""

    library_class: ClassVar[str] = "TupletMarginLoss"
    memory: ClassVar[bool] = True
    margin: float = 5.73
    scale: float = 64.0


@dataclass(frozen=True, kw_only=True)
class IntraPairVariance(Loss):
    """The variance among positive and among negative similarities (Yu and Tao, 2019)."""

    library_class: ClassVar[str] = "IntraPairVarianceLoss"
    memory: ClassVar[bool] = True
    pos_eps: float = 0.01
    neg_eps: float = 0.01


@dataclass(frozen=True, kw_only=True)
class NPairs(Loss):
    """One positive pair a class, the other classes' positives as negatives (Sohn, 2016)."""

    library_class: ClassVar[str] = "NPairsLoss"


@dataclass(frozen=True, kw_only=True)
class FastAP(Loss):
    """Average precision through a histogram of distances (Cakir et al., 2019)."""

    library_class: ClassVar[str] = "FastAPLoss"
    num_bins: int = 10


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


LOSSES: Mapping[str, type[Loss]] = MappingProxyType(
    {
        "triplet": Triplet,
        "triplet-squared": TripletSquared,
        "contrastive": Contrastive,
        "ntxent": NTXent,
        "infonce": NTXent,
        "supcon": SupCon,
        "multi-similarity": MultiSimilarity,
        "circle": Circle,
        "margin": Margin,
        "nca": NCA,
        "angular": Angular,
        "lifted-structure": LiftedStructure,
        "tuplet-margin": TupletMargin,
        "intra-pair-variance": IntraPairVariance,
        "n-pairs": NPairs,
        "fast-ap": FastAP,
        "proxy-nca": ProxyNCA,
        "proxy-anchor": ProxyAnchor,
        "arcface": ArcFace,
        "subcenter-arcface": SubCenterArcFace,
        "cosface": CosFace,
        "normalised-softmax": NormalisedSoftmax,
        "soft-triple": SoftTriple,
    }
)


def make_loss(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> Loss:
    """Return the settings of the loss of that name with these options; text is converted to the option's type.

    Raises:
        UnknownNameError: no loss of that name, or no option of that name; the right spellings are listed.
        InputTypeError: an option of the wrong type.
        InputError: an option outside its range.

    >>> make_loss("triplet", {"margin": "0.1"})
    Triplet(margin=0.1, squared_distance=False, swap=False, smooth=False)
    """
    if name not in LOSSES:
        raise UnknownNameError("loss", name, LOSSES)
    fields = {field.name: field for field in dataclasses.fields(LOSSES[name])}
    for option in options:
        if option not in fields:
            raise UnknownNameError(f"option of the {name} loss", option, fields or ["(it has none)"])
    return LOSSES[name](**{key: _convert(name, key, value, fields[key].default) for key, value in options.items()})


def name_of(loss: Loss) -> str:
    """Return the name a loss stands under.

    >>> name_of(make_loss("infonce"))
    'ntxent'
    """
    return next(name for name, kind in LOSSES.items() if kind is type(loss))


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _convert(loss: str, option: str, value: Any, default: Any) -> Any:
    """Convert text or a whole number to the type of the option's default."""
    try:
        if isinstance(value, str):
            return _WORDS[value.lower()] if isinstance(default, bool) else type(default)(value)
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
    except (ValueError, KeyError) as error:
        raise _wrong_type(loss, option, value, default) from error
    if type(value) is not type(default):
        raise _wrong_type(loss, option, value, default)
    return value


def _wrong_type(loss: str, option: str, value: Any, default: Any) -> InputTypeError:
    return InputTypeError(
        f"{option}={value!r} of the {loss} loss must be {'yes or no' if isinstance(default, bool) else 'a number'}.",
        hint=f"The default is {default!r}.",
    )


_POSITIVE = ("temperature", "scale", "alpha", "beta", "gamma", "softmax_scale", "la")
_AT_LEAST_ONE = ("num_bins", "sub_centers", "centers_per_class")


def _check(loss: str, option: str, value: Any) -> None:
    """Refuse an option outside its range."""
    if isinstance(value, bool):
        return
    if not math.isfinite(value):
        raise InputError(f"{option}={value} of {loss} must be a finite number.")
    if option == "margin":
        check_margin(value)
    if option in _POSITIVE and value <= 0:
        raise InputError(f"{option}={value} of {loss} must be above 0.")
    if option in _AT_LEAST_ONE and value < 1:
        raise InputError(f"{option}={value} of {loss} must be at least 1.")
