#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does compressed-tensors understand what isobit quantize writes?

Development only.  Each folder is written as int8 and as int4.  Then the package compressed-tensors
must accept the configuration, find the scheme of each matrix by its own rules, and decompress each
matrix to numbers whose errors are those that isobit says.  With --run transformers loads the folder,
and its log-probabilities are compared with those of isobit, which computes with floats in both
cases (decoders whose layers are Linear; embeddings that are the logits, too, have to be kept, as
transformers cannot load them as integers).  Exit code 1 if anything differs.

    pip install torch transformers compressed-tensors
    tools/compare_quantized.py models/g2p-en models/tiny-gpt2 tests/data/models/*
    tools/compare_quantized.py --run --keep embed_tokens tests/data/models/llama tests/data/models/qwen3-bf16
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from safetensors.torch import load_file

IDS = [5, 11, 17, 30, 8, 2, 41]


def scheme_of(config, module):
    """The scheme of a Linear layer, or of what is named; names go before classes."""
    if module in config.ignore:
        return None
    schemes = list(config.config_groups.values())
    named = [s for s in schemes if module in s.targets]
    return (named or [s for s in schemes if "Linear" in s.targets])[0]


def check_matrix(config, tensors, original, said):
    """What the package makes of one matrix, against what isobit says of it."""
    name = said["tensor"]
    module = name.removesuffix(".weight")
    scheme = scheme_of(config, module)
    if said["to"] not in ("I8", "I32"):
        linear = original.ndim == 2 and name.endswith(".weight")
        return f"{module} is not ignored" if linear and scheme is not None else None
    if scheme is None:
        return f"{module} is ignored"
    state = {key.removeprefix(module + "."): tensors[key] for key in tensors
             if key in (name, name + "_packed", name + "_scale", name + "_shape")}
    if "weight_scale" in state:  # so that its products are exact
        state["weight_scale"] = state["weight_scale"].float()
    turned = ".c_" in name  # of GPT-2: matrices of its file are [in][out], and so are int8
    if turned and said["to"] == "I8":
        state["weight"] = state["weight"].T
    compressor = BaseCompressor.get_value_from_registry(scheme.format or config.format)
    got = compressor.decompress(state, scheme)["weight"].double()
    wanted = original.double().T if turned else original.double()
    error = (got - wanted).abs()
    rms = (error.square().mean() / wanted.square().mean()).sqrt().item()
    largest = error.max().item()
    if abs(largest - said["largest_error"]) > 1e-4 * largest or \
            abs(rms - said["relative_rms_error"]) > 1e-5 * rms:
        return (f"{name}: largest {largest}, rms {rms}; isobit says {said['largest_error']}, "
                f"{said['relative_rms_error']}")
    return None


def check_run(isobit, folder):
    """Log-probabilities of transformers, and of isobit on the same integers."""
    import transformers
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.tensor([IDS])).logits[0].double()
    wanted = torch.log_softmax(logits, -1)[range(len(IDS) - 1), IDS[1:]]
    line = f"{IDS[0]}\t{' '.join(map(str, IDS[1:]))}\n"
    done = subprocess.run([isobit, "score", "--model", folder, "--compute", "f32"], input=line,
                          capture_output=True, text=True, check=True)
    got = torch.tensor([float(x) for x in done.stdout.split()], dtype=torch.double)
    return (got - wanted).abs().max().item()


def check(isobit, folder, kind, keep, run):
    """The number of things that differ."""
    with tempfile.TemporaryDirectory() as work:
        out = Path(work) / "out"
        done = subprocess.run([isobit, "quantize", "--model", folder, "--to", kind, "--out", out,
                               "--json", *(w for k in keep for w in ("--keep", k))], capture_output=True, text=True, check=True)
        table = [json.loads(line) for line in done.stdout.splitlines()][:-1]
        config = QuantizationConfig.model_validate(
            json.loads((out / "config.json").read_text())["quantization_config"])
        tensors, originals = load_file(out / "model.safetensors"), {}
        for file in Path(folder).glob("*.safetensors"):
            originals |= load_file(file)
        wrong = [w for said in table
                 if (w := check_matrix(config, tensors, originals[said["tensor"]], said))]
        words = f"{sum(said['to'] in ('I8', 'I32') for said in table)} matrices"
        if run:
            difference = check_run(isobit, out)
            words += f", log-probabilities differ by {difference:.1e}"
            # int8: transformers rounds activations, too, and isobit was told not to.
            if difference > (2e-5 if kind == "int4" else 5e-2):
                wrong.append("other log-probabilities")
    print(f"{folder} {kind}: {words}{''.join(chr(10) + '  ' + w for w in wrong)}")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--isobit", default="build/bin/isobit")
    parser.add_argument("--keep", action="append", default=[], help="tensors that stay")
    parser.add_argument("--run", action="store_true", help="load them with transformers, too")
    args = parser.parse_args()
    wrong = sum(check(args.isobit, folder, kind, args.keep, args.run)
                for folder in args.folders for kind in ("int8", "int4"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
