# SPDX-License-Identifier: MIT
"""Tiny random models for make_golden.py and compare_models.py, and what PyTorch computes of them."""

import copy
import json
import math
import struct
from pathlib import Path

import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parent.parent
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}

BEAM_SETTINGS = [
    {"num_beams": 4, "length_penalty": 1.0, "early_stopping": False},
    {"num_beams": 4, "length_penalty": 0.6, "early_stopping": True},
    {"num_beams": 4, "length_penalty": 2.0, "early_stopping": "never"},
    {"num_beams": 3, "length_penalty": 0.0, "early_stopping": False},
    {"num_beams": 2, "length_penalty": -0.5, "early_stopping": "never"},
    {"num_beams": 4, "length_penalty": 1.0, "early_stopping": False, "no_repeat_ngram_size": 2},
    {"num_beams": 4, "length_penalty": 1.0, "early_stopping": True, "repetition_penalty": 1.3},
    {"num_beams": 4, "length_penalty": 1.0, "early_stopping": False, "min_length": 7},
]
# With tied embeddings a random model repeats its last token: its embedding comes through all the
# residuals.  Norms with weights of random sign scramble it on the way.
EMBEDDING_STD, BRANCH_GAIN, LAST_NORM_GAIN = 0.5, 0.6, 3.0
GREEDY_SETTINGS = [{}, {"no_repeat_ngram_size": 2}, {"repetition_penalty": 1.5}, {"min_length": 7}]


# --------------------------------------------------------------------------------- checkpoints


def normal(rng, *shape, std):
    return torch.randn(*shape, generator=rng) * std


def weights(config, rng, logits_bias, stored_positions):
    """Random tensors by name, scaled so that outputs are varied and some sentences end early."""
    d = config["d_model"]
    source, target = config["vocab_size"], config.get("decoder_vocab_size", config["vocab_size"])
    t = {}

    def linear(name, out, inner, gain=1.3):
        t[name + ".weight"] = normal(rng, out, inner, std=gain / math.sqrt(inner))
        t[name + ".bias"] = normal(rng, out, std=0.05)

    def norm(name):
        signs = torch.randint(0, 2, (d,), generator=rng) * 2.0 - 1
        t[name + ".weight"] = signs * (1 + normal(rng, d, std=0.15))
        t[name + ".bias"] = normal(rng, d, std=0.05)

    embedding = EMBEDDING_STD if config["scale_embedding"] else EMBEDDING_STD * math.sqrt(d)
    if config.get("share_encoder_decoder_embeddings", True):
        t["model.shared.weight"] = normal(rng, source, d, std=embedding)
    else:
        t["model.encoder.embed_tokens.weight"] = normal(rng, source, d, std=embedding)
        t["model.decoder.embed_tokens.weight"] = normal(rng, target, d, std=embedding)
    if config.get("tie_word_embeddings") is False:
        t["lm_head.weight"] = normal(rng, target, d, std=EMBEDDING_STD)
    for side in ("encoder", "decoder"):
        if stored_positions:
            t[f"model.{side}.embed_positions.weight"] = normal(
                rng, config["max_position_embeddings"], d, std=0.7)
        for i in range(config[side + "_layers"]):
            prefix = f"model.{side}.layers.{i}."
            for attention in ("self_attn", "encoder_attn")[:1 + (side == "decoder")]:
                for part in ("q_proj", "k_proj", "v_proj"):
                    linear(prefix + attention + "." + part, d, d)
                linear(prefix + attention + ".out_proj", d, d, BRANCH_GAIN)
                norm(prefix + attention + "_layer_norm")
            linear(prefix + "fc1", config[side + "_ffn_dim"], d)
            linear(prefix + "fc2", d, config[side + "_ffn_dim"], BRANCH_GAIN)
            norm(prefix + "final_layer_norm")
    # Logits of a usual size, whatever the embedding's.
    t[f"model.decoder.layers.{config['decoder_layers'] - 1}.final_layer_norm.weight"] *= (
        LAST_NORM_GAIN / (embedding * math.sqrt(d)))
    if logits_bias:
        t["final_logits_bias"] = normal(rng, 1, target, std=0.2)
    return t


