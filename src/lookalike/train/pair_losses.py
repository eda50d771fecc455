"""Losses that compare the pictures of a batch with each other, and with a queue of earlier ones where they can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lookalike.train.loss import Loss


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
