#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/models/{sentence-t5,minilm-dense}: folders of sentence-transformers with Dense modules.

Development only: the tests need the files, not this script.  sentence-t5 is a whole folder, an encoder
of T5 alone with the tokenizer of tests/data/text/t5, whose expected.json has the ids that Hugging Face's
tokenizer gives.  minilm-dense has only what differs from tests/data/models/minilm, which a test copies
first: two Dense modules, one as torch.save writes it.  vectors.txt has a line for each text after
`pooling normalize`, computed in double precision below: the encoder of T5, and what follows the vectors
of transformers in minilm/vectors.txt.

    pip install numpy
    tools/make_dense.py
"""

import io
import json
import pickle
import shutil
import struct
import sys
import types
import zipfile
from collections import OrderedDict
from math import erf, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": lambda x: x,
    "torch.nn.modules.activation.Tanh": np.tanh,
    "torch.nn.modules.activation.GELU": np.vectorize(lambda x: 0.5 * x * (1 + erf(x / sqrt(2)))),
}
# As releases up to 5 write them, and as 6 does.
OLD = "sentence_transformers.models."
NEW = {"Transformer": "sentence_transformers.base.modules.transformer.Transformer",
       "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
       "Dense": "sentence_transformers.base.modules.dense.Dense",
       "Normalize": "sentence_transformers.base.modules.normalize.Normalize"}
SIZES = {"vocab_size": 336, "d_model": 16, "d_kv": 6, "num_heads": 3, "d_ff": 24, "num_layers": 2}


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": {2: "F16", 4: "F32"}[x.itemsize], "shape": list(x.shape),
                        "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(x.tobytes() for x in tensors.values()))


class FloatStorage:
    """One of PyTorch, by name."""

    def __init__(self, key: str, x: np.ndarray):
        self.key, self.x = key, x


def rebuild() -> None:
    """What the pickle names; nobody calls it."""


class Tensor:
    def __init__(self, storage: FloatStorage):
        self.storage = storage

    def __reduce__(self) -> Any:
        shape = self.storage.x.shape
        strides = tuple(int(np.prod(shape[i + 1:])) for i in range(len(shape)))
        return rebuild, (self.storage, 0, shape, strides, False, OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, FloatStorage):
            return "storage", FloatStorage, obj.key, "cpu", obj.x.size
        return None


def write_bin(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """As torch.save writes a state dict, without PyTorch."""
    for module in ("torch", "torch._utils"):
        sys.modules[module] = types.ModuleType(module)
    FloatStorage.__module__, rebuild.__module__ = "torch", "torch._utils"
    rebuild.__name__ = rebuild.__qualname__ = "_rebuild_tensor_v2"
    setattr(sys.modules["torch"], "FloatStorage", FloatStorage)
    setattr(sys.modules["torch._utils"], "_rebuild_tensor_v2", rebuild)
    storages = [FloatStorage(str(i), x) for i, x in enumerate(tensors.values())]
    text = io.BytesIO()
    Pickler(text, protocol=2).dump(OrderedDict(zip(tensors, map(Tensor, storages))))
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in [("data.pkl", text.getvalue()), ("version", b"3\n")] + [
                ("data/" + s.key, s.x.tobytes()) for s in storages]:
            archive.writestr(zipfile.ZipInfo("pytorch_model/" + name), data)


class Dense:
    """act(x W^T + b), and its folder."""

    def __init__(self, rng: np.random.Generator, width: int, out: int, bias: bool, activation: str, half: bool):
        kind = np.float16 if half else np.float32
        self.tensors = {"linear.weight": (rng.standard_normal((out, width)) / sqrt(width)).astype(kind)}
        if bias:
            self.tensors["linear.bias"] = (0.3 * rng.standard_normal(out)).astype(kind)
        self.config = {"in_features": width, "out_features": out, "bias": bias, "activation_function": activation}

    def __call__(self, x: np.ndarray) -> np.ndarray:
        w = {name: t.astype(np.float64) for name, t in self.tensors.items()}
        y = w["linear.weight"] @ x + w.get("linear.bias", 0.0)
        return ACTIVATIONS[str(self.config["activation_function"])](y)

    def write(self, directory: Path, new: bool, pickled: bool) -> None:
        names = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"} if new else {}
        write_json(directory / "config.json", self.config | names)
        if pickled:
            write_bin(directory / "pytorch_model.bin", self.tensors)
        else:
            write_safetensors(directory / "model.safetensors", self.tensors)


def write_modules(directory: Path, names: list[str], types_: dict[str, str]) -> None:
    write_json(directory / "modules.json", [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": types_[name]}
        for i, name in enumerate(names)])


def lines(how: str, vectors: list[np.ndarray]) -> list[str]:
    return [" ".join([how] + [f"{v:.9g}" for v in y.tolist()]) for y in vectors]


def unit(y: np.ndarray) -> np.ndarray:
    return y / sqrt(float(y @ y))


# ---------------------------------------------------------------------------------- T5's encoder


def bucket(distance: int, n: int, most: int) -> int:
    """Of a key so far behind the query; n buckets for each direction."""
    a, exact = abs(distance), n // 2
    if a >= exact:
        a = min(n - 1, exact + int(log(a / exact) / log(most / exact) * (n - exact)))
    return a + (n if distance > 0 else 0)


def rms(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def encode(stored: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    w = {name: t.astype(np.float64) for name, t in stored.items()}
    heads, width, rows = SIZES["num_heads"], SIZES["d_kv"], range(len(ids))
    table = w["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    bias = table[[[bucket(k - q, 16, 128) for k in rows] for q in rows]].transpose(2, 0, 1)
    x = w["shared.weight"][ids]
    for i in range(SIZES["num_layers"]):
        at = f"encoder.block.{i}.layer."
        h = rms(x, w[at + "0.layer_norm.weight"])
        q, k, v = ((h @ w[at + f"0.SelfAttention.{part}.weight"].T).reshape(-1, heads, width).transpose(1, 0, 2)
                   for part in "qkv")
        scores = q @ k.transpose(0, 2, 1) + bias
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + (p @ v).transpose(1, 0, 2).reshape(len(ids), -1) @ w[at + "0.SelfAttention.o.weight"].T
        h = rms(x, w[at + "1.layer_norm.weight"]) @ w[at + "1.DenseReluDense.wi.weight"].T
        x = x + np.maximum(h, 0) @ w[at + "1.DenseReluDense.wo.weight"].T
    return rms(x, w["encoder.final_layer_norm.weight"])


def encoder_weights(rng: np.random.Generator) -> dict[str, np.ndarray]:
    d, inner, f = SIZES["d_model"], SIZES["num_heads"] * SIZES["d_kv"], SIZES["d_ff"]

    def matrix(n: int, k: int, std: float) -> np.ndarray:
        return (std * rng.standard_normal((n, k))).astype(np.float16)

    def norm() -> np.ndarray:
        return (1 + 0.2 * rng.standard_normal(d)).astype(np.float16)
    w = {"shared.weight": matrix(SIZES["vocab_size"], d, 1.0)}
    for i in range(SIZES["num_layers"]):
        at = f"encoder.block.{i}.layer."
        for part in "qkv":
            w[at + f"0.SelfAttention.{part}.weight"] = matrix(inner, d, 0.35)
        w[at + "0.SelfAttention.o.weight"] = matrix(d, inner, 0.3)
        if i == 0:
            w[at + "0.SelfAttention.relative_attention_bias.weight"] = matrix(32, SIZES["num_heads"], 1.0)
        w[at + "0.layer_norm.weight"] = norm()
        w[at + "1.DenseReluDense.wi.weight"] = matrix(f, d, 0.3)
        w[at + "1.DenseReluDense.wo.weight"] = matrix(d, f, 0.3)
        w[at + "1.layer_norm.weight"] = norm()
    w["encoder.final_layer_norm.weight"] = norm()
    return w


def make_sentence_t5(directory: Path) -> None:
    rng = np.random.default_rng(1)
    text = DATA / "text" / "t5"
    w, dense = encoder_weights(rng), Dense(rng, SIZES["d_model"], 12, False, "torch.nn.modules.linear.Identity", False)
    write_json(directory / "config.json", SIZES | {
        "model_type": "t5", "architectures": ["T5Model"], "feed_forward_proj": "relu", "is_encoder_decoder": True,
        "relative_attention_num_buckets": 32, "layer_norm_epsilon": 1e-6, "pad_token_id": 0, "eos_token_id": 1})
    write_safetensors(directory / "model.safetensors", w)
    for name in ("spiece.model", "tokenizer_config.json"):
        shutil.copy(text / name, directory)
    write_json(directory / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": False})
    write_modules(directory, ["Transformer", "Pooling", "Dense", "Normalize"],
                  {name: OLD + name for name in NEW})
    write_json(directory / "1_Pooling" / "config.json", {
        "word_embedding_dimension": SIZES["d_model"], "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False})
    dense.write(directory / "2_Dense", False, False)
    known = json.loads((text / "expected.json").read_text(encoding="utf-8"))["encode"]
    cases = [(case["text"], case["ids"]) for case in known
             if case["text"] == case["text"].strip() and case["text"].isprintable() and len(case["ids"]) <= 24][:12]
    cases.append(("", [1]))
    (directory / "texts.txt").write_text("".join(t + "\n" for t, _ in cases), encoding="utf-8")
    write_json(directory / "ids.json", [ids for _, ids in cases])
    encoded = [encode(w, ids) for _, ids in cases]
    rows = lines("mean yes", [unit(dense(x.mean(0))) for x in encoded])
    rows += lines("max no", [dense(x.max(0)) for x in encoded])
    (directory / "vectors.txt").write_text("\n".join(rows) + "\n")


# ----------------------------------------------------------------------------------- behind MiniLM


def make_minilm_dense(directory: Path) -> None:
    rng = np.random.default_rng(2)
    modules = [Dense(rng, 24, 40, True, "torch.nn.modules.activation.Tanh", False),
               Dense(rng, 40, 31, False, "torch.nn.modules.activation.GELU", True)]
    write_modules(directory, ["Transformer", "Pooling", "Dense", "Dense", "Normalize"], NEW)
    write_json(directory / "1_Pooling" / "config.json", {
        "embedding_dimension": 24, "pooling_mode": "mean", "include_prompt": True})
    for i, dense in enumerate(modules):
        dense.write(directory / f"{i + 2}_Dense", True, i == 0)
    write_json(directory / "4_Normalize" / "config.json", {
        "module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"})
    found: dict[str, list[np.ndarray]] = {}
    for line in (DATA / "models" / "minilm" / "vectors.txt").read_text().splitlines():
        pooling, normalize, *numbers = line.split()
        found.setdefault(f"{pooling} {normalize}", []).append(np.array([float(v) for v in numbers]))
    rows = lines("mean yes", [unit(modules[1](modules[0](x))) for x in found["mean no"]])
    rows += lines("max no", [modules[1](modules[0](x)) for x in found["max no"]])
    (directory / "vectors.txt").write_text("\n".join(rows) + "\n")


def main() -> None:
    for name, make in (("sentence-t5", make_sentence_t5), ("minilm-dense", make_minilm_dense)):
        directory = DATA / "models" / name
        make(directory)
        size = sum(f.stat().st_size for f in directory.rglob("*") if f.is_file())
        print(f"{name:14} {size:6} bytes")


if __name__ == "__main__":
    main()