def write_safetensors(path, tensors, dtype, metadata):
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        blob = tensors[name].contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensors[name].shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


# --------------------------------------------------------------------- the paper's family


class Paper:
    """Post-norm, ReLU, interleaved sinusoids; the tensors by name, as in the file, in double."""

    def __init__(self, config, tensors):
        self.c, self.t = config, tensors

    def linear(self, name, x):
        return F.linear(x, self.t[name + ".weight"], self.t[name + ".bias"])

    def norm(self, name, x):
        eps = self.c["layer_norm_epsilon"]
        return F.layer_norm(x, x.shape[-1:], self.t[name + ".weight"], self.t[name + ".bias"], eps)

    def attention(self, name, heads, x, memory, causal):
        def split(y):
            return y.unflatten(1, (heads, -1)).transpose(0, 1)
        q = split(self.linear(name + ".q_proj", x))
        k, v = (split(self.linear(f"{name}.{p}_proj", memory)) for p in "kv")
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[2])
        if causal:
            scores = scores + torch.full(scores.shape[1:], -math.inf).triu(1)
        weights = scores.softmax(dim=-1)
        return self.linear(name + ".out_proj", (weights @ v).transpose(0, 1).flatten(1)), weights

    def embed(self, ids):
        table, d = self.t["model.shared.weight"], self.c["d_model"]
        rate = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        angle = torch.arange(len(ids), dtype=torch.float64)[:, None] * rate
        positions = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1).float()
        return table[torch.tensor(ids)] * math.sqrt(d) + positions

    def feed_forward(self, prefix, x):
        y = self.linear(prefix + "fc2", F.relu(self.linear(prefix + "fc1", x)))
        return self.norm(prefix + "final_layer_norm", x + y)

    def encode(self, source):
        x = self.embed(source)
        for i in range(self.c["encoder_layers"]):
            p = f"model.encoder.layers.{i}."
            y, _ = self.attention(p + "self_attn", self.c["encoder_attention_heads"], x, x, False)
            x = self.feed_forward(p, self.norm(p + "self_attn_layer_norm", x + y))
        return x

    def decode(self, memory, target):
        """Logits [T, V] and cross-attention [layers, heads, T, S]."""
        x, cross, heads = self.embed(target), [], self.c["decoder_attention_heads"]
        for i in range(self.c["decoder_layers"]):
            p = f"model.decoder.layers.{i}."
            y, _ = self.attention(p + "self_attn", heads, x, x, True)
            x = self.norm(p + "self_attn_layer_norm", x + y)
            y, weights = self.attention(p + "encoder_attn", heads, x, memory, False)
            x = self.feed_forward(p, self.norm(p + "encoder_attn_layer_norm", x + y))
            cross.append(weights)
        head = self.t.get("lm_head.weight", self.t["model.shared.weight"])
        return F.linear(x, head), torch.stack(cross)

    def greedy(self, source, settings):
        assert not settings
        memory, ids = self.encode(source), [self.c["decoder_start_token_id"]]
        while len(ids) < self.c["max_length"] and ids[-1] != self.c["eos_token_id"]:
            ids.append(int(self.decode(memory, ids)[0][-1].argmax()))
        return ids[1:]


# ------------------------------------------------------------------------------- transformers


def in_double(model, *arguments, **options):
    """model(...) while the default type is double, in which masks are made."""
    torch.set_default_dtype(torch.float64)
    try:
        return model(*arguments, **options)
    finally:
        torch.set_default_dtype(torch.float32)


def from_pretrained(kind, directory):
    """The model of a directory, in float; every tensor of the file must have found its place."""
    model, info = kind.from_pretrained(directory, torch_dtype=torch.float32,
                                       attn_implementation="eager", output_loading_info=True)
    assert not info["unexpected_keys"] and not info["mismatched_keys"], info
    return model.eval()


