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
import os
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

    class Options(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t), ("source", ctypes.c_char_p), ("target", ctypes.c_char_p)]

    def __init__(self, library: ctypes.CDLL, directory: Path, source: str | None = None,
                 target: str | None = None) -> None:
        self.library, self.handle = library, ctypes.c_void_p()
        error = ctypes.create_string_buffer(512)
        options = Ours.Options(ctypes.sizeof(Ours.Options), source and source.encode(),
                               target and target.encode())
        if library.iso_tokenizer_load_with(ctypes.byref(self.handle), str(directory).encode(),
                                           ctypes.byref(options), error):
            raise ValueError(error.raw[4:].split(b"\0")[0].decode())

    def forced_bos(self) -> int:
        value = ctypes.c_uint32()
        self.library.iso_tokenizer_forced_bos(self.handle, ctypes.byref(value))
        return value.value

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

    def decode(self, ids: list[int], partial: bool = False) -> str:
        array, needed = (ctypes.c_uint32 * len(ids))(*ids), ctypes.c_size_t()
        room = 256 + 256 * len(ids)
        text = ctypes.create_string_buffer(room)
        decode = self.library.iso_tokenizer_decode_partial if partial else self.library.iso_tokenizer_decode
        status = decode(
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


def gemma(size: int) -> Tokenizer:
    """Spaces are bars within words, bytes spell what is unknown, breaks of lines are added."""
    def dressed(model: Any) -> Tokenizer:
        made = Tokenizer(model)
        made.normalizer = normalizers.Replace(" ", "\u2581")
        made.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous", invert=False)
        made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(),
                                          decoders.Fuse()])
        return made
    trained = train(dressed(models.BPE()), trainers.BpeTrainer(
        vocab_size=size, limit_alphabet=size // 3, show_progress=False))
    text = json.loads(trained.to_str())["model"]
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    tokens = specials + [f"<0x{b:02X}>" for b in range(256)] + list(text["vocab"])
    made = dressed(models.BPE({t: i for i, t in enumerate(tokens)}, [tuple(m) for m in text["merges"]],
                              unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.add_special_tokens([*specials, "<start_of_turn>", "<end_of_turn>"])
    made.add_tokens([AddedToken(t, normalized=False)
                     for t in ("\n", "\n\n", "\n\n\n", "\t", "\u2581\u2581", "\u2581\u2581\u2581", "<b>")])
    made.post_processor = processors.TemplateProcessing(single="<bos> $A",
                                                        special_tokens=[("<bos>", 2)])
    return made


def makers() -> dict[str, Any]:
    return {"gpt2": gpt2, "roberta": roberta, "prefix-space": prefix_space, "llama3": llama3,
            "qwen2": qwen2, "bert": lambda n: bert(n, True), "bert-cased": lambda n: bert(n, False),
            "sequence": sequence, "gemma": gemma}


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


def prefixes(result: Comparison, theirs_decode: Any, ours: Ours, ids: list[int]) -> None:
    """Each prefix as text; and what is shown while it grows, of which nothing is taken back."""
    whole, shown = ours.decode(ids), ""
    for n in range(len(ids) + 1):
        result.check("text", ids[:n], theirs_decode(ids[:n]), ours.decode(ids[:n]))
        partial = ours.decode(ids[:n], True)
        result.check("growing text", ids[:n], True, partial.startswith(shown) and whole.startswith(partial))
        shown = partial


def compare(name: str, theirs_encode: Any, theirs_decode: Any, ours: Ours, size: int,
            lines: Iterable[str], spelt: list[int] | None = None) -> Comparison:
    """`spelt`: tokens of bytes, of which characters are made."""
    result, rng = Comparison(name), random.Random(2)
    for i, line in enumerate(lines):
        ids = theirs_encode(line)
        got = ours.encode(line)
        if got is None:  # no sequence: theirs has special tokens alone
            got = theirs_encode("")
        result.check("ids", line, ids, got)
        result.check("text", ids, theirs_decode(ids), ours.decode(ids))
        ids = [rng.randrange(size) for _ in range(rng.randint(0, 12))]
        result.check("text", ids, theirs_decode(ids), ours.decode(ids))
        if spelt:
            ids = [i for _ in range(rng.randint(1, 5)) for i in rng.choice((
                [rng.randrange(size)], [rng.choice(spelt)],
                [spelt[b] for b in chr(rng.choice((rng.randrange(0x800), rng.randrange(0xe000, 0x2ffff)))).encode()]))]
            result.check("text", ids, theirs_decode(ids), ours.decode(ids))
        if i % 20 == 0:
            prefixes(result, theirs_decode, ours, theirs_encode(line)[:60])
            prefixes(result, theirs_decode, ours, ids)
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
        kind = "GemmaTokenizer" if name == "gemma" else "PreTrainedTokenizerFast"
        write(work / name, made, {"tokenizer_class": kind}, False)
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


# What transformers has families of SentencePiece in: the class, its file, the ids of special pieces,
# the kind of model, the normal form, a source and a target.
FAIRSEQ = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}
PAD_FIRST = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
FAMILIES: dict[str, tuple[str, str, dict[str, int], str, str, str | None, str | None]] = {
    "nllb": ("NllbTokenizer", "sentencepiece.bpe.model", FAIRSEQ, "bpe", "nmt_nfkc", "fra_Latn", "deu_Latn"),
    "nllb-unigram": ("NllbTokenizer", "sentencepiece.bpe.model", FAIRSEQ, "unigram", "identity", "zul_Latn", "ace_Arab"),
    "mbart": ("MBartTokenizer", "sentencepiece.bpe.model", FAIRSEQ, "unigram", "nmt_nfkc", "ro_RO", "en_XX"),
    "mbart50": ("MBart50Tokenizer", "sentencepiece.bpe.model", FAIRSEQ, "unigram", "nmt_nfkc", "sl_SI", "de_DE"),
    "m2m_100": ("M2M100Tokenizer", "sentencepiece.bpe.model", FAIRSEQ, "bpe", "nmt_nfkc", "fr", "zu"),
    "m2m_100-unigram": ("M2M100Tokenizer", "sentencepiece.bpe.model", FAIRSEQ, "unigram", "identity", "en", "af"),
    "t5": ("T5Tokenizer", "spiece.model", PAD_FIRST, "unigram", "nmt_nfkc", None, None),
    "t5-bpe": ("T5Tokenizer", "spiece.model", PAD_FIRST, "bpe", "nfkc_cf", None, None),
    "pegasus": ("PegasusTokenizer", "spiece.model", PAD_FIRST, "unigram", "nmt_nfkc", None, None),
    "llama": ("LlamaTokenizer", "tokenizer.model", FAIRSEQ, "bpe", "identity", None, None),
    "llama-unigram": ("LlamaTokenizer", "tokenizer.model", FAIRSEQ, "unigram", "nmt_nfkc", None, None),
}
TOKEN = {"__type": "AddedToken", "content": "<unk>", "lstrip": False, "normalized": False, "rstrip": False,
         "single_word": False, "special": True}
# Changes of tokenizer_config.json that families are compared with, too.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "nllb": [{"legacy_behaviour": True}], "t5": [{"legacy": False}, {"add_prefix_space": False}, {"extra_ids": 7}],
    "pegasus": [{"offset": 11}],
    "llama": [{"legacy": False, "bos_token": "<s>"}, {"add_prefix_space": False}, {"add_prefix_space": None},
              {"add_bos_token": False, "add_eos_token": True}, {"unk_token": TOKEN | {"normalized": True}},
              {"add_eos_token": True, "legacy": False, "add_prefix_space": False},
              {"added_tokens_decoder": {"3": TOKEN | {"content": "<0x00>"}, "4000": TOKEN | {
                  "content": "<mask>", "lstrip": True, "special": False}, "4001": TOKEN | {
                  "content": "it's", "normalized": True, "special": False}}, "legacy": None},
              {"pad_token": "<pad>", "eos_token": "<|im_start|>", "additional_special_tokens": ["<|endoftext|>"],
               "add_eos_token": True}],
    "llama-unigram": [{"legacy": False}],
}


def train_spm(directory: Path, name: str, size: int, small: bool) -> None:
    """`small`: of few lines, with few normal forms."""
    import sentencepiece
    _, file, ids, kind, rule, _, _ = FAMILIES[name]
    directory.mkdir(parents=True, exist_ok=True)
    rules = directory / "rules.tsv"
    text_corpus.write_rules(rules)
    forms = {"normalization_rule_tsv": os.path.relpath(rules)} if small and rule != "identity" else {
        "normalization_rule_name": rule}
    lines = text_corpus.lines(2000, 5, False)
    fallback: dict[str, Any] = {"byte_fallback": True, "user_defined_symbols": ["www.", "  "], "control_symbols": [
        "[INST]"], "split_digits": True} if "llama" in name else {}
    if small:
        lines = [line for line in lines if all(ord(c) < 0x100 for c in line)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_type=kind,
        model_prefix=os.path.relpath(directory / "spm"), vocab_size=size,
        character_coverage=0.98 if small else 0.99, num_threads=1, minloglevel=2,
        hard_vocab_limit=False, **forms, **ids, **fallback)
    rules.unlink()
    (directory / "spm.vocab").unlink()
    (directory / "spm.model").rename(directory / file)


def added_tokens(codes: Iterable[str], first: int) -> dict[str, Any]:
    """As save_pretrained writes them: languages, then the mask, as NLLB-200 has them."""
    plain = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    tokens = {str(i): {"content": t, **plain} for i, t in enumerate(["<s>", "<pad>", "</s>", "<unk>"])}
    tokens |= {str(first + i): {"content": code, **plain} for i, code in enumerate(codes)}
    tokens[str(first + len(tokens) - 4)] = {"content": "<mask>", **plain, "lstrip": True, "normalized": True}
    return tokens


def write_family(directory: Path, name: str, size: int, small: bool = False) -> dict[str, Any]:
    """A directory of the family as it is published; its tokenizer_config.json.  `small`: few languages."""
    import sentencepiece
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB
    train_spm(directory, name, size, small)
    spm = sentencepiece.SentencePieceProcessor(model_file=str(directory / FAMILIES[name][1]))
    pieces = [spm.id_to_piece(i) for i in range(spm.get_piece_size())]
    config: dict[str, Any] = {"tokenizer_class": FAMILIES[name][0]}
    if name.startswith("nllb"):
        codes = ["ace_Arab", "deu_Latn", "eng_Latn", "fra_Latn", "zul_Latn"] if small else NLLB
        config["added_tokens_decoder"] = added_tokens(codes, len(pieces) + 1)
        config["additional_special_tokens"] = codes
    if name.startswith("m2m"):
        tokens = ["<s>", "<pad>", "</s>", "<unk>"] + pieces[3:40] + pieces[45:]
        (directory / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}) + "\n")
        (directory / "special_tokens_map.json").write_text(json.dumps(
            {"additional_special_tokens": [f"__{code}__" for code in M2M["m2m100"]]}) + "\n")
    (directory / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    return config


def compare_family(library: ctypes.CDLL, title: str, directory: Path, name: str, lines: list[str]) -> Comparison:
    from transformers import AutoTokenizer
    languages = dict(zip(("src_lang", "tgt_lang"), FAMILIES[name][5:]))
    theirs = AutoTokenizer.from_pretrained(directory, **languages)
    ours = Ours(library, directory, *FAMILIES[name][5:])
    spelt = theirs.convert_tokens_to_ids([f"<0x{b:02X}>" for b in range(256)]) if "llama" in name else None
    result = compare(title, lambda s: theirs(s)["input_ids"],
                     lambda i: theirs.decode(i, skip_special_tokens=True), ours, len(theirs) + 3, lines, spelt)
    if FAMILIES[name][6]:
        result.check("id", FAMILIES[name][6], theirs._build_translation_inputs(
            "a", return_tensors=None, src_lang=FAMILIES[name][5], tgt_lang=FAMILIES[name][6])["forced_bos_token_id"],
            ours.forced_bos())
    return result


def families(library: ctypes.CDLL, lines: list[str], work: Path, only: list[str]) -> list[Comparison]:
    """Each family in its published files, with tokenizer.json besides, and with other options."""
    from transformers import AutoTokenizer
    results = []
    for name in only or FAMILIES:
        config = write_family(work / name, name, 4000)
        results.append(compare_family(library, name, work / name, name, lines))
        theirs = AutoTokenizer.from_pretrained(work / name)
        if theirs.is_fast:
            theirs.save_pretrained(work / f"{name}-json")
            results.append(compare_family(library, f"{name} (json)", work / f"{name}-json", name, lines))
        for variant in VARIANTS.get(name, []):
            directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work))
            (directory / FAMILIES[name][1]).write_bytes((work / name / FAMILIES[name][1]).read_bytes())
            (directory / "tokenizer_config.json").write_text(json.dumps(config | variant) + "\n")
            title = f"{name} " + " ".join(f"{k}={'...' if isinstance(v, dict) else v}" for k, v in variant.items())
            results.append(compare_family(library, title, directory, name, lines))
            if "llama" in name:  # whose tokenizer.json has another model and other words
                AutoTokenizer.from_pretrained(directory).save_pretrained(directory)
                results.append(compare_family(library, f"{title} (json)", directory, name, lines))
    return results


