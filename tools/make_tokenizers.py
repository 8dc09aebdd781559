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
from pathlib import Path
from typing import Any

import text_corpus
from compare_tokenizers import makers, old_config, write
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
OLD = ("roberta", "bert-cased")  # in their older files
# Added tokens of "prefix-space", and others, among words and spaces.
SPECIAL = ["a word wordy sword _word word", "x  both  y\tboth z", "\u00e9t\u00e9 \u00c9T\u00c9", " word", "both",
           "e\u0301te\u0301", "<mask>a  <mask>", "a W\u00d6RD w\u00f6rd word WORD", "WORT wort", "1 22 333 4444 55555", "'S 'T 'rE x'Ll it'\u017fab"]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "data" / "text")
    out: Path = parser.parse_args().out
    lines = [line for line in text_corpus.lines(400, 9, True) if 0 < len(line) < 60][:12]
    short = [odd for odd in text_corpus.ODD if len(odd) < 150]
    lines += ["a".join(short[i:i + 4]) for i in range(0, len(short), 4)] + short[1::3] + SPECIAL
    total = 0
    for name, make in makers().items():
        made = make(SIZES.get(name, 380))
        config = old_config(name) if name in OLD else {"tokenizer_class": "PreTrainedTokenizerFast"}
        directory = out / name
        write(directory, made, config or {}, name in OLD)
        (directory / "expected.json").write_text(
            json.dumps(expected(made, lines), separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")
        size = sum(f.stat().st_size for f in directory.iterdir())
        total += size
        print(f"{name:14} {size:6} bytes, {made.get_vocab_size()} tokens")
    print(f"{total} bytes")


if __name__ == "__main__":
    main()
