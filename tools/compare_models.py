#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do our models compute what transformers computes, also where sizes are odd?

Development only.  For each family some random configurations (widths, heads, heads that share keys,
vocabularies, layers), each saved as transformers saves a folder, with random weights.  Compared are
logits against transformers in double precision, and the tokens of greedy and beam search.  A search
may choose otherwise only where the two best continuations are equal within the error of float.
Exit code 1 if anything differs.

    pip install torch transformers
    ISOBIT_LIBRARY=build/lib/libisobit.so PYTHONPATH=python tools/compare_models.py --count 10
"""

import argparse
import ctypes
import random
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
import transformers

import golden_models
import isobit
from isobit import _c

# Times the largest logit, where that is above 1; or four times what transformers itself is off in
# float: that is more where scores of attention are large, as T5's may be.
LOGITS = 2e-5
IDS = {"bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}
SEQ2SEQ = ("marian", "bart", "mbart", "pegasus", "m2m_100", "t5", "mt5")
DECODERS = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gemma2", "gemma3_text",
            "opt")
ENCODERS = ("bert", "roberta", "distilbert", "t5-encoder")


def sizes(r):
    """A width that its heads divide, and what goes with it."""
    heads = r.choice([1, 2, 3, 4, 5, 6, 8])
    width = r.choice([4, 6, 8, 10, 12, 16, 20, 32, 40, 64])
    return heads, width, heads * width


def scaling_of(r, width):
    """What stretches rotary embeddings of 64 positions, in the words of transformers 4."""
    factors = [r.uniform(1, 9) for _ in range(width)]
    return r.choice([
        None, {"rope_type": "linear", "factor": 3.0}, {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 20},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
         "beta_fast": 3.0, "beta_slow": 0.5, "attention_factor": 0.9},
        {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8,
         "mscale": 1.0, "mscale_all_dim": 0.5},
        {"rope_type": "longrope", "short_factor": factors[:width // 2],
         "long_factor": factors[width // 2:width // 2 * 2]}])


def config_of(family, r):
    heads, width, d = sizes(r)
    common = dict(IDS, model_type=family.split("-")[0], vocab_size=r.randrange(11, 400))
    layers, ffn = r.randrange(1, 4), r.randrange(3, 300)
    act = r.choice(["relu", "gelu", "silu", "gelu_new"])
    if family in ("t5", "mt5", "t5-encoder"):
        return dict(common, d_model=r.randrange(2, 200), d_kv=width, num_heads=heads, d_ff=ffn,
                    num_layers=layers,  # transformers 5.24 fails with more layers in the decoder
                    num_decoder_layers=r.randrange(1, layers + 1),
                    decoder_start_token_id=1, relative_attention_num_buckets=r.choice([8, 32]),
                    relative_attention_max_distance=r.choice([40, 128]),
                    tie_word_embeddings=r.random() < 0.5,
                    feed_forward_proj=r.choice(["relu", "gated-gelu", "gated-silu"]))
    if family in SEQ2SEQ:
        return dict(common, d_model=d, encoder_layers=layers, decoder_layers=r.randrange(1, 4),
                    encoder_attention_heads=heads, encoder_ffn_dim=ffn,
                    decoder_attention_heads=r.choice([h for h in range(1, 9) if d % h == 0]),
                    decoder_ffn_dim=r.randrange(3, 300), max_position_embeddings=64,
                    activation_function=act, scale_embedding=r.random() < 0.5,
                    decoder_start_token_id=2, forced_eos_token_id=None)
    if family == "gpt2":
        return dict(common, n_embd=d, n_head=heads, n_layer=layers, n_positions=64,
                    n_inner=r.choice([None, ffn]), activation_function=act)
    if family == "opt":
        return dict(common, hidden_size=d, num_attention_heads=heads, num_hidden_layers=layers,
                    ffn_dim=ffn, max_position_embeddings=64, activation_function=act,
                    word_embed_proj_dim=d, enable_bias=r.random() < 0.7,
                    tie_word_embeddings=r.random() < 0.7)
    if family in DECODERS:
        keys = r.choice([k for k in range(1, heads + 1) if heads % k == 0])
        config = dict(common, hidden_size=d, num_attention_heads=heads, num_key_value_heads=keys,
                      num_hidden_layers=layers, intermediate_size=ffn, max_position_embeddings=64,
                      hidden_act=act, rope_theta=r.choice([100.0, 10000.0, 500000.0]),
                      tie_word_embeddings=r.random() < 0.5)
        if family == "llama":
            config["rope_scaling"] = scaling_of(r, width)
            if (config["rope_scaling"] or {}).get("rope_type") == "longrope":
                config["original_max_position_embeddings"] = 64
                config["max_position_embeddings"] = 320
            config["attention_bias"] = r.random() < 0.5
            config["mlp_bias"] = r.random() < 0.5
        elif family == "phi3":
            part = r.choice([p for p in (1.0, 0.75, 0.5, 0.25)
                             if int(width * p) > 0 and int(width * p) % 2 == 0])
            config["partial_rotary_factor"] = part
            config["sliding_window"] = r.choice([None, 3, 8, 20])
            config["original_max_position_embeddings"] = 64
            if r.random() < 0.5:
                pairs = int(width * part) // 2
                config["rope_scaling"] = {
                    "type": "longrope", "short_factor": [r.uniform(1, 9) for _ in range(pairs)],
                    "long_factor": [r.uniform(1, 9) for _ in range(pairs)]}
                config["max_position_embeddings"] = 320
        elif family == "gemma":
            config["head_dim"] = r.choice([width, 2 * width])
            config["attention_bias"] = r.random() < 0.5
            if act == "gelu":  # transformers 4.51 takes it at its word
                config["hidden_act"] = "gelu_pytorch_tanh"
        elif family in ("gemma2", "gemma3_text"):
            del config["hidden_act"]
            # transformers 5.24 takes "gelu" at its word in these
            config["hidden_activation"] = "gelu_pytorch_tanh" if act == "gelu" else act
            config["head_dim"] = r.choice([width, 2 * width])
            config["attention_bias"] = r.random() < 0.5
            config["query_pre_attn_scalar"] = r.randrange(4, 40)
            config["sliding_window"] = r.choice([2, 3, 8, 20, 100])
            if r.random() < 0.5:
                config["layer_types"] = [r.choice(["full_attention", "sliding_attention"])
                                         for _ in range(layers)]
            config["final_logit_softcapping"] = r.choice([None, 2.0, 30.0])
            if family == "gemma2":
                config["attn_logit_softcapping"] = r.choice([None, 0.5, 2.0, 50.0])
            if family == "gemma3_text":
                config["sliding_window_pattern"] = r.choice([1, 2, 3, 6])
                config["rope_local_base_freq"] = r.choice([50.0, 10000.0])
                config["rope_scaling"] = r.choice([None, {"rope_type": "linear", "factor": 8.0}])
        elif family == "mistral":
            config["sliding_window"] = r.choice([None, 3, 8, 20])
            config["head_dim"] = r.choice([width, 2 * width])
        else:
            window, start = r.choice([0, 4, 15]), 0
            if transformers.__version__[0] != "4":  # which gives all layers a window
                start = r.randrange(0, 3)
            config["use_sliding_window"] = window > 0
            config["sliding_window"] = window or None
            config["max_window_layers"] = start
            if family == "qwen3":
                config["head_dim"] = r.choice([width, 2 * width])
                config["attention_bias"] = r.random() < 0.5
        return config
    if family == "distilbert":
        return dict(common, dim=d, n_heads=heads, n_layers=layers, hidden_dim=ffn,
                    max_position_embeddings=64, activation=r.choice(["relu", "gelu"]))
    return dict(common, hidden_size=d, num_attention_heads=heads, num_hidden_layers=layers,
                intermediate_size=ffn, max_position_embeddings=66 if family == "roberta" else 64,
                hidden_act="gelu", type_vocab_size=r.choice([1, 2]))


def our_logits(model, source, target):
    """All logits of a target, or of a sequence where there is one stack."""
    lib, error = model._lib, _c.iso_error()
    ids = np.array(target, np.uint32)
    out = np.empty((len(ids), model.info.target_vocabulary), np.float32)
    if source is None:
        status = lib.iso_token_logits_f32(
            ctypes.c_void_p(out.ctypes.data), model._handle, ctypes.c_void_p(ids.ctypes.data),
            ctypes.c_size_t(len(ids)), None, ctypes.byref(error))
    else:
        src = np.array(source, np.uint32)
        status = lib.iso_logits_f32(
            ctypes.c_void_p(out.ctypes.data), model._handle, ctypes.c_void_p(src.ctypes.data),
            ctypes.c_size_t(len(src)), ctypes.c_void_p(ids.ctypes.data), ctypes.c_size_t(len(ids)),
            ctypes.c_int(0), None, ctypes.byref(error))
    if status:
        raise RuntimeError(error.message.decode())
    return out


def our_hidden(model, source):
    """What an encoder gives of a sequence."""
    error, ids = _c.iso_error(), np.array(source, np.uint32)
    out = np.empty((len(ids), model.info.d), np.float32)
    if model._lib.iso_encode_f32(
            ctypes.c_void_p(out.ctypes.data), model._handle, ctypes.c_void_p(ids.ctypes.data),
            ctypes.c_size_t(len(ids)), None, ctypes.byref(error)):
        raise RuntimeError(error.message.decode())
    return out


def near_tie(exact, source, ours, theirs, decoder):
    """Whether the searches part at a step whose two choices are equal within float's error."""
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), None)
    if at is None:
        return False
    with torch.no_grad():
        if decoder:
            out = golden_models.in_double(exact, torch.tensor([source + theirs[:at]]))
        else:
            start = exact.config.decoder_start_token_id
            out = golden_models.in_double(exact, input_ids=torch.tensor([source]),
                                        decoder_input_ids=torch.tensor([[start] + theirs[:at]]))
    last = out.logits[0, -1]
    return abs(float(last[ours[at]] - last[theirs[at]])) < 1e-4 * max(1.0, float(last.abs().max()))