def randomize(model, rng, last_norm):
    """Random weights like those of weights(), whatever the family calls them."""
    from transformers.pytorch_utils import Conv1D
    config = model.config.get_text_config()
    d = config.hidden_size
    embedding = EMBEDDING_STD * (1 if getattr(config, "scale_embedding", False)
                                 else math.sqrt(d))
    for name, module in model.named_modules():
        for part, p in module.named_parameters(recurse=False):
            if isinstance(module, torch.nn.Embedding):
                positions = "position" in name or name.endswith("wpe")
                std = 0.7 if positions else embedding
            elif p.dim() == 2:
                inner = p.shape[0 if isinstance(module, Conv1D) else 1]
                last = name.split(".")[-1] in ("out_proj", "fc2", "c_proj", "o", "wo", "o_proj",
                                                "down_proj")
                std = (BRANCH_GAIN if last else 1.3) / math.sqrt(inner)
            else:
                std = 0.05
            p.data = normal(rng, *p.shape, std=std)
            if p.dim() == 1 and part == "weight":
                signs = torch.randint(0, 2, p.shape, generator=rng) * 2.0 - 1
                p.data = signs * (1 + 3 * p.data)
    # norms of Gemma add 1 to their weights
    less = 1 if model.config.model_type.startswith("gemma") else 0
    if last_norm:
        weight = model.get_submodule(last_norm).weight
        weight.data *= LAST_NORM_GAIN / (embedding * math.sqrt(d))
    for module in model.modules() if less else ():
        if type(module).__name__.endswith("RMSNorm"):
            module.weight.data -= less



class Marian:
    def __init__(self, directory):
        from transformers import GenerationConfig, MarianConfig, MarianMTModel
        from safetensors.torch import load_file
        config = MarianConfig.from_pretrained(directory, attn_implementation="eager")
        if config.share_encoder_decoder_embeddings:
            self.model = from_pretrained(MarianMTModel, directory)
        else:
            # from_pretrained makes the decoder's table as large as the encoder's.
            config.vocab_size, size = config.decoder_vocab_size, config.vocab_size
            self.model = MarianMTModel(config)
            self.model.model.encoder.embed_tokens = torch.nn.Embedding(size, config.d_model)
            state = {n: t.float() for n, t in load_file(directory / "model.safetensors").items()}
            missing, unexpected = self.model.load_state_dict(state, strict=False)
            assert not unexpected and set(missing) <= {
                "lm_head.weight", "model.encoder.embed_positions.weight",
                "model.decoder.embed_positions.weight"}, (missing, unexpected)
            self.model.tie_weights()
            self.model.generation_config = GenerationConfig.from_model_config(
                MarianConfig.from_pretrained(directory))
        self.finish()
        # The beam search of 4.51 divides by the source vocabulary; make it the target's.
        self.model.config.vocab_size = self.model.config.decoder_vocab_size

    def finish(self):
        self.model.eval()
        self.exact = copy.deepcopy(self.model).double()
        eos = self.model.generation_config.eos_token_id
        self.eos = eos if isinstance(eos, list) else [eos]

    def encode(self, source):
        encoder = self.exact.get_encoder()
        return in_double(encoder, torch.tensor([source])).last_hidden_state[0]

    def forward(self, source, target):
        out = in_double(self.exact, input_ids=torch.tensor([source]),
                        decoder_input_ids=torch.tensor([target]),
                        attention_mask=torch.ones(1, len(source), dtype=torch.long),
                        output_attentions=True)
        return out.logits[0], torch.stack(out.cross_attentions)[:, 0]

    def generate(self, source, **settings):
        return self.model.generate(
            torch.tensor([source]), attention_mask=torch.ones(1, len(source), dtype=torch.long),
            do_sample=False, return_dict_in_generate=True, output_scores=True, **settings)

    def cut(self, row):
        """Without the start token and the filling after the end."""
        ids = row.tolist()[1:]
        for i, token in enumerate(ids):
            if token in self.eos:
                return ids[:i + 1]
        return ids

    def greedy(self, source, settings):
        return self.cut(self.generate(source, num_beams=1, **settings).sequences[0])

    def beams(self, source, settings):
        out = self.generate(source, num_return_sequences=settings["num_beams"], **settings)
        return [self.cut(s) for s in out.sequences], out.sequences_scores.tolist()


