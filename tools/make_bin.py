#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/bin: a golden checkpoint as torch.save writes it, in its ZIP and its older form.

Development only: the tests need the files, not this script.  The values are those of
tests/data/models/paper-alias-bf16; what differs is how they lie in the file: views of shared
storages, transposed ones, ones with gaps, parameters, other element types, values that are no
tensors, and the attributes that state dicts carry.  The tests compare bits, so all of it is exact.

    pip install torch numpy
    tools/make_bin.py
"""

import argparse
import json
import struct
from collections import OrderedDict
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent


def read_bf16(path):
    """The tensors of a safetensors file that has BF16 only."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.bfloat16)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def disguise(tensors):
    """The same values in other places, forms and types."""
    state = OrderedDict()
    for name, tensor in tensors.items():
        kind = name.rsplit(".", 2)[-2:]
        if name.endswith("q_proj.weight"):
            # As a model with one matrix for all three would save its parts.
            names = [name.replace("q_proj", part) for part in ("q_proj", "k_proj", "v_proj")]
            joint = torch.cat([tensors[n] for n in names])
            for n, part in zip(names, joint.chunk(3)):
                state[n] = part
        elif name in state or kind[0] in ("k_proj", "v_proj") and kind[1] == "weight":
            continue
        elif kind == ["fc1", "weight"]:
            state[name] = tensor.t().contiguous().t()
        elif kind == ["fc2", "weight"]:
            state[name] = torch.nn.Parameter(tensor.float())
        elif kind == ["out_proj", "weight"]:
            state[name] = torch.nn.Parameter(tensor.float().t().contiguous().t())
        elif kind == ["fc1", "bias"]:
            state[name] = tensor.double()
        elif kind[0].endswith("layer_norm") and kind[1] == "weight":
            state[name] = tensor.half()
        elif kind[0] == "final_layer_norm":
            state[name] = torch.stack([tensor, -tensor], 1)[:, 0]
        else:
            state[name] = tensor.clone()
    state["shared.weight"] = state["lm_head.weight"]
    state["steps"] = torch.tensor([1, 2, 3])
    state["version"] = 3
    for name, tensor in tensors.items():
        if not torch.equal(state[name].detach().double(), tensor.double()):
            raise ValueError(f"{name} is not exact")
    if len(state) != len(tensors) + 3:
        raise ValueError("a tensor is missing")
    state._metadata = OrderedDict([("", {"version": 1}), ("encoder", {"version": 2})])
    return state


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "data" / "bin")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    state = disguise(read_bf16(ROOT / "tests/data/models/paper-alias-bf16/model.safetensors"))
    torch.save(state, out / "zip.bin")
    torch.save(state, out / "legacy.bin", _use_new_zipfile_serialization=False)
    for path in sorted(out.iterdir()):
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
