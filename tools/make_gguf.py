#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/gguf: golden checkpoints and tokenizers as llama.cpp's conversion makes them.

Development only: the tests need the files, not this script.  It runs convert_hf_to_gguf.py of
llama.cpp on checkpoints of tests/data/models and on tokenizers of tests/data/text, so the tests can
ask for the bits and the tokens of those.  The checkpoints have no tokenizer, but GPT-2's, which
gets one of its 50 tokens: a complete file.  Files of Q8_0 and Q4_0 are made of those that it has
written, by the package gguf alone, each beside one of F32 with what that package makes of them.

    pip install torch transformers==4.51.3 sentencepiece gguf
    pip download --no-deps --no-binary :all: llama-cpp-python   # vendor/llama.cpp is in it
    tools/make_gguf.py --llama-cpp llama_cpp_python-0.3.9/vendor/llama.cpp
    tools/make_gguf.py
"""

import argparse
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"

# The conversion drops mscale and mscale_all_dim; what they make is "attention_factor".
YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 10,
    "beta_fast": 1.0,
    "beta_slow": 0.25,
}
YARN_SCALING = (0.1 * math.log(4) * 1.4 + 1) / (0.1 * math.log(4) * 0.3 + 1)

# Changes to config.json: what the conversion wants to find, with the same meaning.
MODELS = {
    "llama": ("llama", "f32", {"rope_scaling": {"type": "linear", "factor": 2.5}}),
    "llama3": ("llama3-bf16", "bf16", {"original_max_position_embeddings": 16}),
    "qwen2": ("qwen2-f16", "f16", {}),
    "gpt2": ("gpt2", "f32", {"n_ctx": 40}),
    "bert": ("bert", "f32", {"architectures": ["BertModel"]}),
    "qwen3": ("qwen3-bf16", "bf16", {}),
    "yarn": ("llama-yarn", "f32", {"rope_scaling": {**YARN, "attention_factor": YARN_SCALING}}),
    "longrope": ("llama-longrope", "f32", {}),
    "t5": ("t5", "f32", {}),
    "flan-t5": ("flan-t5-bf16", "bf16", {}),
    "umt5": ("umt5", "f32", {}),
    # The conversion writes neither bases of Gemma nor its patterns, but for the global base of Gemma 3.
    "gemma": ("gemma-bf16", "bf16", {}),
    "gemma2": ("gemma2-bf16", "bf16", {}),
    "gemma3": ("gemma3-bf16", "bf16", {}),
    "t5encoder": ("t5-encoder-bf16", "f32", {"relative_attention_max_distance": 128}),
}
TOKENIZERS = {
    "tokens-gpt2": ("gpt2", "gpt-2", "GPT2LMHeadModel"),
    "tokens-llama3": ("llama3", "llama-bpe", "LlamaForCausalLM"),
    "tokens-qwen2": ("qwen2", "qwen2", "Qwen2ForCausalLM"),
    "tokens-llama": ("llama", None, "LlamaForCausalLM"),  # tokenizer.model
    "tokens-t5": ("t5", None, "T5ForConditionalGeneration"),  # spiece.model
    "tokens-bert": ("bert", "default", "BertModel"),
    "tokens-bert-cased": ("bert-cased", "default", "BertModel"),
}

# Files that are made of others: matrices whose rows are whole blocks become quantised, by turns, and
# the others F16.
QUANTISED = {
    "llama-q8_0": ("llama", ("Q8_0",)),
    "qwen2-q4_0": ("qwen2", ("Q4_0",)),  # whose embedding is the matrix of the logits
    "qwen3-q": ("qwen3", ("Q4_0", "Q8_0")),
}

# Types of blocks, and the bytes of a block where scales and offsets in F16 are.
BLOCKS = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "IQ4_NL": (0,),
    "IQ4_XS": (0,), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
}  # fmt: skip

# 50 tokens: two that are unused, the end, letters, a space, and what merges make.
LETTERS = [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["\u0120", "."]
MERGES = ["t h", "th e", "\u0120 the", "\u0120 a", "i n", "e r", "a n", "an d", "\u0120 and", "o n"]


def words():
    """The tokens of the complete file, and their types."""
    tokens = ["[PAD0]", "[PAD1]", "<|endoftext|>", *LETTERS]
    tokens += [merge.replace(" ", "") for merge in MERGES]
    types = [5, 5, 3] + [1] * (len(tokens) - 3)
    while len(tokens) < 50:
        types.append(5)
        tokens.append(f"[PAD{len(tokens)}]")
    return tokens, types


def count_tokens(directory):
    """How many tokens a copy of a tokenizer's directory has.

    Of tokenizer.model the conversion does not see which pieces are special or of users, and of
    vocab.txt not whether it has capitals; it finds that in what transformers saves, as models on
    the hub have it. Those of T5 have spiece.model alone.
    """
    if (directory / "tokenizer.json").exists():
        tokens = json.loads((directory / "tokenizer.json").read_text())
        added = {t["content"]: 0 for t in tokens["added_tokens"]}
        return len({**tokens["model"]["vocab"], **added})
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory)
    if (directory / "spiece.model").exists():
        return len(tokenizer)
    tokenizer.save_pretrained(directory)
    path = directory / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return len(tokenizer)


def find_class(convert, architecture):
    """The class of the conversion; newer ones import it when it is asked for."""
    if hasattr(convert, "get_model_class"):
        return convert.get_model_class(architecture)
    return convert.ModelBase.from_model_architecture(
        architecture, model_type=convert.ModelType.TEXT
    )


def add_factors(model):
    """The factors of longrope, which the conversion writes of Phi-3 alone, as it does there."""
    import torch

    scaling = model.hparams["rope_scaling"]
    original = model.hparams["original_max_position_embeddings"]
    stretch = model.hparams["max_position_embeddings"] / original
    model.gguf_writer.add_rope_scaling_orig_ctx_len(original)
    model.gguf_writer.add_rope_scaling_attn_factors(
        math.sqrt(1 + math.log(stretch) / math.log(original))
    )
    model.generate_extra_tensors = lambda: [
        (f"rope_factors_{which}.weight", torch.tensor(scaling[f"{which}_factor"]))
        for which in ("long", "short")
    ]
    others = model.modify_tensors
    model.modify_tensors = lambda data, name, bid: (
        [(name, data)] if name.startswith("rope_factors") else others(data, name, bid)
    )


def convert_one(convert, source, out, kind, changes, vocabulary):
    """Run the conversion on a copy of a directory."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "model"
        copy.mkdir()
        for path in source.iterdir():
            if path.suffix in (".json", ".safetensors", ".model", ".txt") and not path.name.startswith("expected"):
                shutil.copy(path, copy)
        config = copy / "config.json"
        known = json.loads(config.read_text()) if config.exists() else {}
        config.write_text(json.dumps({**known, **changes}))
        architecture = {**known, **changes}["architectures"][0]
        if known.get("model_type") == "gemma3_text":  # it counts tokens
            vocabulary_of = {"model": {"vocab": {str(i): i for i in range(known["vocab_size"])}},
                             "added_tokens": []}
            (copy / "tokenizer.json").write_text(json.dumps(vocabulary_of))
        cls = find_class(convert, architecture)
        names = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "bf16": "MOSTLY_BF16"}
        ftype = getattr(convert.gguf.LlamaFileType, names[kind])
        model = cls(copy, ftype, out, model_name=out.stem)
        # It maps as many layers of a decoder as the encoder has, but writes how many there are.
        layers = max(model.block_count, model.hparams.get("num_decoder_layers") or 0)
        model.tensor_map = convert.gguf.get_tensor_name_map(model.model_arch, layers)
        if "short_factor" in (known.get("rope_scaling") or {}):
            add_factors(model)
        if known.get("model_type") == "gemma3_text":
            # What llama.cpp reads where it is there, and the conversion leaves to defaults.
            model.gguf_writer.add_sliding_window_pattern(3)
            model.gguf_writer.add_rope_freq_base_swa(50.0)
        model.write_vocab() if vocabulary else model.write()


