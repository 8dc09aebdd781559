#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/models: tiny random checkpoints with what PyTorch computes from them.

Development only: the tests need the files, not this script.  For the Marian family the reference
is the real thing, transformers' MarianMTModel reading the very directory that is written here; for
the paper's family it is a plain PyTorch forward below.  Every directory gets config.json, perhaps
generation_config.json, model.safetensors, and expected.json: for some sources the encoder output,
logits of a given target and cross-attention, all three computed in double precision, and the
results of greedy and beam search, in single precision as transformers runs it.  Encoders alone that
come with a tokenizer have texts.txt and what `isobit embed` and `isobit fill` are to print of them.

    pip install torch transformers==4.51.3
    tools/make_golden.py
"""

import argparse
import copy
import json
from pathlib import Path

import torch
import torch.nn.functional as F

from golden_models import (
    BEAM_SETTINGS, Decoder, DTYPES, expect, find_seed, GREEDY_SETTINGS, in_double, is_varied,
    Marian, normal, numbers, Paper, randomize, ROOT, Seq2Seq, summary, weights, write_json,
    write_safetensors)


def make_once(name, seed, out, config, generation, dtype, logits_bias=True,
              stored_positions=False, drop_prefix=False, alias=None, eos_bias=0.0,
              forbid_output=False):
    rng = torch.Generator().manual_seed(seed)
    directory = out / name
    directory.mkdir(parents=True, exist_ok=True)
    tensors = weights(config, rng, logits_bias, stored_positions)
    if logits_bias:
        eos = config["eos_token_id"]
        for token in eos if isinstance(eos, list) else [eos]:
            tensors["final_logits_bias"][0, token] += eos_bias
    tensors = {n: t.to(DTYPES[dtype]) for n, t in tensors.items()}
    if dtype == "F16":  # subnormals of the storage type must survive the conversion
        tensors["model.encoder.layers.0.fc1.bias"][:4] = torch.tensor(
            [2.0 ** -24, -(2.0 ** -24), 1023 * 2.0 ** -24, 0.0]).half()
    stored = dict(tensors)
    if alias:
        stored[alias] = stored.pop("model.shared.weight")
    if drop_prefix:
        stored = {n.removeprefix("model."): t for n, t in stored.items()}
    write_safetensors(directory / "model.safetensors", stored, dtype, {"format": "pt"})
    write_json(directory / "config.json", config)
    if generation:
        write_json(directory / "generation_config.json", generation)
    lengths = (1, 5, 9, 6)
    if config["model_type"] == "marian":
        reference = Marian(directory)
        if alias or drop_prefix:
            raise ValueError("the reference would not find renamed tensors")
        before = rng.get_state()
        cases = expect(reference, config, rng, lengths, reference.forward)
        if cases and forbid_output:
            # Forbid a pair and a triple that the search has found.  The first pair begins with the
            # start token: transformers ignores words longer than the history.
            ids = [config["decoder_start_token_id"]] + cases[0]["greedy"][0]["ids"]
            generation = dict(generation, bad_words_ids=generation["bad_words_ids"] + [
                ids[0:2], ids[1:3], ids[3:6]])
            write_json(directory / "generation_config.json", generation)
            reference = Marian(directory)
            rng.set_state(before)
            cases = expect(reference, config, rng, lengths, reference.forward)
    else:
        reference = Paper(config, {n: t.double() for n, t in tensors.items()})
        cases = expect(reference, config, rng, lengths,
                       lambda s, t: reference.decode(reference.encode(s), t))
    if not cases:
        return False
    (directory / "expected.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    summary(name, directory, seed, cases)
    return True


@torch.no_grad()
def long_case(reference, config, rng):
    """Some rows of a source and a target beyond the distances that buckets tell apart."""
    source, target = (torch.randint(3, config["vocab_size"], (n,), generator=rng).tolist()
                      for n in (530, 520))
    target[0] = config["decoder_start_token_id"]
    encoded, logits = reference.encode(source), reference.forward(source, target)[0]
    rows = [sorted({0, 1, 100, 127, 128, 129, n // 2, 511, 512, 513, n - 1}) for n in (530, 520)]
    return {"source": source, "target": target, "source_rows": rows[0], "target_rows": rows[1],
            "encoder": numbers(encoded[rows[0]]), "logits": numbers(logits[rows[1]])}


def make_saved_once(name, seed, out, config, generation, dtype, last_norm, eos_bias=1.0, gain=1.0,
                    longer=False, stray=()):
    """A folder as save_pretrained of transformers writes it, and what transformers computes.
    `stray`: tensors that the class does not save, with their shapes."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, GenerationConfig
    rng = torch.Generator().manual_seed(seed)
    directory = out / name
    config = AutoConfig.for_model(**config)
    model = AutoModelForSeq2SeqLM.from_config(config)
    randomize(model, rng, last_norm)
    model.get_submodule(last_norm).weight.data *= gain
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias = normal(rng, *model.final_logits_bias.shape, std=0.2)
        model.final_logits_bias[0, config.eos_token_id] += eos_bias
    model.generation_config = GenerationConfig(**generation)
    model.to(DTYPES[dtype]).save_pretrained(directory)
    if stray:
        from safetensors.torch import load_file
        path = directory / "model.safetensors"
        write_safetensors(path, dict(load_file(path), **{
            n: normal(rng, *shape, std=1.0).to(DTYPES[dtype]) for n, shape in stray}), dtype,
            {"format": "pt"})
    reference = Seq2Seq(directory)
    cases = expect(reference, config.to_dict(), rng, (1, 5, 9, 6), reference.forward, least=3)
    if not cases:
        return False
    (directory / "expected.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    if longer:
        case = long_case(reference, config.to_dict(), rng)
        (directory / "long.json").write_text(json.dumps(case, separators=(",", ":")) + "\n")
    summary(name, directory, seed, cases)
    return True


def make_buckets(path):
    """The first distance of each bucket of T5, of one direction; all distances are looked at."""
    from transformers.models.t5.modeling_t5 import T5Attention
    cases = []
    for n, most in ((32, 128), (16, 128), (2, 3), (3, 20), (8, 20), (5, 64), (64, 1000), (32, 17),
                    (12, 12345)):
        distance = torch.arange(2 * most + 100)
        one = T5Attention._relative_position_bucket(-distance, False, n, most)
        both = T5Attention._relative_position_bucket(
            torch.cat([-distance, distance[1:]]), True, 2 * n, most)
        assert torch.equal(both, torch.cat([one, one[1:] + n]))
        assert bool((one[1:] >= one[:-1]).all()) and int(one[-1]) == n - 1
        first = torch.searchsorted(one, torch.arange(n)).tolist()
        cases.append({"buckets": n, "max_distance": most, "first": first})
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")


# Tokenizers of 50 tokens: pieces of words, or bytes of which most are missing.
WORD_PIECES = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog sat on mat big red ran to and is it house tree "
    "small green sea sun b c d e o s t ##s ##ing ##ed ##er ##y ##a ##e ##o ##t ##n ##r . , ! ? - 7 '"
).split()
BYTE_LETTERS = "<s> <pad> </s> <unk> <mask> a b c d e g h i l m n o r s t u T . \u0120".split()
BYTE_MERGES = (
    "\u0120 t|h e|\u0120t he|\u0120 c|a t|\u0120c at|\u0120 s|\u0120s at|\u0120 o|\u0120o n|\u0120 m|\u0120m at|"
    "e r|i n|in g|\u0120 d|o g|\u0120d og|r e|\u0120 g|\u0120g re|e n|\u0120gre en|T he|r a|\u0120 ra").split("|")


