#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/text/marian: a tiny Marian model with real SentencePiece files.

Development only: the tests need the files, not this script.  The weights are random, source.spm
(unigram) and target.spm (BPE) are trained on the sentences below and the documentation, and
transformers' MarianTokenizer and MarianMTModel say what must come out of them:
  expected.json  texts with their ids, and ids with their text, as source and as target
  input.txt, greedy.txt, beam.txt   lines of text and their translations

    pip install torch transformers==4.51.3 sentencepiece
    tools/make_marian.py
"""

import argparse
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from golden_models import ROOT, is_varied, weights, write_json, write_safetensors
from text_corpus import write_rules

SENTENCES = """\
The quick brown fox jumps over the lazy dog.
Der schnelle braune Fuchs springt \u00fcber den faulen Hund.
Le vif renard brun saute par-dessus le chien paresseux.
El veloz zorro marr\u00f3n salta sobre el perro perezoso.
\u0411\u044b\u0441\u0442\u0440\u0430\u044f \u043b\u0438\u0441\u0430 \u043f\u0440\u044b\u0433\u0430\u0435\u0442 \
\u0447\u0435\u0440\u0435\u0437 \u0441\u043e\u0431\u0430\u043a\u0443.
\u0397 \u03b3\u03c1\u03ae\u03b3\u03bf\u03c1\u03b7 \u03b1\u03bb\u03b5\u03c0\u03bf\u03cd \u03c0\u03b7\u03b4\u03ac\u03b5\u03b9.
\u654f\u6377\u7684\u68d5\u8272\u72d0\u72f8\u8df3\u8fc7\u4e86\u61d2\u72d7\u3002
How many roads must a man walk down, 12 or 345?
Wie viele Stra\u00dfen muss ein Mensch gehen, 12 oder 345?
"""

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "Der Fuchs springt \u00fcber 12 Hunde!",
    "a",
    "hello, world",
    "  two  spaces   around ",
    "\uff21\uff22 \ufb01nd\u00a0it\u2026",
    "caf\u00e9 cafe\u0301 e\u0301\u0301",
    "\u0411\u044b\u0441\u0442\u0440\u0430\u044f \u043b\u0438\u0441\u0430 \u043f\u0440\u044b\u0433\u0430\u0435\u0442.",
    "\u0397 \u03b1\u03bb\u03b5\u03c0\u03bf\u03cd, \u1f00\u03bb\u03ce\u03c0\u03b7\u03be",
    "\u654f\u6377\u7684\u72d0\u72f8\u3002\u65e5\u672c\u8a9e",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "fox \U0001f98a\U0001f415 jumps \U0001f469\u200d\U0001f469\u200d\U0001f467",
    "x" * 60,
    "\u2581under \u2581 bar",
    ">>fra<< The fox.",
    ">>deu<<The fox.",
    ">>xyz<< The fox.",
    "The >>fra<< fox.",
    ">>fra<< a >>deu<< b",
    ">> fox << >",
    ">><< fox",
    "a </s> b<unk>c <pad>",
    "</s>>>fra<< fox",
    "tab\there \u2028 there",
    "nul\0nul",
    "Zq \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0928\u092e\u0938\u094d\u0924\u0947 \u05e9\u05dc\u05d5\u05dd",
]


def train(prefix: Path, text: list[str], kind: str, size: int, rules: Path | None) -> Any:
    options = {"normalization_rule_tsv": os.path.relpath(rules)} if rules else {
        "normalization_rule_name": "identity"}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_prefix=os.path.relpath(prefix),
        model_type=kind, vocab_size=size,
        character_coverage=0.9995, num_threads=1, minloglevel=2, unk_id=0, bos_id=-1, eos_id=1,
        hard_vocab_limit=False, **options)
    prefix.with_suffix(".model").rename(prefix.with_suffix(".spm"))
    prefix.with_suffix(".vocab").unlink()
    spm = sentencepiece.SentencePieceProcessor(model_file=str(prefix.with_suffix(".spm")))
    return [spm.id_to_piece(i) for i in range(spm.get_piece_size())
            if not spm.is_control(i) and not spm.is_unknown(i)]


def make_tokenizer(out: Path) -> list[str]:
    docs = [line.strip() for name in ("README.md", "docs/design.md")
            for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    words = [line for line in docs if line and line[0].isalpha()]
    rules = out / "rules.tsv"
    write_rules(rules)
    sentences = SENTENCES.splitlines() * 4
    source = train(out / "source", words[:150] + sentences, "unigram", 260, rules)
    target = train(out / "target", words[150:300] + sentences, "bpe", 240, None)
    rules.unlink()
    # A few pieces of source.spm are not in the vocabulary, as in real models.
    pieces = ["</s>", "<unk>", ">>fra<<", ">>deu<<"]
    pieces += [p for p in source[:4] + source[8:]]
    pieces += [p for p in target if p not in set(pieces)]
    pieces += ["<pad>"]
    (out / "vocab.json").write_text(
        json.dumps({p: i for i, p in enumerate(pieces)}, ensure_ascii=False, indent=0) + "\n",
        encoding="utf-8")
    write_json(out / "tokenizer_config.json",
               {"source_lang": "eng", "target_lang": "mul", "model_max_length": 512})
    return pieces


def make_model(out: Path, size: int, seed: int) -> None:
    pad = size - 1
    config = {
        "model_type": "marian", "architectures": ["MarianMTModel"], "vocab_size": size,
        "decoder_vocab_size": size, "d_model": 16, "encoder_layers": 1, "decoder_layers": 2,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16, "activation_function": "swish", "max_position_embeddings": 80,
        "scale_embedding": True, "pad_token_id": pad, "decoder_start_token_id": pad,
        "eos_token_id": 0, "bos_token_id": 0, "share_encoder_decoder_embeddings": True}
    generation = {
        "bad_words_ids": [[pad]], "bos_token_id": 0, "decoder_start_token_id": pad,
        "eos_token_id": 0, "forced_eos_token_id": 0, "max_length": 24, "num_beams": 2,
        "pad_token_id": pad, "renormalize_logits": True}
    rng = torch.Generator().manual_seed(seed)
    tensors = weights(config, rng, True, False)
    tensors["final_logits_bias"][0, 0] += 5.0
    write_safetensors(out / "model.safetensors", {n: t.bfloat16() for n, t in tensors.items()},
                      "BF16", {"format": "pt"})
    write_json(out / "config.json", config)
    write_json(out / "generation_config.json", generation)


def counted(tokenizer: Any) -> list[tuple[str, int, int]]:
    """Texts with their characters that no token has a name for, and those in no token."""
    rows = []
    for text in TEXTS:
        unknown = sum(len(t.replace("\u2581", "")) for t in tokenizer.tokenize(text)
                      if t not in tokenizer.encoder)
        codes = [m for part in re.split("</s>|<unk>|<pad>", text)
                 for m in re.finditer(">>.+<<", part)]
        rows.append((text, unknown, sum(len(m.group()) for m in codes if m.start() > 0)))
    return rows


def translate(model: Any, tokenizer: Any, text: str, beams: int) -> tuple[list[int], str]:
    ids = tokenizer(text)["input_ids"]
    out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)).long(),
                         num_beams=beams, do_sample=False)
    return out[0].tolist(), tokenizer.decode(out[0], skip_special_tokens=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "data" / "text" / "marian")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    from transformers import MarianMTModel, MarianTokenizer
    pieces = make_tokenizer(out)
    # The lines of files have no NUL and nothing that is empty.
    lines = [t for t in TEXTS if "\0" not in t and "\u2028" not in t]
    for seed in range(100):
        make_model(out, len(pieces), seed)
        tokenizer = MarianTokenizer.from_pretrained(out)
        model = MarianMTModel.from_pretrained(out, torch_dtype=torch.float32).eval()
        with torch.no_grad():
            greedy = [translate(model, tokenizer, line, 1) for line in lines]
        if is_varied([ids for ids, _ in greedy]):
            break
    with torch.no_grad():
        beam = [translate(model, tokenizer, line, 4) for line in lines]
    cases = [{"text": t, "ids": tokenizer(t)["input_ids"], "unknown": n, "dropped": m}
             for t, n, m in counted(tokenizer)]
    rng = torch.Generator().manual_seed(1)
    rows = [ids for ids, _ in greedy + beam] + [
        torch.randint(0, len(pieces), (n,), generator=rng).tolist() for n in range(12)]
    decoded = [{"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True),
                "source": tokenizer.decode(ids, skip_special_tokens=True,
                                           use_source_tokenizer=True)} for ids in rows]
    (out / "expected.json").write_text(json.dumps(
        {"encode": cases, "decode": decoded}, separators=(",", ":")) + "\n")
    for name, text in (("input", lines), ("greedy", [t for _, t in greedy]),
                       ("beam", [t for _, t in beam])):
        (out / f"{name}.txt").write_text("".join(line + "\n" for line in text), encoding="utf-8")
    size = sum(f.stat().st_size for f in out.iterdir())
    print(f"{size} bytes, seed {seed}, {len(pieces)} pieces; greedy lengths "
          f"{[len(ids) for ids, _ in greedy]}")


if __name__ == "__main__":
    main()
