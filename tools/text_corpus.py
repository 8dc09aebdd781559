#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Made-up text in many scripts, and odd text, for the tokenizers' golden files and comparisons."""

import random
from pathlib import Path

# Name: ranges of letters. Words are drawn from a small set for each script, so that merges exist.
SCRIPTS: dict[str, list[tuple[int, int]]] = {
    "latin": [(0x61, 0x7A)], "latin accents": [(0x61, 0x7A), (0xE0, 0xF6), (0x100, 0x17F)],
    "greek": [(0x3B1, 0x3C9), (0x3AC, 0x3AF)], "cyrillic": [(0x430, 0x44F)],
    "armenian": [(0x561, 0x586)], "georgian": [(0x10D0, 0x10F0)], "hebrew": [(0x5D0, 0x5EA)],
    "arabic": [(0x627, 0x63A), (0x641, 0x64A), (0x64B, 0x652)], "devanagari": [(0x905, 0x939), (0x93E, 0x94D)],
    "bengali": [(0x985, 0x98C), (0x995, 0x9A8), (0x9BE, 0x9C4)], "tamil": [(0xB85, 0xB8A), (0xBAE, 0xBB9), (0xBBE, 0xBC2)],
    "telugu": [(0xC05, 0xC0C), (0xC15, 0xC28)], "thai": [(0xE01, 0xE2E), (0xE30, 0xE3A), (0xE40, 0xE4E)],
    "lao": [(0xE94, 0xE97), (0xE99, 0xE9F)], "tibetan": [(0xF40, 0xF47), (0xF71, 0xF7D)],
    "myanmar": [(0x1000, 0x1021), (0x102B, 0x103E)], "khmer": [(0x1780, 0x17A2), (0x17B6, 0x17C5)],
    "ethiopic": [(0x1200, 0x1246)], "hangul": [(0xAC00, 0xAE00)], "jamo": [(0x1100, 0x1112), (0x1161, 0x1175)],
    "hiragana": [(0x3042, 0x3093)], "katakana": [(0x30A2, 0x30F3), (0x30FC, 0x30FC)], "han": [(0x4E00, 0x4F00), (0x20000, 0x20040)],
    "cherokee": [(0x13A0, 0x13F4)], "mongolian": [(0x1820, 0x1842)], "gothic": [(0x10330, 0x1034A)],
}
ODD = [
    "\U0001f600", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f",
    "e\u0301", "a\u0308\u0323", "\u0323\u0301", "\u1e9b\u0323", "\u212b", "\ufb01", "\uff21\uff11", "\u00bd", "\u2167",
    "\u0130", "\u0131", "\u1e9e", "\u00df", "\u03a3\u03c2", "\u01c5", "\u017f", "'\u017f", "\u00a0", "\u2003", "\u3000", "\u200b",
    "\u200d", "\ufeff", "\u00ad", "\u2028", "\u0085", "\x1c", "\x00", "\x01", "\x7f", "\ufffd", "\uffff", "\ue000",
    "\U0010fffd", "\u0378", "\u061c", "\u202e", "<s>", "</s>", "<unk>", "<mask>", " <mask> ", "<pad>", "[MASK]", "[CLS]",
    "[SEP]", "[UNK]", "[mask]", "<|endoftext|>", "<|im_start|>", "<|begin_of_text|>", "##a", "it's", "IT'S", "we'LL", "'Re", "don't",
    "can't", "do not", "\u2019s", "''s", "\t", "\n", "\r\n", " \n ", "\n\n\n", "   ", "      ", " \t \u00a0", "123456789", "1,234.5",
    "\u0661\u0662\u0663", "\u00b2\u2460", "...", "?!", "--", "$^+=`|~", "\u20ac", "\u00a9", "\u3002", "\u300c\u300d", "\u4e00\u4e8c",
    "<extra_id_0>", " <extra_id_5> ", "<extra_id_99>x", "<extra_id_100>", "<mask_1>", " <mask_2>", "<unk_2>", "en_XX", "xro_RO ",
    "fra_Latn", " deu_Latn ", "__fr__", " __en__ ", "__xx__", "<s>", "</s>x", "\r\n\u0301", "\u2581\u2581", "\u0600a", "a\u200d", "\u1161",
    "_a_", "a.b@c.de", "https://x.y/z?q=1#f", "\u2581", "\u2581a", "\u0120", "\u010a", "\u1100\u1161\u11a8", "\uac01", "x" * 101, "y" * 100,
    "ab" * 700, "\u4e2d" * 300, "\u0301" * 40, "!" * 200, " " * 70, "\U0001d400\U0001d7d8", "\u0f0b", "\u17d4", "\u02bb", "\u2160",
]


# Normal forms that are few, so that the table stays small: the real one has 240 kB.
RULES = {"\uff21": "A", "\uff22": "B", "\ufb01": "fi", "\u00a0": " ", "\t": " ", "\u3000": " ",
         "\u2028": " ", "\u0009\u0009": " ", "e\u0301": "\u00e9", "\u200b": "", "\u2026": "..."}


def write_rules(path: Path) -> None:
    """RULES as trainers of SentencePiece read them."""
    path.write_text("".join(
        " ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n"
        for a, b in RULES.items()))


def words(rng: random.Random, ranges: list[tuple[int, int]]) -> list[str]:
    letters = [chr(c) for a, b in ranges for c in range(a, b + 1)]
    return ["".join(rng.choice(letters) for _ in range(rng.randint(1, 9))) for _ in range(80)]


def lines(count: int, seed: int, odd: bool) -> list[str]:
    """So many lines; with `odd`, half of them have odd things in them, or are nothing else."""
    rng = random.Random(seed)
    fixed = random.Random(1)
    vocabularies = {name: words(fixed, ranges) for name, ranges in SCRIPTS.items()}
    names = list(SCRIPTS)
    made = []
    while len(made) < count:
        name = names[len(made) % len(names)]
        parts: list[str] = []
        for _ in range(rng.randint(1, 14)):
            source = vocabularies[name if rng.random() < 0.9 else rng.choice(names)]
            word = rng.choice(source)
            style = rng.random()
            word = word.capitalize() if style < 0.15 else word.upper() if style < 0.2 else word
            parts.append(word + rng.choice(["", "", "", "", ",", ".", "'s", "!", "-", "2"]))
            parts.append(rng.choice([" ", " ", " ", " ", " ", "  ", ""]))
            if odd and rng.random() < 0.12:
                parts.append(rng.choice(ODD))
        if odd and rng.random() < 0.1:
            parts = [rng.choice(ODD) for _ in range(rng.randint(1, 4))]
        if odd and rng.random() < 0.05:
            parts.append(chr(rng.choice([c for c in range(0x20, 0x2ffff) if not 0xd800 <= c < 0xe000])))
        made.append("".join(parts))
    return made
