#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/text/stop.json: with which token transformers ends a sequence for stop strings.

Development only.  Sequences of tokens of the tokenizers in tests/data/text, and strings that begin and
end anywhere in their text, as transformers.StopStringCriteria judges each beginning of the sequence.
What it knows of a token is its text alone, so three things are left out, and counted: a character in
several tokens, a text within the first token's space, and text of special tokens.

    pip install transformers==4.51.3 sentencepiece
    tools/make_stops.py
"""

import json
import random
import warnings
from pathlib import Path

import torch
from transformers import AutoTokenizer, StopStringCriteria

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "text"
NAMES = ("gpt2", "llama3", "qwen2", "roberta", "bart", "t5", "t5-bpe", "mbart50-json", "nllb-json", "pegasus", "bert")
OTHER = ("zz", "never", "\n\n", "###")


def literal(tokenizer, ids: list[int], stops: list[str]) -> int:
    """The same by definition: the first beginning whose text has one of them; 0: none."""
    for n in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:n], skip_special_tokens=True)
        if any(stop in text for stop in stops):
            return n
    return 0


def main() -> None:
    warnings.simplefilter("ignore")
    rng = random.Random(5)
    rows, left_out = [], 0
    for name in NAMES:
        tokenizer = AutoTokenizer.from_pretrained(DATA / name)
        lines = [row["ids"] for row in json.loads((DATA / name / "expected.json").read_text())["encode"]]
        special = set(tokenizer.all_special_ids)
        made = 0
        while made < 12:
            ids = [i for k in range(3) for i in rng.choice(lines) if i not in special][:60]
            text = tokenizer.decode(ids, skip_special_tokens=True)
            if len(text) < 12 or "\0" in text:
                continue
            stops = [rng.choice(OTHER)]
            for _ in range(rng.randrange(0, 3)):
                at = rng.randrange(len(text) - 1)
                stops.append(text[at:at + rng.randrange(1, 9)])
            rng.shuffle(stops)
            try:
                criteria = StopStringCriteria(tokenizer, stops)
            except ValueError:  # no token has to do with any of them
                continue
            end = next((n for n in range(1, len(ids) + 1) if criteria(torch.tensor([ids[:n]]), None)[0]), 0)
            if end != literal(tokenizer, ids, stops):
                left_out += 1
                continue
            made += 1
            rows.append({"tokenizer": name, "stops": stops, "ids": ids, "end": end})
    path = DATA / "stop.json"
    path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
                    + "\n]\n", encoding="utf-8")
    print(f"{len(rows)} sequences, {sum(1 for r in rows if not r['end'])} without an end, {left_out} left out; "
          f"{path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
