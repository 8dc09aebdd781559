#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train, export and evaluate models/tiny-gpt2: a word and a colon, continued by a definition.

The model is a GPT-2 (Radford et al. 2019) of two million parameters, its tokenizer a byte-level
BPE.  Both learn from lines "word: definition" made of WordNet 3.0, which Debian ships as
wordnet-base; where that is not installed, it is downloaded with apt-get and unpacked aside.

    tools/train_gpt2.py                 train, exporting whenever the validation loss improves
    tools/train_gpt2.py --evaluate      measure the exported files on the held-out lines
    tools/train_gpt2.py --golden FILE   what transformers generates with them, for the tests

Needs PyTorch >= 2.9, tokenizers and transformers; runs on a CPU, best on one with bfloat16.
"""

import argparse
import copy
import hashlib
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

END = "<|endoftext|>"
MAX_POSITIONS = 128
MAX_BYTES = 80  # of a definition: so small a model does short ones best
ROOT = Path(__file__).resolve().parent.parent
PROMPTS = ["isobit:", "transformer:", "small bird:"]

# ------------------------------------------------------------------------------------- the data

# Usage domains of WordNet whose words a demonstration should not repeat, and what else is left
# out by its gloss: the aim is a neutral text, not a complete dictionary.
UNWANTED_USAGE = {"ethnic_slur", "obscenity", "dirty_word", "vulgarism", "filth", "disparagement",
                  "derogation", "depreciation"}
UNWANTED = re.compile(
    r"\b(slur|offensive|obscen|vulgar|derogat|disparag|pejorat|contempt|insult|abusive|sex|erot|"
    r"porn|semen|genital|penis|vagina|vulva|testic|scrot|anus|anal|rectum|buttock|breast|copulat|"
    r"coit|orgasm|ejaculat|intercourse|masturbat|incest|rape|rapist|prostitut|brothel|whore|slut|"
    r"lewd|lecher|homosex|lesbian|gay|transvest|virgin|condom|abort|murder|suicid|kill|tortur|"
    r"genocid|massacre|execut|terror|nazi|hitler|slave|negro|blacks?|jews?|jewish|race|racis|"
    r"racial|defecat|excre|feces|faeces|urin|shit|piss|stupid|idiot|moron|retard|fool|ugly|"
    r"drunk|addict|cocaine|heroin|narcotic)", re.IGNORECASE)


def fetch_wordnet(directory):
    """The folder with data.noun and its kind: `directory`, or unpacked from Debian's package."""
    if directory.exists():
        return directory, None
    aside = tempfile.TemporaryDirectory()
    subprocess.run(["apt-get", "download", "wordnet-base"], check=True, cwd=aside.name)
    package, = Path(aside.name).glob("*.deb")
    subprocess.run(["dpkg", "-x", package, aside.name], check=True)
    return Path(aside.name) / "usr/share/wordnet", aside


def read_synsets(directory):
    """(place, words, [(symbol, place)], gloss) of each synset, in the order of the files."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (directory / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue
            head, gloss = line.split(" | ", 1)
            fields = head.split()
            count = int(fields[3], 16)
            words = [re.sub(r"\((a|p|ip)\)$", "", w) for w in fields[4:4 + 2 * count:2]]
            rest = fields[5 + 2 * count:]
            pointers = int(fields[4 + 2 * count])
            yield ((part[0], fields[0]), words,
                   [(rest[4 * i], (rest[4 * i + 2], rest[4 * i + 1])) for i in range(pointers)],
                   gloss.strip())


def definition_of(gloss):
    """What stands before the examples; None where that is long, or has a quotation in it."""
    text, quote, _ = gloss.partition('"')
    text = text.rstrip()
    if quote and not text.endswith((";", ":")):
        return None
    text = re.sub(r"\s+", " ", text.rstrip(" ;:"))
    return text if text.isascii() and 3 < len(text) <= MAX_BYTES else None


def read_entries(directory):
    """(definition, words) of each usable synset; those of one definition are together."""
    synsets = list(read_synsets(directory))
    unwanted = {place for place, words, _, _ in synsets if UNWANTED_USAGE & set(words)}
    entries = {}
    for _, words, pointers, gloss in synsets:
        names_someone = any(symbol == "@i" for symbol, _ in pointers)
        definition = definition_of(gloss)
        if (not definition or names_someone or UNWANTED.search(gloss)
                or any(symbol.startswith(";") and place in unwanted for symbol, place in pointers)):
            continue
        words = [w.replace("_", " ") for w in words if not UNWANTED.search(w.replace("_", " "))]
        known = entries.setdefault(definition, [])
        known += [w for w in words if w not in known]
    return [(definition, words) for definition, words in sorted(entries.items()) if words]


def text_hash(text):
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")


def split_entries(entries):
    """Training, validation and held-out entries, by a hash of the definition alone."""
    train, valid, heldout = [], [], []
    for entry in entries:
        h = text_hash(entry[0])
        (heldout if h % 50 == 0 else valid if h % 200 == 1 else train).append(entry)
    return train, valid, heldout


def lines_of(entries):
    """One line for each entry, with the first of its words."""
    return [f"{words[0]}: {definition}" for definition, words in entries]


# -------------------------------------------------------------------------------- the tokenizer


def train_tokenizer(entries, vocab_size):
    """vocab.json and merges.txt as texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(
        (f"{word}: {definition}" for definition, words in entries for word in words), trainer)
    with tempfile.TemporaryDirectory() as aside:
        tokenizer.model.save(aside)
        return [(Path(aside) / name).read_text(encoding="utf-8")
                for name in ("vocab.json", "merges.txt")]