def bart(library: ctypes.CDLL, lines: list[str], work: Path) -> list[Comparison]:
    """Byte-level BPE in a directory of BART: the older files alone, and tokenizer.json."""
    from transformers import AutoTokenizer
    write(work / "bart", roberta(2000), {"tokenizer_class": "BartTokenizer"}, True)
    theirs = AutoTokenizer.from_pretrained(work / "bart")
    theirs.save_pretrained(work / "bart-json")
    return [compare(name, lambda s: theirs(s)["input_ids"],
                    lambda i: theirs.decode(i, skip_special_tokens=True), Ours(library, work / name),
                    len(theirs), lines) for name in ("bart", "bart-json")]


def published(library: ctypes.CDLL, directory: Path, lines: list[str]) -> Comparison:
    """A folder of somebody else, as AutoTokenizer takes it."""
    from transformers import AutoTokenizer
    theirs = AutoTokenizer.from_pretrained(directory)
    names = [f"<0x{b:02X}>" for b in range(256)]
    spelt = [theirs.get_vocab().get(name) for name in names]
    specials = ["", "", "", *theirs.all_special_tokens]
    lines = [line + specials[i % len(specials)] for i, line in enumerate(lines)]
    return compare(directory.name, lambda s: theirs(s)["input_ids"],
                   lambda i: theirs.decode(i, skip_special_tokens=True), Ours(library, directory), len(theirs),
                   lines, None if None in spelt else spelt)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=20000)
    parser.add_argument("--characters", action="store_true", help="every code point alone")
    parser.add_argument("--no-marian", action="store_true")
    parser.add_argument("--directory", type=Path, action="append", default=[],
                        help="these folders alone, which are there already")
    parser.add_argument("--family", action="append", default=[], choices=[*FAMILIES, "bart"],
                        help="these families alone (default: all, and the pipelines)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    library = ctypes.CDLL(str(options.library.resolve()))
    lines = text_corpus.lines(options.lines, 7, True)
    if options.characters:
        lines = [f"a{chr(c)}b 1{chr(c)} A{chr(c)}\uff21{chr(c)}\u0301" for c in range(1, 0x30000) if not 0xd800 <= c < 0xe000]
    if options.directory:
        return int(any([published(library, directory, lines).wrong for directory in options.directory]))
    with tempfile.TemporaryDirectory() as work:
        results = [] if options.family else pipelines(library, lines, Path(work))
        named = [name for name in options.family if name != "bart"]
        if named or not options.family:
            results += families(library, lines, Path(work), named)
        if not options.family or "bart" in options.family:
            results += bart(library, lines, Path(work))
        if not options.no_marian and not options.family:
            for kind, rule in (("unigram", "nmt_nfkc"), ("bpe", "identity"), ("unigram", "nfkc_cf")):
                results.append(marian(library, lines, Path(work), kind, rule))
    return int(any(r.wrong for r in results))


if __name__ == "__main__":
    sys.exit(main())