class Seq2Seq(Marian):
    """Any encoder-decoder that transformers knows."""

    def __init__(self, directory):
        from transformers import AutoModelForSeq2SeqLM
        self.model = from_pretrained(AutoModelForSeq2SeqLM, directory)
        self.finish()


class Decoder(Marian):
    """A decoder alone: a prompt is continued."""

    def __init__(self, directory):
        from transformers import AutoModelForCausalLM
        self.model = from_pretrained(AutoModelForCausalLM, directory)
        self.finish()

    def logits(self, ids):
        return in_double(self.exact, torch.tensor([ids])).logits[0]

    def generate(self, source, **settings):
        self.prompt = len(source)
        return super().generate(source, **settings)

    def cut(self, row):
        return super().cut(row[self.prompt - 1:])


# ----------------------------------------------------------------------------- expected values


def numbers(tensor):
    """Nested lists of floats that f32 reads back exactly."""
    if tensor.dim() == 0:
        return float(f"{tensor.item():.9g}")
    return [numbers(t) for t in tensor]


@torch.no_grad()
def expect(reference, config, rng, lengths, forward, least=0):
    """`forward(source, target)` gives logits and cross-attention of a whole target.  Tokens of the
    given targets are at least `least`: M2M100 counts positions without padding, but not when it
    decodes step by step."""
    target_vocabulary = config.get("decoder_vocab_size", config["vocab_size"])
    eos = config["eos_token_id"]
    eos = eos[0] if isinstance(eos, list) else eos
    start = config["decoder_start_token_id"]
    cases = []
    sources = []
    for length in lengths:
        source = torch.randint(3, config["vocab_size"] - 3, (length,), generator=rng).tolist()
        source[-1] = eos
        sources.append(source)
    if not is_varied([reference.greedy(source, {}) for source in sources]):
        return None
    for source in sources:
        target = [start] + torch.randint(least, target_vocabulary, (7,), generator=rng).tolist()
        case = {"source": source, "target": target, "encoder": numbers(reference.encode(source)),
                "logits": numbers(forward(source, target)[0]), "greedy": [], "beams": []}
        for settings in GREEDY_SETTINGS if hasattr(reference, "beams") else [{}]:
            ids = reference.greedy(source, settings)
            cross = forward(source, [start] + ids[:-1])[1]
            case["greedy"].append({"settings": settings, "ids": ids,
                                   "attention": numbers(cross) if not settings else None})
        for settings in BEAM_SETTINGS if hasattr(reference, "beams") else []:
            ids, scores = reference.beams(source, settings)
            # Attention of the best and the worst: their beams have a history of moves.
            cross = [numbers(forward(source, [start] + ids[i][:-1])[1])
                     if settings is BEAM_SETTINGS[0] else None for i in (0, -1)]
            case["beams"].append({"settings": settings, "ids": ids, "scores": scores,
                                  "attention": cross})
        cases.append(case)
    return cases


def summary(name, directory, seed, cases):
    size = sum(f.stat().st_size for f in directory.iterdir())
    greedy = [len(c["greedy"][0]["ids"]) for c in cases]
    distinct = len({t for c in cases for t in c["greedy"][0]["ids"]})
    print(f"{name:20}{size:9} bytes, seed {seed}; greedy lengths {greedy}, "
          f"{distinct} distinct tokens")


def is_varied(rows):
    """Many different tokens, and both ends: a sentence that stops early and one that does not."""
    lengths = [len(r) for r in rows]
    return len({t for r in rows for t in r}) >= 10 and 3 <= min(lengths) < max(lengths)


def find_seed(once, name, *arguments, **options):
    """The first seed whose results are varied."""
    for seed in range(200):
        if once(name, seed, *arguments, **options):
            return
    raise ValueError("no seed gives varied results")