def load_tokenizer(directory):
    from transformers import GPT2TokenizerFast
    return GPT2TokenizerFast(str(directory / "vocab.json"), str(directory / "merges.txt"))


def write_tokenizer(directory, entries, vocab_size):
    """The files of transformers' GPT2Tokenizer, from its own save_pretrained()."""
    from transformers import GPT2Tokenizer
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in zip(("vocab.json", "merges.txt"), train_tokenizer(entries, vocab_size)):
        (directory / name).write_text(text, encoding="utf-8")
    GPT2Tokenizer(str(directory / "vocab.json"), str(directory / "merges.txt"),
                  model_max_length=MAX_POSITIONS).save_pretrained(directory)
    return load_tokenizer(directory)


def encode(tokenizer, lines):
    """Ids of each line, ended; lines longer than the model's positions are cut."""
    end = tokenizer.convert_tokens_to_ids(END)
    return [(ids + [end])[:MAX_POSITIONS] for ids in tokenizer(lines)["input_ids"]]


# ------------------------------------------------------------------------------------ the model


class Layer(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)): a pre-norm layer.

    Attention is spelled out: on sequences as short as these it is several times as fast as
    PyTorch's fused one.
    """

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_out = nn.Linear(4 * width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        qkv = self.c_attn(self.ln_1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).flatten(1, 2).float()
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=q.shape[2] ** -0.5)
        mixed = (scores.softmax(dim=2) @ v).unflatten(0, (batch, self.heads)).transpose(1, 2)
        x = x + self.c_proj(mixed.reshape(batch, length, width).to(x.dtype))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, vocab_size, width, heads, layers):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, width)
        self.wpe = nn.Embedding(MAX_POSITIONS, width)
        self.h = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.01)
        for name, parameter in self.named_parameters():
            if "c_" in name and parameter.dim() == 2:
                residual = (2 * layers) ** -0.5 if "c_proj" in name or "c_out" in name else 1.0
                nn.init.normal_(parameter, std=0.04 * residual)
            elif "c_" in name:
                nn.init.zeros_(parameter)

    def forward(self, ids):
        length = ids.shape[1]
        mask = torch.full((1, length, length), -1e4).triu(1)
        x = self.wte(ids) + self.wpe.weight[:length]
        for layer in self.h:
            x = layer(x, mask)
        return F.linear(self.ln_f(x), self.wte.weight)


def losses_of(model, ids):
    """Cross-entropy of each token after the first of a padded batch (-1 pads): [batch, time]."""
    labels = ids[:, 1:]
    logits = model(ids[:, :-1].clamp(min=0)).float()
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1,
                           reduction="none").view(labels.shape)


def pad(rows):
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])


# ------------------------------------------------------------------------------------ the files


def write_atomically(path, data):
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def export(directory, model, end):
    """The folder of a transformers GPT2LMHeadModel in F16, from its own save_pretrained()."""
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel
    layer = model.h[0]
    config = GPT2Config(
        vocab_size=model.wte.num_embeddings, n_positions=MAX_POSITIONS,
        n_embd=model.wte.embedding_dim, n_layer=len(model.h), n_head=layer.heads,
        embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0, bos_token_id=end, eos_token_id=end)
    out = GPT2LMHeadModel(config)
    state = {"lm_head.weight": model.wte.weight}
    for name, tensor in model.state_dict().items():
        name = re.sub(r"(h\.\d+)\.(c_attn|c_proj)", r"\1.attn.\2", name)
        name = re.sub(r"(h\.\d+)\.c_fc", r"\1.mlp.c_fc", name)
        name = re.sub(r"(h\.\d+)\.c_out", r"\1.mlp.c_proj", name)
        linear = ".c_" in name and tensor.dim() == 2  # stored [in][out] by GPT-2
        state["transformer." + name] = tensor.t() if linear else tensor
    out.load_state_dict(state)
    out.generation_config = GenerationConfig(
        bos_token_id=end, eos_token_id=end, pad_token_id=end, max_new_tokens=60,
        do_sample=True, temperature=0.7, top_k=40)
    with tempfile.TemporaryDirectory() as aside:
        out.half().save_pretrained(aside)
        for path in sorted(Path(aside).iterdir()):
            write_atomically(directory / path.name, path.read_bytes())


def load_model(directory):
    from transformers import GPT2LMHeadModel
    return GPT2LMHeadModel.from_pretrained(directory, torch_dtype=torch.float32).eval()


# ----------------------------------------------------------------------------------- evaluation


@torch.no_grad()
def mean_loss(model, rows, batch=64):
    """Nats per token, of all tokens but the first of each row."""
    model.eval()
    total, count = 0.0, 0
    for i in range(0, len(rows), batch):
        losses = losses_of(model, pad(rows[i:i + batch]))
        total += losses.sum().item()
        count += sum(len(row) - 1 for row in rows[i:i + batch])
    return total / count


def evaluate(directory):
    """Measure the exported files on the held-out lines; definitions alone count.

    The token that ends a definition counts as one byte, the newline it stands for.
    """
    tokenizer, model = load_tokenizer(directory), load_model(directory)
    lines = (directory / "heldout.txt").read_text(encoding="utf-8").splitlines()
    rows = sorted(zip(encode(tokenizer, lines), lines), key=lambda row: len(row[0]))
    nats, tokens, size, every, predicted = 0.0, 0, 0, 0.0, 0
    with torch.no_grad():
        for i in range(0, len(rows), 64):
            part = rows[i:i + 64]
            losses = losses_of(lambda ids: model(ids).logits, pad([ids for ids, _ in part]))
            every += losses.sum().item()
            for (ids, line), row in zip(part, losses):
                word, _, definition = line.partition(":")
                first = len(tokenizer(word + ":")["input_ids"])
                nats += row[first - 1:].sum().item()
                tokens += len(ids) - first
                predicted += len(ids) - 1
                size += len(definition.encode("utf-8")) + 1
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(rows)} held-out lines")
    print(f"definitions: {nats / tokens:.4f} nats per token, "
          f"{nats / size / math.log(2):.4f} bits per byte; {tokens} tokens, {size} bytes")
    print(f"all tokens but the first of a line: {every / predicted:.4f} nats per token")


@torch.no_grad()
def golden(directory, path):
    """Greedy continuations by transformers in F32: ids, their log-probabilities, and the text."""
    from transformers import GPT2Tokenizer
    tokenizer, model = GPT2Tokenizer.from_pretrained(directory), load_model(directory)
    cases = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt)["input_ids"]
        start = torch.tensor([ids])
        out = model.generate(start, attention_mask=torch.ones_like(start), do_sample=False,
                             num_beams=1, temperature=None, top_k=None)[0].tolist()
        new = out[len(ids):]
        scores = model(torch.tensor([out])).logits[0, len(ids) - 1:-1].double().log_softmax(dim=1)
        best = scores.topk(2, dim=1).values
        if (best[:, 0] - best[:, 1]).min() < 1e-3:
            raise SystemExit(f"{prompt!r}: two tokens are nearly equally probable: take another")
        cases.append({
            "prompt": prompt, "prompt_ids": ids, "ids": new,
            "log_probs": [round(scores[i, t].item(), 7) for i, t in enumerate(new)],
            "text": tokenizer.decode(out, skip_special_tokens=True)})
    lines = ",\n".join(json.dumps(case) for case in cases)
    write_atomically(path, f"[\n{lines}\n]\n".encode("utf-8"))


# ------------------------------------------------------------------------------------- training


def make_batches(encoded, args, rng):
    """Lists of rows of nearly the same length, in random order; one word of each entry."""
    rows = [rng.choice(choices) for choices in encoded]
    rows.sort(key=lambda row: len(row) + rng.random())
    batches, batch = [], []
    for row in rows:
        if batch and (len(batch) + 1) * len(row) > args.batch_tokens:
            batches.append(batch)
            batch = []
        batch.append(row)
    batches.append(batch)
    rng.shuffle(batches)
    return batches


def endless_batches(encoded, args, rng):
    while True:
        yield from make_batches(encoded, args, rng)


def train(args):
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    wordnet, _aside = fetch_wordnet(args.wordnet)
    train_entries, valid, heldout = split_entries(read_entries(wordnet))
    tokenizer = write_tokenizer(args.out, train_entries, args.vocab_size)
    end = tokenizer.convert_tokens_to_ids(END)
    write_atomically(args.out / "heldout.txt",
                     "".join(line + "\n" for line in lines_of(heldout)).encode("utf-8"))
    encoded = [encode(tokenizer, [f"{word}: {definition}" for word in words])
               for definition, words in train_entries]
    valid_rows = sorted(encode(tokenizer, lines_of(valid)), key=len)
    per_epoch = sum(sum(map(len, rows)) / len(rows) for rows in encoded)

    model = Gpt2(args.vocab_size, args.width, args.heads, args.layers)
    # Products and gradients in bfloat16, on a copy of the weights; the weights themselves in F32.
    worker = copy.deepcopy(model).bfloat16() if args.bf16 else model
    # Muon for the matrices of the layers: after half a pass it was well ahead of AdamW.
    matrices = [p for p in model.h.parameters() if p.dim() == 2]
    rest = [p for n, p in model.named_parameters() if p.dim() != 2 or not n.startswith("h.")]
    optimizers = [
        torch.optim.Muon(matrices, lr=0.0, weight_decay=args.weight_decay,
                         adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=0.0, betas=(0.9, 0.98), weight_decay=0.0, fused=True)]
    print(f"{len(train_entries)} entries to train on, {len(valid)} to validate, {len(heldout)} "
          f"held out; about {per_epoch:.0f} tokens in an epoch; "
          f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)

    batches = endless_batches(encoded, args, rng)
    start = time.monotonic()
    best, step, seen, progress, reported = math.inf, 0, 0, 0.0, 0.0
    total, count = 0.0, 0
    while progress < 1:
        step += 1
        elapsed = (time.monotonic() - start) / 60
        progress = max(seen / (args.epochs * per_epoch), elapsed / args.minutes)
        rate = args.lr * min(step / args.warmup, 0.5 + 0.5 * math.cos(math.pi * min(progress, 1)))
        batch = next(batches)
        worker.train()
        losses = losses_of(worker, pad(batch))
        tokens = sum(len(row) - 1 for row in batch)
        worker.zero_grad()
        (losses.sum() / tokens).backward()
        if worker is not model:
            for parameter, copied in zip(model.parameters(), worker.parameters()):
                parameter.grad = copied.grad.float()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
        if worker is not model:
            with torch.no_grad():
                for parameter, copied in zip(model.parameters(), worker.parameters()):
                    copied.copy_(parameter)
        seen += sum(map(len, batch))
        total, count = total + losses.sum().item(), count + tokens
        if elapsed - reported >= args.interval or progress >= 1:
            reported = elapsed
            loss = mean_loss(worker, valid_rows)
            note = ""
            if loss < best:
                best, note = loss, "  exported"
                export(args.out, model, end)
            print(f"{elapsed:6.1f} min  step {step:6}  {100 * progress:5.1f} %  "
                  f"epoch {seen / per_epoch:5.2f}  loss {total / count:.4f}  "
                  f"validation {loss:.4f}{note}", flush=True)
            total, count = 0.0, 0
    print(f"trained for {(time.monotonic() - start) / 60:.1f} minutes on {args.threads} thread(s), "
          f"{seen} tokens, PyTorch {torch.__version__}", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--evaluate", action="store_true", help="measure the exported files; do not train")
    add("--golden", type=Path, metavar="FILE", help="write greedy continuations by transformers "
        "to FILE; do not train")
    add("--out", type=Path, default=ROOT / "models" / "tiny-gpt2", help="directory of the model")
    add("--wordnet", type=Path, default=Path("/usr/share/wordnet"),
        help="data files of wordnet-base; downloaded where they are not")
    add("--threads", type=int, default=1, help="CPU threads")
    add("--seed", type=int, default=1, help="seed of weights and batches")
    add("--vocab-size", type=int, default=2048, help="tokens")
    add("--width", type=int, default=192, help="model width")
    add("--heads", type=int, default=4, help="attention heads")
    add("--layers", type=int, default=4, help="layers")
    add("--epochs", type=float, default=12, help="passes over the training definitions")
    add("--minutes", type=float, default=45, help="at most this long: the schedule follows the "
        "clock where that is ahead of the steps, and the run is then not repeatable")
    add("--batch-tokens", type=int, default=1536, help="tokens in a batch, padding included")
    add("--lr", type=float, default=5e-3, help="highest learning rate")
    add("--warmup", type=int, default=100, help="steps of linear warm-up")
    add("--weight-decay", type=float, default=0.1, help="of the matrices")
    add("--clip", type=float, default=1.0, help="largest norm of the gradient")
    add("--bf16", action="store_true", help="compute in bfloat16 while training")
    add("--interval", type=float, default=3, help="minutes between validations")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    if args.evaluate:
        evaluate(args.out)
    elif args.golden:
        golden(args.out, args.golden)
    else:
        train(args)


if __name__ == "__main__":
    sys.exit(main())