def quantise(gguf, source, out, kinds):
    """A file with blocks, and `out`-f32 with the floats that the package makes of these."""
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field("general.architecture").contents()
    wide = out.with_name(f"{out.stem}-f32.gguf")
    writers = [gguf.GGUFWriter(path, architecture) for path in (out, wide)]
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        of = field.types[1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        for writer in writers:
            writer.add_key_value(field.name, field.contents(), field.types[0], of)
    turn = 0
    for tensor in reader.tensors:
        name, data, kind = tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type), "F32"
        if data.ndim == 2 and "rel_b" not in name:
            kind = "F16" if data.shape[1] % 32 else kinds[turn % len(kinds)]
            turn += kind != "F16"
        kind = gguf.GGMLQuantizationType[kind]
        blocks = gguf.quantize(data, kind)
        writers[0].add_tensor(name, blocks, raw_dtype=kind)
        writers[1].add_tensor(name, gguf.dequantize(blocks, kind))
    for writer in writers:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def write_blocks(gguf, out):
    """Blocks of random bytes with finite scales, and what the package makes of them."""
    import numpy as np

    rng = np.random.default_rng(1)
    with out.open("w") as file:
        for name, halves in BLOCKS.items():
            kind = gguf.GGMLQuantizationType[name]
            blocks = rng.integers(0, 256, (2, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
            for at in halves:
                blocks[:, at : at + 2] = rng.normal(0, 0.01, (2, 1)).astype("<f2").view(np.uint8)
            for block, floats in zip(blocks, gguf.dequantize(blocks, kind), strict=True):
                words = (f"{word:08x}" for word in floats.astype("<f4").view("<u4"))
                print(name, block.tobytes().hex(), "".join(words), file=file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama-cpp", type=Path, help="sources of llama.cpp; else quantised files alone")
    parser.add_argument("--out", type=Path, default=DATA / "gguf")
    parser.add_argument("--only", nargs="*", help="names of files; else all")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.llama_cpp:
        import gguf

        for name, (source, kinds) in QUANTISED.items():
            quantise(gguf, args.out / f"{source}.gguf", args.out / f"{name}.gguf", kinds)
        write_blocks(gguf, args.out.parent / "blocks.txt")
        return
    sys.path.insert(0, str(args.llama_cpp.resolve()))
    import convert_hf_to_gguf as convert

    def wanted(table):
        return {k: v for k, v in table.items() if args.only is None or k in args.only}

    for name, (_, pre, architecture) in wanted(TOKENIZERS).items():
        # The conversion knows tokenizers by what they make of a text, which these do not.
        cls = find_class(convert, architecture)
        cls.get_vocab_base_pre = lambda *_, pre=pre: pre
        with tempfile.TemporaryDirectory() as scratch:
            both = Path(scratch) / "text"
            shutil.copytree(DATA / "text" / TOKENIZERS[name][0], both)
            # Two ids more than tokens, as models have them for the sake of their shape.
            config = {
                "architectures": [architecture],
                "vocab_size": count_tokens(both) + 2,
                **dict.fromkeys(("hidden_size", "n_embd", "n_ctx", "d_model", "d_ff", "d_kv"), 8),
                **dict.fromkeys(("num_attention_heads", "n_head", "num_heads", "n_layer"), 1),
                **dict.fromkeys(("num_hidden_layers", "decoder_start_token_id"), 1),
                "relative_attention_num_buckets": 8,
                "intermediate_size": 8,
                "max_position_embeddings": 8,
                "layer_norm_epsilon": 1e-5,
                "layer_norm_eps": 1e-5,
            }
            if architecture != "BertModel":  # whose configurations have none
                config.update(bos_token_id=0, eos_token_id=1)
            convert_one(convert, both, args.out / f"{name}.gguf", "f32", config, True)

    def no_vocabulary(self):
        if self.model_arch == convert.gguf.MODEL_ARCH.GPT2:
            tokens, types = words()
            self.gguf_writer.add_tokenizer_model("gpt2")
            self.gguf_writer.add_tokenizer_pre("gpt-2")
            self.gguf_writer.add_token_list(tokens)
            self.gguf_writer.add_token_types(types)
            self.gguf_writer.add_token_merges(MERGES)
        else:
            self._set_vocab_none()
        special = convert.gguf.SpecialVocab(self.dir_model, load_merges=False)
        special.add_to_gguf(self.gguf_writer)

    for name, (directory, kind, changes) in wanted(MODELS).items():
        architecture = json.loads((DATA / "models" / directory / "config.json").read_text())
        architecture = changes.get("architectures", architecture["architectures"])[0]
        cls = find_class(convert, architecture)
        cls.set_vocab = no_vocabulary
        out = args.out / f"{name}.gguf"
        convert_one(convert, DATA / "models" / directory, out, kind, changes, False)
    for path in sorted(args.out.iterdir()):
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