class Comparison:
    def __init__(self, family, r, directory):
        self.family, self.r = family, r
        self.decoder, self.encoder = family in DECODERS, family in ENCODERS
        rng = torch.Generator().manual_seed(r.randrange(1 << 30))
        hidden = family == "t5-encoder"  # it has no logits
        self.output = "last_hidden_state" if hidden else "logits"
        auto = (transformers.T5EncoderModel if hidden
                else transformers.AutoModelForMaskedLM if self.encoder
                else transformers.AutoModelForCausalLM if self.decoder
                else transformers.AutoModelForSeq2SeqLM)
        self.options = config_of(family, r)
        config = transformers.AutoConfig.for_model(**self.options)
        model = auto(config) if hidden else auto.from_config(config)
        golden_models.randomize(model, rng, None)
        if not self.encoder:
            settings = dict(IDS, max_new_tokens=12)
            if not self.decoder:
                settings["decoder_start_token_id"] = config.decoder_start_token_id
            model.generation_config = transformers.GenerationConfig(**settings)
        model.save_pretrained(directory)
        self.theirs = golden_models.from_pretrained(auto, directory)
        import copy
        self.exact = copy.deepcopy(self.theirs).double()
        stretch = self.options.get("rope_scaling") or {}
        # Beyond the original positions, as transformers has it of texts that are longer than these.
        self.longer = 64 if stretch.get("type") == "longrope" and r.random() < 0.6 else 0
        self.ours = isobit.Model.load(directory, positions=200 if self.longer else 0)

    def ids(self, n, V):
        return [self.r.randrange(3, V) for _ in range(n)]

    def logits(self):
        V = self.theirs.config.vocab_size
        source, target = self.ids(self.longer + self.r.randrange(1, 30), V), self.ids(
            self.r.randrange(1, 30), V)
        if self.decoder or self.encoder:
            given = {"input_ids": source}
            found = (our_hidden(self.ours, source) if self.output != "logits"
                     else our_logits(self.ours, None, source))
        else:
            found = our_logits(self.ours, source, target)
            given = {"input_ids": source, "decoder_input_ids": target}
        given = {name: torch.tensor([value]) for name, value in given.items()}
        if not self.encoder:
            given["use_cache"] = False
        with torch.no_grad():
            wanted = getattr(golden_models.in_double(self.exact, **given), self.output)[0].numpy()
            floats = getattr(self.theirs(**given), self.output)[0].numpy()
        largest = max(1.0, float(np.abs(wanted).max()))
        return [float(np.abs(y - wanted).max()) / largest for y in (found, floats)]

    def search(self, beams):
        """"same", "tie", or a sentence."""
        source = self.ids(self.longer + self.r.randrange(1, 20), self.theirs.config.vocab_size)
        found = self.ours.generate([source], beams=beams)[0][0].ids.tolist()
        with torch.no_grad():
            out = self.theirs.generate(
                torch.tensor([source]), attention_mask=torch.ones(1, len(source), dtype=torch.long),
                num_beams=beams, do_sample=False)[0].tolist()
        out = out[len(source) if self.decoder else 1:]
        wanted = out[:out.index(2) + 1] if 2 in out else out
        if found == wanted:
            return "same"
        if near_tie(self.exact, source, found, wanted, self.decoder) or beams > 1 and any(
                near_tie(self.exact, source, found[:i], wanted[:i], self.decoder)
                for i in range(1, len(wanted))):
            return "tie"
        return f"source {source}: {found}, transformers {wanted}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10, help="configurations of each family")
    parser.add_argument("--only", help="the name of one family")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    bad = 0
    for family in SEQ2SEQ + DECODERS + ENCODERS:
        if arguments.only not in (None, family):
            continue
        worst, same, ties = 0.0, 0, 0
        for i in range(arguments.count):
            r = random.Random(f"{arguments.seed} {family} {i}")
            with tempfile.TemporaryDirectory() as directory:
                c = Comparison(family, r, Path(directory))
                for _ in range(3):
                    error, floats = c.logits()
                    worst = max(worst, error)
                    if not error <= max(LOGITS, 4 * floats):
                        bad += 1
                        print(f"{family} {i}: logits differ by {error:.3g}, those of transformers "
                              f"in float by {floats:.3g}: {c.options}")
                for beams in () if c.encoder else (1, 4):
                    said = c.search(beams)
                    same += said == "same"
                    ties += said == "tie"
                    if said not in ("same", "tie"):
                        bad += 1
                        print(f"{family} {i}, {beams} beams: {said}: {c.options}")
        print(f"{family:12}{arguments.count:4} configurations, logits within {worst:.2g}; searches: "
              f"{same} the same, {ties} parted at a tie", flush=True)
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
