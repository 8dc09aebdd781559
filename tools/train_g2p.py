#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train, export and evaluate models/g2p-en: English spelling to IPA, character by character.

The model is the Transformer of "Attention Is All You Need" (Vaswani et al. 2017): post-norm
layers, ReLU, interleaved sinusoidal positions, one embedding matrix shared by the source, the
target and the output projection.  The data is a word list (Debian's wamerican-large) pronounced
by espeak-ng, so both have to be installed for training; `--evaluate` needs neither.

    tools/train_g2p.py                  train, exporting the best checkpoint whenever it improves
    tools/train_g2p.py --evaluate       measure the exported files on the held-out words

Needs PyTorch >= 1.13 and NumPy, besides the standard library; runs on a CPU.
"""

import argparse
import collections
import hashlib
import json
import math
import os
import random
import struct
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL_TOKENS = ["<pad>", "<s>", "</s>", "<unk>"]
STRESS_MARKS = "\u02c8\u02cc"
MAX_POSITIONS = 128
MAX_LENGTH = 96
LAYER_NORM_EPSILON = 1e-6
ROOT = Path(__file__).resolve().parent.parent


# ------------------------------------------------------------------------------------- the data


def read_words(path):
    """The usable words of a word list: lower-cased, sorted, unique; letters and apostrophes."""
    text = unicodedata.normalize("NFC", Path(path).read_text(encoding="utf-8")).lower()
    return [w for w in sorted(set(text.split())) if w.replace("'", "").isalpha()]


def pronounce(words):
    """One IPA string for each word, from espeak-ng, which reads its input line by line."""
    result = subprocess.run(["espeak-ng", "-q", "--ipa", "-v", "en-us"], check=True,
                            input="\n".join(words) + "\n", stdout=subprocess.PIPE,
                            encoding="utf-8")
    lines = [unicodedata.normalize("NFC", line.strip()) for line in result.stdout.splitlines()]
    if len(lines) != len(words):
        raise SystemExit(f"espeak-ng gave {len(lines)} lines for {len(words)} words")
    return lines


def is_usable(word, ipa):
    """False for what espeak-ng says in several words, in another language, or letter by letter."""
    letters = sum(c.isalpha() for c in word)
    stresses = sum(c in STRESS_MARKS for c in ipa)
    several_words = not ipa or any(c in " ()" for c in ipa)
    spelled_out = letters > 1 and stresses >= letters
    return not several_words and not spelled_out and len(ipa) < MAX_LENGTH


def read_lexicon(args):
    """(word, ipa) pairs, sorted by word; kept in the file args.lexicon when one is given."""
    if args.lexicon and args.lexicon.exists():
        return read_pairs(args.lexicon)
    words = read_words(args.words)
    pairs = [(w, ipa) for w, ipa in zip(words, pronounce(words)) if is_usable(w, ipa)]
    if args.lexicon:
        write_pairs(args.lexicon, pairs)
    return pairs


def read_pairs(path):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]


def write_pairs(path, pairs):
    write_atomically(path, "".join(f"{word}\t{ipa}\n" for word, ipa in pairs).encode("utf-8"))


def word_hash(word):
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8"), digest_size=8).digest(), "big")


def split_lexicon(pairs, keep_possessives):
    """Training, validation and held-out pairs, by a hash of the word alone.

    5 % of the words are held out and 0.5 % are for choosing the checkpoint.  Of the training
    words that end in 's, one in keep_possessives is kept: they are cheap copies of their stems.
    """
    train, valid, heldout = [], [], []
    for word, ipa in pairs:
        h = word_hash(word)
        if h % 20 == 0:
            heldout.append((word, ipa))
        elif h % 200 == 1:
            valid.append((word, ipa))
        elif not word.endswith("'s") or h // 200 % keep_possessives == 0:
            train.append((word, ipa))
    return train, valid, heldout


def build_vocabulary(pairs):
    characters = sorted({c for word, ipa in pairs for c in word + ipa})
    return {token: i for i, token in enumerate(SPECIAL_TOKENS + characters)}


def encode(text, vocabulary):
    return [vocabulary.get(c, UNK) for c in text] + [EOS]


def make_batches(examples, batch_tokens, rng):
    """Batches of (source, target) id lists, at most batch_tokens tokens each, in random order.

    All sources of a batch have the same length, so the encoder needs no mask at all.  Targets
    are nearly the same length; their padding comes last, behind the causal mask.
    """
    groups = collections.defaultdict(list)
    for example in examples:
        groups[len(example[0])].append(example)
    batches = []
    for length in sorted(groups):
        group = sorted(groups[length], key=lambda e: len(e[1]) + 2 * rng.random())
        batch, longest = [], 0
        for example in group:
            longest = max(longest, len(example[1]))
            if batch and (len(batch) + 1) * (length + longest) > batch_tokens:
                batches.append(batch)
                batch, longest = [], len(example[1])
            batch.append(example)
        batches.append(batch)
    rng.shuffle(batches)
    return batches


def to_tensors(batch):
    """Source ids, decoder input (<s> first) and labels (</s> last, padded), each [batch, time]."""
    longest = max(len(target) for _, target in batch)
    source = torch.tensor([source for source, _ in batch])
    labels = torch.tensor([target + [PAD] * (longest - len(target)) for _, target in batch])
    start = torch.full((len(batch), 1), BOS)
    return source, torch.cat([start, labels[:, :-1]], dim=1), labels


# ------------------------------------------------------------------------------------ the model


def sinusoids(positions, width):
    """The paper's table: PE[p, 2i] = sin(p / 10000^(2i/d)), PE[p, 2i+1] = cos of the same."""
    rate = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(positions, width).float()


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def split(self, x):
        """[batch, time, width] to [batch, heads, time, width / heads]."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def keys_values(self, x):
        return self.split(self.k_proj(x)), self.split(self.v_proj(x))

    def forward(self, x, keys, values, mask=None):
        query = self.split(self.q_proj(x)) * (x.shape[2] // self.heads) ** -0.5
        scores = query @ keys.transpose(2, 3)
        if mask is not None:
            scores = scores + mask
        return self.out_proj((scores.softmax(dim=-1) @ values).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """An encoder layer, or with encoder_attention=True a decoder layer."""

    def __init__(self, width, heads, ffn, dropout, encoder_attention):
        super().__init__()
        self.dropout = dropout
        self.self_attn = Attention(width, heads)
        self.self_attn_layer_norm = nn.LayerNorm(width, eps=LAYER_NORM_EPSILON)
        if encoder_attention:
            self.encoder_attn = Attention(width, heads)
            self.encoder_attn_layer_norm = nn.LayerNorm(width, eps=LAYER_NORM_EPSILON)
        self.fc1 = nn.Linear(width, ffn)
        self.fc2 = nn.Linear(ffn, width)
        self.final_layer_norm = nn.LayerNorm(width, eps=LAYER_NORM_EPSILON)

    def add(self, norm, x, y):
        return norm(x + F.dropout(y, self.dropout, self.training))

    def forward(self, x, own, memory=None, mask=None):
        """own and memory are the (keys, values) of self-attention and encoder attention."""
        x = self.add(self.self_attn_layer_norm, x, self.self_attn(x, *own, mask))
        if memory is not None:
            x = self.add(self.encoder_attn_layer_norm, x, self.encoder_attn(x, *memory))
        return self.add(self.final_layer_norm, x, self.fc2(F.relu(self.fc1(x))))


class Stack(nn.Module):
    def __init__(self, count, *layer_arguments):
        super().__init__()
        self.layers = nn.ModuleList(Layer(*layer_arguments) for _ in range(count))


class Transformer(nn.Module):
    """The names of its parameters are those of the exported tensors, less "model."."""

    def __init__(self, vocab_size, width, heads, ffn, encoder_layers, decoder_layers, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.shared = nn.Embedding(vocab_size, width)
        self.encoder = Stack(encoder_layers, width, heads, ffn, dropout, False)
        self.decoder = Stack(decoder_layers, width, heads, ffn, dropout, True)
        self.register_buffer("positions", sinusoids(MAX_POSITIONS, width), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.shared.weight, std=width ** -0.5)

    def embed(self, ids, first=0):
        x = self.shared(ids) * math.sqrt(self.shared.embedding_dim)
        x = x + self.positions[first:first + ids.shape[1]]
        return F.dropout(x, self.dropout, self.training)

    def encode(self, source):
        """The (keys, values) of the encoder output for each decoder layer."""
        x = self.embed(source)
        for layer in self.encoder.layers:
            x = layer(x, layer.self_attn.keys_values(x))
        return [layer.encoder_attn.keys_values(x) for layer in self.decoder.layers]

    def forward(self, source, target):
        """Logits [batch, time, vocabulary] of the next token at each target position."""
        memory = self.encode(source)
        length = target.shape[1]
        mask = torch.full((length, length), -math.inf).triu(1)
        x = self.embed(target)
        for layer, layer_memory in zip(self.decoder.layers, memory):
            x = layer(x, layer.self_attn.keys_values(x), layer_memory, mask)
        return F.linear(x, self.shared.weight)

    @torch.no_grad()
    def greedy(self, source):
        """The most probable next token, again and again: id lists without <s> and </s>."""
        memory = self.encode(source)
        cache = [None] * len(memory)
        token = torch.full((len(source), 1), BOS)
        steps = []
        done = torch.zeros(len(source), dtype=torch.bool)
        while len(steps) < MAX_LENGTH and not done.all():
            x = self.embed(token, first=len(steps))
            for i, layer in enumerate(self.decoder.layers):
                new = layer.self_attn.keys_values(x)
                if cache[i] is not None:
                    new = [torch.cat(pair, dim=2) for pair in zip(cache[i], new)]
                cache[i] = new
                x = layer(x, new, memory[i])
            token = F.linear(x, self.shared.weight).argmax(dim=2)
            done |= token[:, 0] == EOS
            steps.append(token)
        rows = torch.cat(steps, dim=1).tolist()
        return [row[:row.index(EOS)] if EOS in row else row for row in rows]


# ----------------------------------------------------------------------------------- evaluation


def edit_distance(a, b):
    """Levenshtein distance over code points."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def transcribe(model, pairs, vocabulary, batch_tokens=8192):
    """A dictionary from word to the model's greedy IPA."""
    model.eval()
    symbols = {i: token for token, i in vocabulary.items()}
    by_length = collections.defaultdict(list)
    for word, _ in pairs:
        by_length[len(word)].append(word)
    result = {}
    for length, words in sorted(by_length.items()):
        size = max(1, batch_tokens // (length + 1))
        for i in range(0, len(words), size):
            part = words[i:i + size]
            rows = model.greedy(torch.tensor([encode(w, vocabulary) for w in part]))
            result.update((w, "".join(symbols[t] for t in row)) for w, row in zip(part, rows))
    return result


def score(pairs, answers):
    """(words, exact matches in %, IPA symbol error rate in %) of the answers."""
    wrong = [(answers[word], ipa) for word, ipa in pairs if answers[word] != ipa]
    errors = sum(edit_distance(answer, ipa) for answer, ipa in wrong)
    symbols = sum(len(ipa) for _, ipa in pairs)
    return len(pairs), 100 - 100 * len(wrong) / len(pairs), 100 * errors / symbols


def strip_stress(text):
    return "".join(c for c in text if c not in STRESS_MARKS)


def evaluate(directory):
    """Measure the exported files on every held-out word."""
    model, vocabulary = load_model(directory)
    pairs = read_pairs(directory / "heldout.tsv")
    start = time.monotonic()
    answers = transcribe(model, pairs, vocabulary)
    seconds = time.monotonic() - start
    unstressed = [(word, strip_stress(ipa)) for word, ipa in pairs]
    unstressed_answers = {word: strip_stress(ipa) for word, ipa in answers.items()}
    results = [
        ("all held-out words", score(pairs, answers)),
        ("without an apostrophe", score([p for p in pairs if "'" not in p[0]], answers)),
        ("with an apostrophe", score([p for p in pairs if "'" in p[0]], answers)),
        ("all, stress marks ignored", score(unstressed, unstressed_answers)),
    ]
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters} parameters; greedy search; {seconds:.1f} s")
    print(f"{'':27}{'words':>7}{'exact match':>13}{'symbol errors':>15}")
    for name, (words, exact, errors) in results:
        print(f"{name:27}{words:7}{exact:11.2f} %{errors:13.2f} %")


# --------------------------------------------------------------------------------- the exporter


def write_atomically(path, data):
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def safetensors_bytes(tensors):
    """A safetensors file of F16 tensors: header length, JSON header, data in order of name."""
    header = {"__metadata__": {"format": "pt"}}
    blobs, offset = [], 0
    for name in sorted(tensors):
        blob = tensors[name].contiguous().half().numpy().astype("<f2").tobytes()
        header[name] = {"dtype": "F16", "shape": list(tensors[name].shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(blobs)


def read_safetensors(path):
    """The tensors of a file of safetensors_bytes(), as 32-bit floats."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = (start + offset for offset in entry["data_offsets"])
            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float16)
            tensors[name] = flat.reshape(entry["shape"]).float()
    return tensors


def model_config(args, vocab_size):
    return {
        "model_type": "isobit-transformer",
        "vocab_size": vocab_size,
        "d_model": args.width,
        "encoder_layers": args.encoder_layers,
        "decoder_layers": args.decoder_layers,
        "encoder_attention_heads": args.heads,
        "decoder_attention_heads": args.heads,
        "encoder_ffn_dim": args.ffn,
        "decoder_ffn_dim": args.ffn,
        "activation_function": "relu",
        "max_position_embeddings": MAX_POSITIONS,
        "scale_embedding": True,
        "layer_norm_epsilon": LAYER_NORM_EPSILON,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "decoder_start_token_id": BOS,
        "eos_token_id": EOS,
        "unk_token_id": UNK,
        "num_beams": 1,
        "max_length": MAX_LENGTH,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
    }


def write_json(path, value):
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    write_atomically(path, text.encode("utf-8"))


def write_static_files(args, vocabulary, heldout):
    write_json(args.out / "config.json", model_config(args, len(vocabulary)))
    write_json(args.out / "vocab.json", vocabulary)
    write_json(args.out / "tokenizer_config.json", {
        "tokenizer_class": "isobit-characters", "lowercase": True, "split_words": True})
    write_pairs(args.out / "heldout.tsv", heldout)


def export_weights(directory, state):
    tensors = {"model." + name: tensor for name, tensor in state.items()}
    write_atomically(directory / "model.safetensors", safetensors_bytes(tensors))


def load_model(directory):
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    vocabulary = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    model = Transformer(config["vocab_size"], config["d_model"],
                        config["encoder_attention_heads"], config["encoder_ffn_dim"],
                        config["encoder_layers"], config["decoder_layers"])
    tensors = read_safetensors(directory / "model.safetensors")
    model.load_state_dict({name[len("model."):]: t for name, t in tensors.items()})
    return model, vocabulary


# ------------------------------------------------------------------------------------- training


def learning_rate(args, step, progress):
    """The paper's schedule times args.lr_scale, times a linear fall to 0 over the last part."""
    paper = args.width ** -0.5 * min(step ** -0.5, step * args.warmup ** -1.5)
    return args.lr_scale * paper * min(1.0, (1 - progress) / args.decay)


def endless_batches(examples, args, rng):
    while True:
        yield from make_batches(examples, args.batch_tokens, rng)


def validate(probe, states, valid, vocabulary):
    """The best of the candidate states by exact matches on the validation words, and all scores.

    Candidates are compared, and the best one returned, with their weights rounded to F16; probe
    is the model that runs them.
    """
    best, scores = None, []
    for state in states:
        rounded = {name: tensor.half().float() for name, tensor in state.items()}
        probe.load_state_dict(rounded)
        _, exact, errors = score(valid, transcribe(probe, valid, vocabulary))
        scores.append((exact, -errors))
        if max(scores) == scores[-1]:
            best = rounded
    return best, scores


def train(args):
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    pairs = read_lexicon(args)
    train_pairs, valid, heldout = split_lexicon(pairs, args.keep_possessives)
    vocabulary = build_vocabulary(pairs)
    args.out.mkdir(parents=True, exist_ok=True)
    write_static_files(args, vocabulary, heldout)
    examples = [(encode(w, vocabulary), encode(ipa, vocabulary)) for w, ipa in train_pairs]
    sizes = (len(vocabulary), args.width, args.heads, args.ffn,
             args.encoder_layers, args.decoder_layers)
    model = Transformer(*sizes, dropout=args.dropout)
    probe = Transformer(*sizes)
    if args.init:
        model.load_state_dict(load_model(args.init)[0].state_dict())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    steps = args.epochs * len(make_batches(examples, args.batch_tokens, random.Random(0)))
    print(f"{len(pairs)} usable words: {len(train_pairs)} to train on, {len(valid)} to validate, "
          f"{len(heldout)} held out; {len(vocabulary)} tokens; "
          f"{sum(p.numel() for p in model.parameters())} parameters; {steps} steps", flush=True)

    batches = endless_batches(examples, args, rng)
    snapshots = collections.deque(maxlen=args.average)
    best = (-1.0, 0.0)
    losses = []
    start = time.monotonic()
    step, progress = 0, 0.0
    while progress < 1:
        step += 1
        elapsed = time.monotonic() - start
        progress = max(step / steps, elapsed / (60 * args.minutes))
        source, target, labels = to_tensors(next(batches))
        model.train()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            logits = model(source, target)
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=PAD,
                               label_smoothing=args.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.param_groups[0]["lr"] = learning_rate(args, step, min(progress, 1.0))
        optimizer.step()
        losses.append(loss.item())
        if step % args.interval == 0 or progress >= 1:
            snapshots.append({n: t.clone() for n, t in model.state_dict().items()})
            mean = {n: sum(s[n] for s in snapshots) / len(snapshots) for n in snapshots[0]}
            state, scores = validate(probe, [snapshots[-1], mean], valid, vocabulary)
            note = ""
            if max(scores) > best:
                best = max(scores)
                export_weights(args.out, state)
                note = "  exported"
            print(f"{elapsed / 60:6.1f} min  step {step:6}  {100 * progress:5.1f} %  "
                  f"loss {sum(losses) / len(losses):.4f}  validation: last {scores[0][0]:.2f} %, "
                  f"mean {scores[1][0]:.2f} %{note}", flush=True)
            losses = []
    print(f"trained for {(time.monotonic() - start) / 60:.1f} minutes on {args.threads} thread(s), "
          f"PyTorch {torch.__version__}", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--evaluate", action="store_true", help="measure the exported files; do not train")
    add("--out", type=Path, default=ROOT / "models" / "g2p-en", help="directory of the model")
    add("--init", type=Path, metavar="DIR", help="begin with the weights of the model in DIR: a "
        "further cycle of training")
    add("--threads", type=int, default=1, help="CPU threads")
    add("--seed", type=int, default=1, help="seed of weights, batches and dropout")
    add("--words", type=Path, default=Path("/usr/share/dict/american-english-large"),
        help="word list, one word a line")
    add("--lexicon", type=Path, help="keep the pronounced words in this file, and read them from "
        "it when it exists (espeak-ng takes some minutes)")
    add("--keep-possessives", type=int, default=4, metavar="N",
        help="train on one in N of the words in 's")
    add("--width", type=int, default=192, help="model width d")
    add("--heads", type=int, default=4, help="attention heads")
    add("--ffn", type=int, default=768, help="width of the feed-forward layers")
    add("--encoder-layers", type=int, default=2, help="encoder layers")
    add("--decoder-layers", type=int, default=2, help="decoder layers")
    add("--dropout", type=float, default=0.1, help="dropout on embeddings and sub-layer outputs")
    add("--label-smoothing", type=float, default=0.1, help="label smoothing")
    add("--epochs", type=int, default=20, help="passes over the training words")
    add("--minutes", type=float, default=75, help="at most this long: the schedule follows the "
        "clock where that is ahead of the steps, and the run is then not repeatable")
    add("--batch-tokens", type=int, default=4096, help="source plus target tokens in a batch")
    add("--warmup", type=int, default=1000, help="steps of linear warm-up")
    add("--lr-scale", type=float, default=0.8, help="factor on the paper's learning rate")
    add("--decay", type=float, default=0.7, help="the part of the run, at its end, over which the "
        "learning rate also falls linearly to 0")
    add("--clip", type=float, default=1.0, help="largest norm of the gradient")
    add("--bf16", action="store_true", help="matrix products in bfloat16 while training")
    add("--interval", type=int, default=250, help="steps between validations (and snapshots)")
    add("--average", type=int, default=5, help="snapshots in the mean that is validated as well")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    if args.evaluate:
        evaluate(args.out)
    else:
        train(args)


if __name__ == "__main__":
    sys.exit(main())
