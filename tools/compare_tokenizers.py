#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Are our tokenizers those of Hugging Face's tokenizers and of transformers?

Development only.  Trains vocabularies on made-up text in many scripts, writes directories as models
have them, and compares ids of lines, half of them odd, and the text of ids.  Every code point alone
is compared, too (--characters).  Prints the first differences of each tokenizer and how many there
are; exit code 1 if there is one.

    pip install transformers==4.51.3 sentencepiece
    tools/compare_tokenizers.py --library build/lib/libisobit_model.so
"""

import argparse
import ctypes
import json
import random
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Iterable

import text_corpus
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")


class Ours:
    """A tokenizer of libisobit_model."""

    def __init__(self, library: ctypes.CDLL, directory: Path) -> None:
        self.library, self.handle = library, ctypes.c_void_p()
        error = ctypes.create_string_buffer(512)
        if library.iso_tokenizer_load(ctypes.byref(self.handle), str(directory).encode(), error):
            raise ValueError(error.raw[4:].split(b"\0")[0].decode())

    def encode(self, text: str) -> list[int] | None:
        """None: no sequence, as for a line that is empty."""
        data = text.encode("utf-8", "surrogatepass")
        room = 4 * len(data) + 64
        ids, count = (ctypes.c_uint32 * room)(), ctypes.c_size_t()
        lengths, sequences = (ctypes.c_size_t * 1)(), ctypes.c_size_t()
        status = self.library.iso_tokenizer_encode(
            self.handle, data, ctypes.c_size_t(len(data)), ids, ctypes.c_size_t(room),
            ctypes.byref(count), lengths, ctypes.c_size_t(1), ctypes.byref(sequences), None)
        if status:
            raise ValueError(f"status {status}")
        return list(ids[:count.value]) if sequences.value else None

    def decode(self, ids: list[int]) -> str:
        array, needed = (ctypes.c_uint32 * len(ids))(*ids), ctypes.c_size_t()
        room = 256 + 256 * len(ids)
        text = ctypes.create_string_buffer(room)
        status = self.library.iso_tokenizer_decode(
            self.handle, array, ctypes.c_size_t(len(ids)), text, ctypes.c_size_t(room),
            ctypes.byref(needed))
        if status:
            raise ValueError(f"status {status}")
        return text.raw[:needed.value - 1].decode("utf-8")


# ------------------------------------------------------------------------------- vocabularies


def byte_level(size: int, specials: list[Any], split: str | None, prefix: bool = False) -> Tokenizer:
    made = Tokenizer(models.BPE())
    if split is None:
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    else:
        made.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(split), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return train(made, trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))


def train(made: Tokenizer, trainer: Any) -> Tokenizer:
    # Numbers, and a letter that an apostrophe before it turns into an ending, with merges.
    more = ["1234 12 123 999 12345 x\u017fab \u017fab"] * 400
    made.train_from_iterator(text_corpus.lines(3000, 5, False) + more, trainer)
    return made


def gpt2(size: int) -> Tokenizer:
    return byte_level(size, ["<|endoftext|>"], None)


def roberta(size: int) -> Tokenizer:
    mask = AddedToken("<mask>", lstrip=True)
    made = byte_level(size, ["<s>", "<pad>", "</s>", "<unk>", mask], None)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0),
                                                       add_prefix_space=False)
    return made


def prefix_space(size: int) -> Tokenizer:
    made = byte_level(size, ["<s>", "</s>"], None, prefix=True)
    made.add_tokens([AddedToken("word", single_word=True), AddedToken("both", lstrip=True, rstrip=True),
                     AddedToken("\u00e9t\u00e9", normalized=False)])
    return made


def llama3(size: int) -> Tokenizer:
    made = byte_level(size, ["<|begin_of_text|>", "<|end_of_text|>"], LLAMA3)
    text = json.loads(made.to_str())
    text["model"]["ignore_merges"] = True
    made = Tokenizer.from_str(json.dumps(text))
    made.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|begin_of_text|> $A",
                                      special_tokens=[("<|begin_of_text|>", 0)])])
    return made


def qwen2(size: int) -> Tokenizer:
    made = byte_level(size, [], QWEN2)
    made.normalizer = normalizers.NFC()
    made.add_special_tokens(["<|endoftext|>", "<|im_start|>"])
    return made


def bert(size: int, lowercase: bool) -> Tokenizer:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(prefix="##")
    # Some characters stay unknown.
    made = train(made, trainers.WordPieceTrainer(
        vocab_size=size, limit_alphabet=size // 3, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return made


def sequence(size: int) -> Tokenizer:
    made = bert(size, True)
    made.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                                            normalizers.Lowercase()])
    made.add_tokens(["W\u00d6RD", AddedToken("wort", normalized=False)])
    return made


def makers() -> dict[str, Any]:
    return {"gpt2": gpt2, "roberta": roberta, "prefix-space": prefix_space, "llama3": llama3,
            "qwen2": qwen2, "bert": lambda n: bert(n, True), "bert-cased": lambda n: bert(n, False),
            "sequence": sequence}


def write(directory: Path, made: Tokenizer, config: dict[str, Any], old: bool) -> None:
    """tokenizer.json; `old`: vocab.json and merges.txt, or vocab.txt, instead."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    if not old:
        text = json.loads(made.to_str())
        (directory / "tokenizer.json").write_text(
            json.dumps(text, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        return
    made.model.save(str(directory))


# --------------------------------------------------------------------------------- comparison


class Comparison:
    def __init__(self, name: str) -> None:
        self.name, self.compared, self.wrong = name, 0, 0

    def check(self, what: str, given: Any, theirs: Any, ours: Any) -> None:
        self.compared += 1
        if theirs == ours:
            return
        self.wrong += 1
        if self.wrong <= 5:
            print(f"{self.name}: {what} of {given!r}\n  theirs {theirs!r}\n  ours   {ours!r}")


def compare(name: str, theirs_encode: Any, theirs_decode: Any, ours: Ours, size: int,
            lines: Iterable[str]) -> Comparison:
    result, rng = Comparison(name), random.Random(2)
    for line in lines:
        ids = theirs_encode(line)
        got = ours.encode(line)
        if got is None:  # no sequence: theirs has special tokens alone
            got = theirs_encode("")
        result.check("ids", line, ids, got)
        result.check("text", ids, theirs_decode(ids), ours.decode(ids))
        ids = [rng.randrange(size) for _ in range(rng.randint(0, 12))]
        result.check("text", ids, theirs_decode(ids), ours.decode(ids))
    print(f"{name:16} {result.compared} compared, {result.wrong} different")
    return result


def old_config(name: str) -> dict[str, Any] | None:
    return {"gpt2": {"tokenizer_class": "GPT2Tokenizer"},
            "roberta": {"tokenizer_class": "RobertaTokenizer"},
            "bert": {"tokenizer_class": "BertTokenizer"},
            "bert-cased": {"tokenizer_class": "BertTokenizer", "do_lower_case": False}}.get(name)


def pipelines(library: ctypes.CDLL, lines: list[str], work: Path) -> list[Comparison]:
    results = []
    for name, make in makers().items():
        made = make(2000)
        write(work / name, made, {"tokenizer_class": "PreTrainedTokenizerFast"}, False)
        forms = [(name, work / name)]
        config = old_config(name)
        if config:
            write(work / f"{name}-old", made, config, True)
            forms.append((f"{name} (old)", work / f"{name}-old"))
        for title, directory in forms:
            results.append(compare(title, lambda s, m=made: m.encode(s).ids,
                                   lambda i, m=made: m.decode(i, skip_special_tokens=True),
                                   Ours(library, directory), made.get_vocab_size(), lines))
    return results


def marian(library: ctypes.CDLL, lines: list[str], work: Path, kind: str, rule: str) -> Comparison:
    import sentencepiece
    from transformers import MarianTokenizer
    directory = work / f"marian-{kind}-{rule}"
    directory.mkdir()
    pieces = ["</s>", "<unk>", ">>fra<<"]
    for side, seed in (("source", 5), ("target", 6)):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text_corpus.lines(2000, seed, False)), model_type=kind,
            model_prefix=str(directory / side), vocab_size=4000, normalization_rule_name=rule,
            character_coverage=0.99, num_threads=1, minloglevel=2, hard_vocab_limit=False)
        (directory / f"{side}.model").rename(directory / f"{side}.spm")
        spm = sentencepiece.SentencePieceProcessor(model_file=str(directory / f"{side}.spm"))
        pieces += [spm.id_to_piece(i) for i in range(spm.get_piece_size()) if not spm.is_control(i)]
    pieces = list(dict.fromkeys(pieces + ["<pad>"]))
    (directory / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}))
    (directory / "config.json").write_text('{"model_type": "marian"}')
    theirs = MarianTokenizer.from_pretrained(directory)
    return compare(f"marian {kind} {rule}", lambda s: theirs(s)["input_ids"],
                   lambda i: theirs.decode(i, skip_special_tokens=True), Ours(library, directory),
                   len(pieces), lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=20000)
    parser.add_argument("--characters", action="store_true", help="every code point alone")
    parser.add_argument("--no-marian", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    library = ctypes.CDLL(str(options.library.resolve()))
    lines = text_corpus.lines(options.lines, 7, True)
    if options.characters:
        lines = [f"a{chr(c)}b 1{chr(c)}" for c in range(1, 0x30000) if not 0xd800 <= c < 0xe000]
    with tempfile.TemporaryDirectory() as work:
        results = pipelines(library, lines, Path(work))
        if not options.no_marian:
            for kind, rule in (("unigram", "nmt_nfkc"), ("bpe", "identity"), ("unigram", "nfkc_cf")):
                results.append(marian(library, lines, Path(work), kind, rule))
    return int(any(r.wrong for r in results))


if __name__ == "__main__":
    sys.exit(main())