def write_word_pieces(directory):
    from transformers import BertTokenizer
    (directory / "vocab.txt").write_text("\n".join(WORD_PIECES) + "\n")
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer"})
    return BertTokenizer.from_pretrained(directory)


def write_byte_pairs(directory):
    from transformers import RobertaTokenizer
    tokens = BYTE_LETTERS + [merge.replace(" ", "") for merge in BYTE_MERGES]
    write_json(directory / "vocab.json", {token: i for i, token in enumerate(tokens)})
    (directory / "merges.txt").write_text("#version: 0.2\n" + "\n".join(BYTE_MERGES) + "\n",
                                          encoding="utf-8")
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": "RobertaTokenizer"})
    return RobertaTokenizer.from_pretrained(directory)


SENTENCES = [
    "The cat sat on the mat.", "", "a", "  A big red Dog, running to the sea!  ", "\u65e5 cat's 7",
    "the dog sat on the tree and the cat ran to the small green house, is it the sun? the cat!",
    "\u2003caf\u00e9 sea - Sun\u00a0", "\t"]


def write_vectors(directory, exact, tokenizer, most):
    """The vectors of SENTENCES, a line for each after `pooling normalize`, cut as
    sentence-transformers does it, which strips first."""
    (directory / "texts.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    lines = []
    for pooling, unit in (("mean", "yes"), ("mean", "no"), ("cls", "yes"), ("max", "no"),
                          ("pooler", "no")):
        for text in SENTENCES:
            ids = tokenizer(text.strip(), truncation=True, max_length=most, return_tensors="pt")
            out = in_double(exact, **ids)
            x = out.last_hidden_state[0]
            y = {"mean": x.mean(0), "cls": x[0], "max": x.max(0).values,
                 "pooler": out.pooler_output[0]}[pooling]
            y = F.normalize(y, dim=0) if unit == "yes" else y
            lines.append(" ".join([pooling, unit] + [f"{v:.8g}" for v in y.tolist()]))
    (directory / "vectors.txt").write_text("\n".join(lines) + "\n")


def write_fillings(directory, exact, tokenizer, texts):
    """What `isobit fill --top 3` prints, but for the digits of probabilities."""
    lines = []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt")["input_ids"][0]
        out = in_double(exact, ids[None])
        logits = getattr(out, "logits", getattr(out, "prediction_logits", None))[0]
        masks = (ids == tokenizer.mask_token_id).nonzero().flatten().tolist()
        for number, position in enumerate(masks, 1):
            if len(masks) > 1:
                lines.append(f"mask {number}")
            best = logits[position].softmax(0).topk(3)
            for p, token in zip(best.values.tolist(), best.indices.tolist()):
                shown = (tokenizer.decode([token], skip_special_tokens=True)
                         or tokenizer.convert_ids_to_tokens(token))
                lines.append(f"  {p:.9f}  {json.dumps(shown, ensure_ascii=False)}")
            ids[position] = best.indices[0]
        lines.append(tokenizer.decode(ids, skip_special_tokens=True))
    (directory / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (directory / "fillings.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_encoder(name, out, config, kind, dtype, old_names=False, folder=(), write_tokenizer=None,
                 masked=()):
    """An encoder alone.  `kind` is the class that saves it; `folder`: files of
    sentence-transformers by name; `masked`: texts with masks, for models that can fill them."""
    import transformers
    rng = torch.Generator().manual_seed(1)
    directory = out / name
    config = transformers.AutoConfig.for_model(**config)
    model = getattr(transformers, kind)(config)
    randomize(model, rng, None)
    model.to(DTYPES[dtype]).save_pretrained(directory)
    if old_names:
        from safetensors.torch import load_file
        path = directory / "model.safetensors"
        write_safetensors(path, {
            n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias",
                                                                     "LayerNorm.beta"): t
            for n, t in load_file(path).items()}, dtype, {"format": "pt"})
    for file, value in folder:
        (directory / file).parent.mkdir(exist_ok=True)
        write_json(directory / file, value)
    exact = copy.deepcopy(model).float().double().eval()
    cases = []
    with torch.no_grad():
        for length in (1, 5, 9, 38):
            source = torch.randint(3, config.vocab_size, (1, length), generator=rng)
            out_ = in_double(exact, source, output_hidden_states=True)
            logits = getattr(out_, "logits", getattr(out_, "prediction_logits", None))
            hidden = out_.hidden_states[-1][0]
            pooler = getattr(getattr(exact, "bert", exact), "pooler", None)
            cases.append({
                "source": source[0].tolist(), "encoder": numbers(hidden),
                "logits": None if logits is None else numbers(logits[0]),
                "pooled": None if pooler is None else numbers(pooler(hidden[None])[0]),
                "mean": numbers(hidden.mean(0)), "max": numbers(hidden.max(0).values),
                "unit": numbers(F.normalize(hidden.mean(0), dim=0))})
    (directory / "expected.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    with torch.no_grad():
        if write_tokenizer and masked:
            write_fillings(directory, exact, write_tokenizer(directory), masked)
        elif write_tokenizer:
            most = dict(folder)["sentence_bert_config.json"]["max_seq_length"]
            write_vectors(directory, exact, write_tokenizer(directory), most)
    print(f"{name:20}{sum(f.stat().st_size for f in directory.iterdir()):9} bytes")


def make_decoder_once(name, seed, out, config, generation, dtype, last_norm):
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig
    rng = torch.Generator().manual_seed(seed)
    directory = out / name
    config = AutoConfig.for_model(**config)
    model = AutoModelForCausalLM.from_config(config)
    randomize(model, rng, last_norm)
    model.generation_config = GenerationConfig(**generation)
    model.to(DTYPES[dtype]).save_pretrained(directory)
    reference = Decoder(directory)
    prompts = [torch.randint(3, config.get_text_config().vocab_size, (n,), generator=rng).tolist()
               for n in (1, 5, 9, 6)]
    if not is_varied([reference.greedy(p, {}) for p in prompts]):
        return False
    cases = []
    for prompt in prompts:
        cases.append({"source": prompt, "logits": numbers(reference.logits(prompt)),
                      "greedy": [{"settings": s, "ids": reference.greedy(prompt, s)}
                                 for s in GREEDY_SETTINGS], "beams": []})
        for settings in BEAM_SETTINGS:
            ids, scores = reference.beams(prompt, settings)
            cases[-1]["beams"].append({"settings": settings, "ids": ids, "scores": scores})
    (directory / "expected.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    summary(name, directory, seed, cases)
    return True


def make_longer(name, out, file, changes, count):
    """Of a folder with other keys: a text of more than the original positions, computed whole, and
    what follows it."""
    from transformers import AutoConfig, AutoModelForCausalLM
    directory = out / name
    config = AutoConfig.from_pretrained(directory, attn_implementation="eager", **changes)
    model = AutoModelForCausalLM.from_pretrained(directory, config=config,
                                                 torch_dtype=torch.float32).eval()
    rng = torch.Generator().manual_seed(5)
    source = torch.randint(3, config.vocab_size, (count,), generator=rng).tolist()
    case = {"source": source}
    if not changes:  # else the base of each step is another
        given = dict(attention_mask=torch.ones(1, count, dtype=torch.long), do_sample=False,
                     max_new_tokens=8)
        case["greedy"], case["beams"] = [
            model.generate(torch.tensor([source]), num_beams=n, **given)[0, count:].tolist()
            for n in (1, 3)]
    exact = copy.deepcopy(model).double()
    logits = in_double(exact, torch.tensor([source]), use_cache=False).logits[0]
    case["rows"] = [0, 1, count // 2, count - 2, count - 1]
    case["logits"] = numbers(logits[case["rows"]])
    (directory / file).write_text(json.dumps(case, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "data" / "models")
    parser.add_argument("--only", help="the name of one directory")
    arguments = parser.parse_args()
    out = arguments.out
    torch.set_num_threads(1)

    def make(name, *rest, **options):
        if arguments.only in (None, name):
            find_seed(make_once, name, *rest, **options)

    def make_saved(name, *rest, **options):
        if arguments.only in (None, name):
            find_seed(make_saved_once, name, *rest, **options)

    marian = {
        "model_type": "marian", "architectures": ["MarianMTModel"], "vocab_size": 50,
        "decoder_vocab_size": 50, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2,
        "num_hidden_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "activation_function": "swish",
        "max_position_embeddings": 40, "scale_embedding": True, "pad_token_id": 49,
        "decoder_start_token_id": 49, "eos_token_id": 0, "bos_token_id": 0,
        "forced_eos_token_id": 0, "bad_words_ids": [[49]], "num_beams": 4, "max_length": 14,
        "share_encoder_decoder_embeddings": True, "dropout": 0.1,
    }
    generation = {"bad_words_ids": [[49]], "bos_token_id": 0, "decoder_start_token_id": 49,
                  "eos_token_id": 0, "forced_eos_token_id": 0, "max_length": 14, "num_beams": 4,
                  "pad_token_id": 49, "renormalize_logits": True}
    make("marian-swish", out, marian, generation, "F32", eos_bias=1.0)
    # eos is not 0; numbers that are null or have a fraction of .0; positions in the file.
    make("marian-relu-f16", out,
         dict(marian, activation_function="relu", eos_token_id=17, forced_eos_token_id=17,
              num_beams=None, scale_embedding=False, d_model=32, encoder_ffn_dim=24),
         dict(generation, eos_token_id=[17], forced_eos_token_id=17, renormalize_logits=False,
              bad_words_ids=[[49], [17]], max_length=12),
         "F16", stored_positions=True, eos_bias=1.5, forbid_output=True)
    # Two vocabularies, unequal stacks, a width that is no multiple of 16, two ends, no
    # generation_config.json.
    make("marian-gelu-bf16", out,
         dict(marian, activation_function="gelu", vocab_size=40, decoder_vocab_size=53, d_model=24,
              encoder_attention_heads=3, decoder_attention_heads=2, encoder_layers=1,
              decoder_layers=3, share_encoder_decoder_embeddings=False, pad_token_id=39,
              decoder_start_token_id=39, bad_words_ids=[[39]], eos_token_id=[2, 11],
              forced_eos_token_id=2, renormalize_logits=True),
         None, "BF16", eos_bias=1.0)
    paper = {
        "model_type": "isobit-transformer", "vocab_size": 50, "d_model": 16, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "activation_function": "relu",
        "max_position_embeddings": 40, "scale_embedding": True, "layer_norm_epsilon": 1e-6,
        "pad_token_id": 0, "bos_token_id": 1, "decoder_start_token_id": 1, "eos_token_id": 2,
        "unk_token_id": 3, "num_beams": 1, "max_length": 20,
        "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
    }
    make("paper", out, paper, None, "F32", logits_bias=False)
    make("paper-untied-f16", out,
         dict(paper, tie_word_embeddings=False, layer_norm_epsilon=1e-4, d_model=32), None, "F16",
         logits_bias=False)
    make("paper-alias-bf16", out, dict(paper, decoder_layers=1), None, "BF16",
         logits_bias=False, alias="lm_head.weight", drop_prefix=True)

    sizes = {
        "vocab_size": 50, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32, "max_position_embeddings": 40,
    }
    fairseq = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    post, pre = "model.decoder.layers.1.final_layer_norm", "model.decoder.layer_norm"
    make_saved("bart", out, dict(sizes, model_type="bart", decoder_start_token_id=2,
                                 forced_eos_token_id=2, **fairseq),
               dict(fairseq, decoder_start_token_id=2, forced_bos_token_id=0,
                    forced_eos_token_id=2, max_length=14, num_beams=4), "F32", post)
    make_saved("mbart-f16", out,
               dict(sizes, model_type="mbart", d_model=24, encoder_attention_heads=3,
                    scale_embedding=True, activation_function="relu", decoder_start_token_id=5,
                    forced_eos_token_id=2, **fairseq),
               dict(fairseq, decoder_start_token_id=5, forced_eos_token_id=2, max_length=14,
                    num_beams=5), "F16", pre)
    ids = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    make_saved("pegasus-bf16", out,
               dict(sizes, model_type="pegasus", decoder_ffn_dim=48, scale_embedding=True,
                    activation_function="relu", forced_eos_token_id=1, **ids),
               dict(ids, forced_eos_token_id=1, max_length=13, num_beams=8), "BF16", pre)
    make_saved("m2m-100", out,
               dict(sizes, model_type="m2m_100", scale_embedding=True, decoder_start_token_id=2,
                    **fairseq),
               dict(fairseq, decoder_start_token_id=2, forced_bos_token_id=7, max_length=14,
                    num_beams=4), "F32", pre)

    final = "decoder.final_layer_norm"
    t5 = {"vocab_size": 50, "d_model": 16, "d_kv": 8, "num_heads": 2, "num_layers": 2, "d_ff": 32,
          **ids}
    t5_generation = dict(ids, max_length=14, num_beams=4)
    make_saved("t5", out, dict(t5, model_type="t5"), t5_generation, "F32", final, gain=24.0,
               longer=True,
               stray=[("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                       (32, 2))])
    make_saved("flan-t5-bf16", out,
               dict(t5, model_type="t5", d_model=24, d_kv=12, num_heads=3, d_ff=40, num_layers=1,
                    num_decoder_layers=3, feed_forward_proj="gated-gelu",
                    tie_word_embeddings=False),
               t5_generation, "BF16", final, gain=6.0, longer=True)
    make_saved("mt5-f16", out,
               dict(t5, model_type="mt5", d_model=32, d_ff=24, relative_attention_num_buckets=8,
                    relative_attention_max_distance=20, feed_forward_proj="gated-silu"),
               t5_generation, "F16", final, gain=6.0, longer=True)
    make_saved("umt5", out, dict(t5, model_type="umt5", num_heads=3, d_kv=4), t5_generation, "F32",
               final, gain=24.0, longer=True)
    if arguments.only in (None, "t5_buckets"):
        make_buckets(out / "t5_buckets.json")

    encoders = {
        "vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 40, "max_position_embeddings": 40,
    }
    if arguments.only in (None, "bert"):
        make_encoder("bert", out, dict(encoders, model_type="bert"), "BertForPreTraining", "F32",
                     write_tokenizer=write_word_pieces,
                     masked=["The cat sat on the [MASK].", "[MASK]", "a [MASK] dog[MASK] to the sea"])
    if arguments.only in (None, "roberta-f16"):
        make_encoder("roberta-f16", out,
                     dict(encoders, model_type="roberta", type_vocab_size=1, layer_norm_eps=1e-5,
                          max_position_embeddings=42, hidden_size=32, num_attention_heads=2),
                     "RobertaForMaskedLM", "F16", write_tokenizer=write_byte_pairs,
                     masked=["The cat sat on the <mask>.", "<mask>", "The dog is <mask> <mask>g"])
    if arguments.only in (None, "distilbert-bf16"):
        make_encoder("distilbert-bf16", out,
                     {"model_type": "distilbert", "vocab_size": 50, "dim": 16, "n_layers": 3,
                      "n_heads": 2, "hidden_dim": 48, "max_position_embeddings": 40},
                     "DistilBertForMaskedLM", "BF16")
    if arguments.only in (None, "t5-encoder-bf16"):
        make_encoder("t5-encoder-bf16", out,
                     {"model_type": "t5", "vocab_size": 50, "d_model": 24, "d_kv": 12,
                      "num_heads": 3, "d_ff": 40, "num_layers": 2,
                      "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
                      "feed_forward_proj": "gated-gelu"},
                     "T5EncoderModel", "BF16")
    if arguments.only in (None, "minilm"):
        module = "sentence_transformers.models."
        make_encoder("minilm", out, dict(encoders, model_type="bert"), "BertModel", "F32",
                     old_names=True, write_tokenizer=write_word_pieces, folder=[
                         ("modules.json", [
                             {"idx": 0, "name": "0", "path": "", "type": module + "Transformer"},
                             {"idx": 1, "name": "1", "path": "1_Pooling",
                              "type": module + "Pooling"},
                             {"idx": 2, "name": "2", "path": "2_Normalize",
                              "type": module + "Normalize"}]),
                         ("1_Pooling/config.json", {
                             "word_embedding_dimension": 24, "pooling_mode_cls_token": False,
                             "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}),
                         ("sentence_bert_config.json",
                          {"max_seq_length": 16, "do_lower_case": False})])


    def make_decoder(name, *rest):
        if arguments.only in (None, name):
            with torch.no_grad():
                find_seed(make_decoder_once, name, *rest)

    ids = {"bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 0}
    gpt2 = {"model_type": "gpt2", "vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2,
            "n_positions": 40}
    make_decoder("gpt2", out, dict(gpt2, **ids), dict(ids, max_new_tokens=12), "F32",
                 "transformer.ln_f")
    make_decoder("gpt2-untied-f16", out,
                 dict(gpt2, n_embd=24, n_head=3, n_inner=40, n_layer=3, tie_word_embeddings=False,
                      activation_function="gelu", **ids), dict(ids, max_length=30, num_beams=3),
                 "F16", "transformer.ln_f")

    llama = {"model_type": "llama", "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "max_position_embeddings": 40, "rope_theta": 100.0}
    # Heads that share keys, biases everywhere, positions that are stretched.
    make_decoder("llama", out,
                 dict(llama, attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
                      rope_scaling={"rope_type": "linear", "factor": 2.5}, **ids),
                 dict(ids, max_new_tokens=12), "F32", "model.norm")
    make_decoder("llama3-bf16", out,
                 dict(llama, hidden_size=40, num_attention_heads=6, num_key_value_heads=3,
                      head_dim=12, tie_word_embeddings=True,
                      rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0,
                                    "original_max_position_embeddings": 16}, **ids),
                 dict(ids, max_new_tokens=12, num_beams=2), "BF16", "model.norm")
    # The ramp of YaRN lies within the rates, and its scale of attention is said by two numbers.
    make_decoder("llama-yarn", out,
                 dict(llama, head_dim=16, rope_scaling={
                     "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10,
                     "beta_fast": 1.0, "beta_slow": 0.25, "mscale": 1.4, "mscale_all_dim": 0.3},
                     **ids),
                 dict(ids, max_new_tokens=12), "F32", "model.norm")
    # As far as the original positions.
    make_decoder("llama-longrope", out,
                 dict(llama, max_position_embeddings=80, original_max_position_embeddings=40,
                      rope_scaling={"rope_type": "longrope", "short_factor": [1.0, 1.25, 2.0, 3.5],
                                    "long_factor": [1.5, 3.0, 8.0, 20.0]}, **ids),
                 dict(ids, max_new_tokens=12), "F32", "model.norm")
    make_decoder("qwen2-f16", out,
                 dict(llama, model_type="qwen2", num_key_value_heads=1, tie_word_embeddings=True,
                      use_sliding_window=False, **ids),
                 dict(ids, max_length=30), "F16", "model.norm")
    make_decoder("mistral", out,
                 dict(llama, model_type="mistral", num_key_value_heads=4, sliding_window=None,
                      **ids),
                 dict(ids, max_new_tokens=12), "F32", "model.norm")
    make_decoder("qwen3-bf16", out,
                 dict(llama, model_type="qwen3", head_dim=12, attention_bias=True,
                      tie_word_embeddings=True, **ids),
                 dict(ids, max_length=30), "BF16", "model.norm")
    # Queries see a few keys only.
    make_decoder("mistral-window", out,
                 dict(llama, model_type="mistral", num_hidden_layers=3, sliding_window=5, **ids),
                 dict(ids, max_new_tokens=12), "F32", "model.norm")
    # A part of each head turns; one tensor for q, k and v, and one for gate and factor.
    phi3 = dict(llama, model_type="phi3", original_max_position_embeddings=40)
    make_decoder("phi3-bf16", out,
                 dict(phi3, partial_rotary_factor=0.75, sliding_window=6, tie_word_embeddings=True,
                      **ids),
                 dict(ids, max_new_tokens=12), "BF16", "model.norm")
    make_decoder("phi3-longrope", out,
                 dict(phi3, max_position_embeddings=80, tie_word_embeddings=False,
                      rope_scaling={"type": "longrope", "short_factor": [1.0, 1.25, 2.0, 3.5],
                                    "long_factor": [1.5, 3.0, 8.0, 20.0]}, **ids),
                 dict(ids, max_new_tokens=12), "F32", "model.norm")
    if arguments.only in (None, "longer"):
        with torch.no_grad():
            make_longer("phi3-longrope", out, "longer.json", {}, 55)
            make_longer("llama", out, "longer.json",
                        {"rope_scaling": {"rope_type": "dynamic", "factor": 3.0}}, 55)
    make_decoder("gemma-bf16", out,
                 dict(llama, model_type="gemma", head_dim=12, num_key_value_heads=1,
                      hidden_act="gelu_pytorch_tanh", **ids),
                 dict(ids, max_new_tokens=12), "BF16", "model.norm")
    opt = {"model_type": "opt", "vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2,
           "num_attention_heads": 3, "ffn_dim": 40, "max_position_embeddings": 40,
           "word_embed_proj_dim": 24}
    make_decoder("opt-f16", out, dict(opt, **dict(ids, pad_token_id=1)),
                 dict(ids, pad_token_id=1, max_new_tokens=12), "F16",
                 "model.decoder.final_layer_norm")
    # From the second layer on.  By transformers 5.24: without flash attention 4.51 gives all layers
    # a window, used or not.
    make_decoder("qwen2-window", out,
                 dict(llama, model_type="qwen2", num_hidden_layers=3, use_sliding_window=True,
                      sliding_window=4, max_window_layers=1, **ids),
                 dict(ids, max_new_tokens=12), "F32", "model.norm")
    # By transformers 5.24, too.  Every third layer sees all keys, and turns otherwise.
    gemma3 = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4,
              "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12,
              "max_position_embeddings": 40, "sliding_window": 5, "sliding_window_pattern": 3,
              "rope_theta": 1000.0, "rope_local_base_freq": 50.0, "query_pre_attn_scalar": 10,
              "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    make_decoder("gemma3-bf16", out, dict(gemma3, model_type="gemma3_text", **ids),
                 dict(ids, max_new_tokens=12), "BF16", "model.norm")
    # Every second layer sees all keys; scores and logits have soft caps.
    make_decoder("gemma2-bf16", out,
                 dict({k: v for k, v in gemma3.items()
                       if k not in ("sliding_window_pattern", "rope_local_base_freq",
                                    "rope_scaling")},
                      model_type="gemma2", attn_logit_softcapping=2.0, final_logit_softcapping=6.0,
                      **ids),
                 dict(ids, max_new_tokens=12), "BF16", "model.norm")
    # With a part for images, which is not read.
    make_decoder("gemma3-part", out,
                 dict(ids, model_type="gemma3", mm_tokens_per_image=4, image_token_index=49,
                      boi_token_index=47, eoi_token_index=48,
                      text_config=dict(gemma3, num_hidden_layers=2, num_key_value_heads=1,
                                       sliding_window_pattern=2, hidden_size=24),
                      vision_config={"hidden_size": 8, "intermediate_size": 8,
                                     "num_hidden_layers": 1, "num_attention_heads": 2,
                                     "image_size": 4, "patch_size": 2}),
                 dict(ids, max_new_tokens=12), "F32", "model.language_model.norm")


if __name__ == "__main__":
    main()
