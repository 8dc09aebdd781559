#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/text/NAME: small tokenizers, with what Hugging Face's tokenizers make of odd text.

Development only: the tests need the files, not this script.  Each directory gets the files that
models of its family have, and expected.json: texts with their ids, ids with their text.

    pip install transformers==4.51.3 sentencepiece
    tools/make_tokenizers.py
"""

import argparse
import json
import random
import warnings
from pathlib import Path
from typing import Any

import text_corpus
from compare_tokenizers import FAMILIES, makers, old_config, roberta, write, write_family
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
OLD = ("roberta", "bert-cased")  # in their older files
# Added tokens of "prefix-space", and others, among words and spaces.
SPECIAL = ["a word wordy sword _word word", "x  both  y\tboth z", "\u00e9t\u00e9 \u00c9T\u00c9", " word", "both",
           "e\u0301te\u0301", "<mask>a  <mask>", "a W\u00d6RD w\u00f6rd word WORD", "WORT wort", "1 22 333 4444 55555", "'S 'T 'rE x'Ll it'\u017fab"]
# Families of SentencePiece, and which of them get a tokenizer.json besides.
SMALL = ("nllb", "mbart", "mbart50", "m2m_100", "t5", "t5-bpe", "pegasus", "llama")
JSON: dict[str, dict[str, Any]] = {"nllb": {}, "mbart50": {}, "llama": {"legacy": False, "add_eos_token": True}}
# For Llama: pieces that users define, characters that bytes spell.
SPELT = ["www.a  b\u00e9 www. ", "[INST] a[INST]", "\u4e2d\u00e9\u00ff\U0001f600\u4e2d a", "\t\r\n a\n"]
SIZES = {"bert": 500, "bert-cased": 400, "sequence": 300}


def expected(made: Tokenizer, lines: list[str]) -> dict[str, Any]:
    rng = random.Random(3)
    nothing = made.encode("").ids
    encoded = [(line, made.encode(line).ids) for line in lines]
    rows = [ids for _, ids in encoded[::6]]
    rows += [[rng.randrange(made.get_vocab_size()) for _ in range(n)] for n in range(12)]
    return {"unk": made.token_to_id("[UNK]"),
            "encode": [{"text": t, "ids": ids} for t, ids in encoded if ids != nothing],
            "decode": [{"ids": ids, "text": made.decode(ids, skip_special_tokens=True)}
                       for ids in rows]}


def special_lines(names: list[str]) -> list[str]:
    """Special tokens and languages among words and spaces."""
    return [f"{a}{name}{b}" for name in names for a, b in (("", ""), ("a", "b"), ("word  ", "  word"))]


def expected_of(directory: Path, name: str, lines: list[str]) -> dict[str, Any]:
    from transformers import AutoTokenizer
    source, target = FAMILIES[name][5:] if name in FAMILIES else (None, None)
    made = AutoTokenizer.from_pretrained(directory, **{k: v for k, v in {
        "src_lang": source, "tgt_lang": target}.items() if v})
    rng = random.Random(3)
    names = [t for t in made.all_special_tokens if "unk_" not in t and "extra_id_" not in t or t[-2] == "2"]
    known = [line for line in text_corpus.lines(2000, 11, True) if max(map(ord, line)) < 0x100 and len(line) < 100]
    lines = lines[::2] + known[:16] + special_lines(names[:9] + names[-3:]) + (SPELT if "llama" in name else [])
    nothing = made("")["input_ids"]
    encoded = [(line, made(line)["input_ids"]) for line in lines]
    rows = [ids for _, ids in encoded[::6]]
    rows += [[rng.randrange(len(made) + 3) for _ in range(n)] for n in range(12)]
    if "llama" in name:
        spelt = made("\u4e2d\U0001f600 a\u4e2d")["input_ids"]
        rows += [spelt[a:b] for a in range(5) for b in range(a, len(spelt) + 1)]
    result: dict[str, Any] = {"unk": made.unk_token_id}
    if source:
        forced = made._build_translation_inputs("a", return_tensors=None, src_lang=source, tgt_lang=target)
        result |= {"from": source, "to": target, "forced_bos": forced["forced_bos_token_id"]}
    return result | {
        "encode": [{"text": t, "ids": ids} for t, ids in encoded if ids != nothing],
        "decode": [{"ids": ids, "text": made.decode(ids, skip_special_tokens=True)} for ids in rows]}


def write_expected(directory: Path, result: dict[str, Any]) -> int:
    (directory / "expected.json").write_text(
        json.dumps(result, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(f.stat().st_size for f in directory.iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "data" / "text")
    parser.add_argument("--families", action="store_true", help="those of SentencePiece, and BART, alone")
    options = parser.parse_args()
    out: Path = options.out
    warnings.simplefilter("ignore")
    lines = [line for line in text_corpus.lines(400, 9, True) if 0 < len(line) < 60][:12]
    short = [odd for odd in text_corpus.ODD if len(odd) < 150]
    lines += ["a".join(short[i:i + 4]) for i in range(0, len(short), 4)] + short[1::3] + SPECIAL
    sizes: dict[str, int] = {}
    for name, make in makers().items() if not options.families else []:
        made = make(SIZES.get(name, 380))
        config = old_config(name) if name in OLD else {"tokenizer_class": "PreTrainedTokenizerFast"}
        write(out / name, made, config or {}, name in OLD)
        sizes[name] = write_expected(out / name, expected(made, lines))
    for name in SMALL:
        write_family(out / name, name, 420 if name == "llama" else 220, small=True)
        sizes[name] = write_expected(out / name, expected_of(out / name, name, lines))
    from transformers import AutoTokenizer
    for name, more in JSON.items():
        directory = out / f"{name}-json"
        AutoTokenizer.from_pretrained(out / name, **more).save_pretrained(directory)
        for file in (FAMILIES[name][1], "special_tokens_map.json", "added_tokens.json"):
            (directory / file).unlink(missing_ok=True)
        config = json.loads((out / name / "tokenizer_config.json").read_text()) | more
        config["tokenizer_class"] += "Fast"
        config.pop("added_tokens_decoder", None)
        (directory / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
        text = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
        (directory / "tokenizer.json").write_text(
            json.dumps(text, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        sizes[directory.name] = write_expected(directory, expected_of(directory, name, lines))
    write(out / "bart", roberta(380), {"tokenizer_class": "BartTokenizer"}, True)
    sizes["bart"] = write_expected(out / "bart", expected_of(out / "bart", "bart", lines))
    for name, size in sizes.items():
        print(f"{name:14} {size:6} bytes")
    print(f"{sum(sizes.values())} bytes")


if __name__ == "__main__":
    main()
