#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/text/targets.json: the ids of texts as targets, as transformers makes labels of them.

Development only.  mBART's labels end with their language, which decoder_input_ids have at the front: it is
moved there, as generation gives it.

    pip install transformers==4.51.3 sentencepiece
    tools/make_targets.py
"""

import json
import warnings
from pathlib import Path

from transformers import AutoTokenizer

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "text"
LANGUAGES = {"nllb": ("eng_Latn", "fra_Latn"), "nllb-json": ("fra_Latn", "zul_Latn"), "mbart": ("en_XX", "ro_RO"),
             "mbart50": ("en_XX", "ar_AR"), "mbart50-json": ("ar_AR", "sl_SI"), "m2m_100": ("en", "fr")}
NAMES = (*LANGUAGES, "t5", "t5-bpe", "pegasus", "bart", "marian")


def main() -> None:
    warnings.simplefilter("ignore")
    rows = []
    for name in NAMES:
        source, target = LANGUAGES.get(name, (None, None))
        names = {"src_lang": source, "tgt_lang": target} if source else {}
        tokenizer = AutoTokenizer.from_pretrained(DATA / name, **names)
        texts = [row["text"] for row in json.loads((DATA / name / "expected.json").read_text())["encode"]]
        for text in [t for t in texts if t.strip() and "\0" not in t and "<" not in t][:8]:
            ids = tokenizer(text_target=text)["input_ids"]
            if name == "mbart":
                ids = ids[-1:] + ids[:-1]
            rows.append({"tokenizer": name, "from": source, "to": target, "text": text, "ids": ids,
                         "given": int(source is not None or name == "bart")})
    path = DATA / "targets.json"
    path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
                    + "\n]\n", encoding="utf-8")
    print(f"{len(rows)} texts; {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
