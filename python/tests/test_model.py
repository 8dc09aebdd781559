# SPDX-License-Identifier: MIT
"""Models, against the command line (ISOBIT_CLI) where it was built."""
import os
import shutil
import subprocess
import unicodedata

import numpy as np
import pytest

import isobit
from conftest import ISAS, MODEL, same_bits

TEXTS = ["attention", "attention is all you need", "", "well-known naïve words", "?!", "a\nb"]


@pytest.fixture(scope="module")
def model():
    return isobit.Model.load(MODEL)


def command(*arguments, text):
    tool = os.environ.get("ISOBIT_CLI")
    if not tool:
        pytest.skip("ISOBIT_CLI names no command line")
    done = subprocess.run([tool, *arguments, "--model", MODEL], input=text, text=True,
                          capture_output=True, check=True)
    return done.stdout.split("\n")[:-1]


def refuses(error, text, function, *arguments, **options):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert text in str(caught.value), str(caught.value)
    return caught.value


def test_translate(model):
    assert model.translate(["attention"]) == ["ɐtˈɛnʃən"]
    found = model.translate(TEXTS)
    assert found[0] == "ɐtˈɛnʃən" and found[1].split()[0] == "ɐtˈɛnʃən"
    assert found[2] == found[4] == "" and len(found[3].split()) == 4
    assert found[5] == model.translate(["a b"])[0]
    assert model.translate([]) == [] == model.generate([]) == model.score([], [])


@pytest.mark.parametrize("beams", [1, 4])
def test_as_the_command_line(model, beams):
    lines = [text for text in TEXTS if "\n" not in text]
    wanted = command("run", "--beam", str(beams), text="\n".join(lines) + "\n")
    assert model.translate(lines, beams=beams) == wanted
    with_scores = command("run", "--beam", str(beams), "--scores", text=lines[1] + "\n")[0]
    scores = with_scores.split("\t")[1].split()
    found = model.generate(model.tokenize(lines[1]), beams=beams)
    assert [np.float32(s) for s in scores] == [np.float32(best[0].score) for best in found]


def test_score_as_the_command_line(model):
    sources = model.tokenize("attention is all you need")
    targets = [best[0].ids for best in model.generate(sources)]
    lines = [" ".join(map(str, s)) + "\t" + " ".join(map(str, t)) for s, t in zip(sources, targets)]
    found = model.score(sources, targets)
    assert [len(f) for f in found] == [len(t) for t in targets]
    wanted = command("score", "--hex", text="\n".join(lines) + "\n")
    for line, log_probs in zip(wanted, found):
        assert [float.fromhex(x) for x in line.split()] == log_probs.tolist()


def test_generate(model):
    sources = model.tokenize("attention please")
    found = model.generate(sources, beams=4, hypotheses=3, attention=True, length_penalty=0.0)
    assert len(found) == 2
    for source, hypotheses in zip(sources, found):
        assert len(hypotheses) == 3
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for h in hypotheses:
            assert h.ids.dtype == np.uint32 and h.ids[-1] in model.info.eos_ids
            assert h.log_probs.shape == h.ids.shape and h.log_probs.dtype == np.float32
            assert h.score == pytest.approx(h.log_probs.sum(dtype=np.float64), rel=1e-5)
            layers, heads = model.info.decoder_layers, model.info.decoder_heads
            assert h.attention.shape == (layers, heads, len(h.ids), len(source))
            assert np.allclose(h.attention.sum(axis=-1), 1, atol=1e-5)
            assert not model.detokenize(h.ids).endswith("</s>")
        # What the search saw is what scoring gives, to the bit.
        best = hypotheses[0]
        assert same_bits(model.score([source], [best.ids])[0], best.log_probs)
    assert model.generate(sources)[0][0].attention is None


def test_options_have_an_effect(model):
    (source,) = model.tokenize("incomprehensibilities")
    plain = model.generate([source])[0][0].ids
    assert len(model.generate([source], max_length=5)[0][0].ids) == 4  # and the start token
    assert len(model.generate([source], max_new_tokens=5)[0][0].ids) == 5
    assert len(model.generate([source], min_length=len(plain) + 4)[0][0].ids) >= len(plain) + 3
    repeated = model.generate([source], repetition_penalty=8.0)[0][0].ids
    assert len(set(plain.tolist())) < len(plain) and repeated.tolist() != plain.tolist()
    once = model.generate([source], no_repeat_ngram=1)[0][0].ids.tolist()
    assert len(set(once)) == len(once)
    scores = {
        p: model.generate([source], beams=3, length_penalty=p, early_stopping=True)[0][0].score
        for p in (0.0, 1.0)
    }
    assert scores[0.0] < scores[1.0] < 0
    # A word where the three ways to stop give three answers.
    answers = {
        model.translate(["acuate"], beams=3, length_penalty=3.0, early_stopping=stopping)[0]
        for stopping in (False, True, "never")
    }
    assert len(answers) == 3


def test_a_search_that_finds_nothing(model):
    """So many tokens, none of them twice: there are not enough."""
    impossible = {"min_length": 96, "no_repeat_ngram": 1, "beams": 4}
    assert model.generate(model.tokenize("a word"), hypotheses=4, **impossible) == [[], []]
    assert model.translate(["a word", "b"], **impossible) == [" ", ""]


def test_results_depend_on_nothing_else(model):
    sources = model.tokenize("Alice was beginning to get very tired of sitting by her sister")
    wanted = model.generate(sources, beams=3)
    one_by_one = [model.generate([s], beams=3)[0] for s in sources]
    small_batches = model.generate(sources, beams=3, batch_tokens=20)
    others = [one_by_one, small_batches]
    for name in ISAS:
        isobit.set_isa(name)
        isobit.set_num_threads(2)
        others.append(model.generate(sources, beams=3))
        isobit.set_num_threads(1)
    isobit.set_isa(None)
    for found in others:
        for a, b in zip(wanted, found):
            assert a[0].ids.tolist() == b[0].ids.tolist() and a[0].score == b[0].score
            assert same_bits(a[0].log_probs, b[0].log_probs)


def test_ids_in_any_form(model):
    (source,) = model.tokenize("form")
    wanted = model.generate([source])[0][0].ids.tolist()
    for form in (source.tolist(), tuple(source.tolist()), source.astype(np.int64)[None][0]):
        assert model.generate([form])[0][0].ids.tolist() == wanted
    assert model.generate(source[None].repeat(2, 0))[1][0].ids.tolist() == wanted
    assert model.generate(iter([source]))[0][0].ids.tolist() == wanted


def test_info(model):
    info = model.info
    assert info.family == "isobit-transformer" and info.d == 192 and info.encoder_heads == 4
    assert (info.pad_id, info.bos_id, info.eos_ids, info.unk_id) == (0, 1, (2,), 3)
    assert info.source_vocabulary == 77 and 0 < info.parameters_16 < info.parameters
    assert info.weight_bytes > 4 * info.parameters - 2 * info.parameters_16
    assert "g2p-en" in repr(model) and str(info.parameters) in repr(model)


def test_caches_of_16_bits(model):
    gpt = os.path.join(os.path.dirname(MODEL), "tiny-gpt2")
    usual = isobit.Model.load(gpt).score([[5, 6, 9]], [[7, 8]])[0]
    for cache in "f32", "f16", "bf16":
        scores = isobit.Model.load(gpt, cache=cache).score([[5, 6, 9]], [[7, 8]])[0]
        assert same_bits(scores, usual) == (cache == "f32")
        assert np.allclose(scores, usual, atol=0.05)
        words = isobit.Model.load(MODEL, cache=cache).translate(["attention", "nothing"])
        assert words == model.translate(["attention", "nothing"])
    refuses(ValueError, "f32, f16, bf16 expected, got 'f8'", isobit.Model.load, gpt, cache="f8")


def test_compute_int8(model):
    gpt = os.path.join(os.path.dirname(MODEL), "tiny-gpt2")
    plain, whole = isobit.Model.load(gpt), isobit.Model.load(gpt, compute="int8")
    usual = plain.score([[5, 6, 9]], [[7, 8]])[0]
    assert same_bits(isobit.Model.load(gpt, compute="f32").score([[5, 6, 9]], [[7, 8]])[0], usual)
    scores = whole.score([[5, 6, 9]], [[7, 8]])[0]
    assert not same_bits(scores, usual) and np.allclose(scores, usual, atol=0.3)
    both = whole.score([[5, 6, 9], [4]], [[7, 8], [2, 3]])
    assert same_bits(both[0], scores)
    assert plain.info.parameters_int8 == 0 < whole.info.parameters_int8
    assert whole.info.parameters_8 == whole.info.parameters_int8 == plain.info.parameters_16
    assert whole.info.weight_bytes < 0.6 * plain.info.weight_bytes
    words = isobit.Model.load(MODEL, compute="int8").translate(["attention", "nothing"])
    assert words == model.translate(["attention", "nothing"])
    refuses(ValueError, "int8 or int4 expected, got 'int5'", isobit.Model.load, gpt, compute="int5")
    refuses(isobit.IsobitError, "widen", isobit.Model.load, gpt, compute="int8", widen=True)


def test_a_path_is_a_directory_too(tmp_path):
    link = tmp_path / "modèle"
    link.symlink_to(MODEL)
    assert isobit.Model.load(link).translate(["two"]) == isobit.Model(MODEL).translate(["two"])


# ------------------------------------------------------------------------------- bad inputs


def test_bad_directories(tmp_path):
    error = refuses(isobit.IsobitError, "config.json", isobit.Model.load, tmp_path)
    assert error.status in (isobit.Status.E_MISSING, isobit.Status.E_IO)
    assert not isinstance(error, ValueError)
    refuses(isobit.IsobitError, "no/such", isobit.Model.load, "no/such")
    refuses(ValueError, "directory: a NUL", isobit.Model.load, "a\0b")
    refuses(TypeError, "int", isobit.Model.load, 3)
    for name in os.listdir(MODEL):
        shutil.copy(os.path.join(MODEL, name), tmp_path)
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-10])
    refuses(isobit.IsobitError, "of which the file has", isobit.Model.load, tmp_path)
    # Not a number in the last weight.
    weights.write_bytes(whole[:-4] + np.float32(np.nan).tobytes())
    assert isobit.Model.load(tmp_path)
    refuses(ValueError, "Model.load", isobit.Model.load, tmp_path, reject_nonfinite=True)
    # Weights where they lie in the file: the same bits.
    gpt = os.path.join(os.path.dirname(MODEL), "tiny-gpt2")
    scores = [isobit.Model.load(gpt, map=m).score([[5, 6]], [[7, 8]])[0] for m in (False, True)]
    assert np.array_equal(scores[0], scores[1])
    # A model without a tokenizer takes ids, and says what it lacks when it is given text.
    weights.write_bytes(whole)
    os.remove(tmp_path / "tokenizer_config.json")
    ids_only = isobit.Model.load(tmp_path)
    assert ids_only.generate([[5, 6, 2]])[0][0].ids.size
    refuses(isobit.IsobitError, "tokenizer_config.json", ids_only.translate, ["text"])
    refuses(isobit.IsobitError, "tokenizer_config.json", ids_only.tokenize, "text")
    refuses(isobit.IsobitError, "tokenizer_config.json", ids_only.detokenize, [1])


def test_bad_text(model):
    refuses(TypeError, "texts: a list of str expected, got str", model.translate, "attention")
    refuses(TypeError, "text: a str expected, got int", model.translate, [3])
    refuses(TypeError, "use generate", model.translate, ["a"], hypotheses=2)
    refuses(TypeError, "beam", model.translate, ["a"], beam=2)
    refuses(ValueError, "surrogates", model.translate, ["\udc80"])
    refuses(ValueError, "128", model.translate, ["a" * 128])  # with EOS one too long
    refuses(ValueError, "detokenize", model.detokenize, [77])
    assert model.detokenize([]) == ""


def test_bad_ids(model):
    refuses(TypeError, "sources: a list of sequences", model.generate, "abc")
    refuses(ValueError, "sources[0]: 1 dimension expected, got 0", model.generate, [1, 2, 3])
    refuses(ValueError, "sources[1]: 1 dimension expected, got 2", model.generate, [[1], [[2]]])
    refuses(TypeError, "sources[0]: integers expected, got float64", model.generate, [[1.0]])
    refuses(ValueError, "sources[0]: token ids are from 0", model.generate, [[-1]])
    refuses(ValueError, "got 4294967296 to 4294967296", model.generate, [[2**32]])
    error = refuses(ValueError, "77", model.generate, [[77]])
    assert error.status == isobit.Status.E_RANGE
    assert refuses(ValueError, "", model.generate, [[]]).status == isobit.Status.E_DIM
    refuses(ValueError, "1 sources and 2 targets", model.score, [[4]], [[4], [5]])
    refuses(ValueError, "targets[0]: 1 dimension expected", model.score, [[4]], [4])
    assert refuses(ValueError, "", model.score, [[4]], [[77]]).status == isobit.Status.E_RANGE


def test_bad_options(model):
    for name in ("beams", "hypotheses", "max_length", "max_new_tokens", "no_repeat_ngram",
                 "min_length", "batch_tokens"):
        refuses(ValueError, f"{name}: at least 1 expected, got 0", model.generate, [[4]],
                **{name: 0})
        refuses(ValueError, f"{name}: -1 is out of range", model.generate, [[4]], **{name: -1})
        refuses(TypeError, f"{name}: an int expected, got float", model.generate, [[4]],
                **{name: 1.5})
    refuses(ValueError, "early_stopping: 'maybe' is none of", model.generate, [[4]],
            early_stopping="maybe")
    refuses(TypeError, "length_penalty: a number", model.generate, [[4]], length_penalty="1")
    refuses(ValueError, "generate: ", model.generate, [[4]], beams=2, hypotheses=3)
    refuses(ValueError, "generate: ", model.generate, [[4]], max_length=1000)


# ------------------------------------------------------------------------------------ sampling


def test_sampling(model):
    sources = model.tokenize("the quick brown fox jumps")
    options = dict(sample=True, temperature=1.4, top_k=0, top_p=0.98, min_p=0.01)

    def ids(found):
        return [[h.ids.tolist() for h in each] for each in found]

    found = ids(model.generate(sources, hypotheses=3, seed=2**33 + 1, **options))
    assert [len(each) for each in found] == [3] * 5
    assert len({tuple(h) for each in found for h in each}) > 5
    assert found == ids(model.generate(sources, hypotheses=3, seed=2**33 + 1, **options))
    for other in (0, 1, 2**33, 2**64 - 1, np.uint64(5)):
        assert found != ids(model.generate(sources, hypotheses=3, seed=other, **options))
    alone = model.generate(sources[2:3], seed=2**33 + 1, first_source=2, **options)
    assert ids(alone)[0] == found[2][:1]
    greedy = ids(model.generate(sources, beams=1))
    assert ids(model.generate(sources, sample=True, top_k=1)) == greedy
    assert ids(model.generate(sources, sample=False)) == greedy
    assert model.info.default_sampling is False and model.info.default_top_k == 50
    text = " ".join(model.detokenize(each[0]) for each in found)
    assert model.translate(["the quick brown fox jumps"], seed=2**33 + 1, **options) == [text]


def test_forced_bos_and_stop(model):
    source = model.tokenize("attention")[0]
    whole = model.generate([source])[0][0].ids.tolist()
    assert model.generate([source], forced_bos=9)[0][0].ids[0] == 9
    for stop, length in [([whole[2:4]], 4), ([[9, 9, 9], [whole[0]]], 1), ([], len(whole))]:
        assert model.generate([source], stop=stop)[0][0].ids.tolist() == whole[:length]


def test_stop_texts(model):
    source = model.tokenize("attention")[0]
    whole = model.generate([source])[0][0].ids.tolist()
    text = model.detokenize(whole)
    for stop in ("ɛn", "zz", "ʃə", "n", "ɐ"):
        length = next(
            (n for n in range(len(whole)) if stop in model.detokenize(whole[:n])), len(whole)
        )
        assert model.generate([source], stop=stop)[0][0].ids.tolist() == whole[:length]
        assert model.generate([source], stop=[stop, [9, 9]])[0][0].ids.tolist() == whole[:length]
        assert model.translate(["attention"], stop=["zzz", stop]) == [text.split(stop)[0]]
    assert model.translate(["attention"], stop=[whole[:2]]) == [model.detokenize(whole[:2])]
    assert model.translate(["attention"], stop=iter(["n", "ɛ"])) == [text.split("ɛ")[0]]


def test_on_token(model):
    sources = model.tokenize("the quick brown")
    seen = []
    found = model.generate(sources, on_token=seen.append)
    for i, best in enumerate(found):
        tokens = [t for t in seen if t.source == i]
        assert [t.id for t in tokens] == best[0].ids.tolist()
        assert [t.position for t in tokens] == list(range(len(tokens)))
        assert np.float32([t.log_prob for t in tokens]).tobytes() == best[0].log_probs.tobytes()
        assert [t.last for t in tokens] == [False] * (len(tokens) - 1) + [True]
    assert len(seen) == sum(len(best[0].ids) for best in found)

    def enough(token):
        seen.append(token)
        if token.position == 1:
            raise KeyboardInterrupt("enough")

    seen.clear()
    with pytest.raises(KeyboardInterrupt, match="enough"):
        model.generate(sources, on_token=enough)
    assert len(seen) == 4


def test_bad_sampling(model):
    def refused(kind, text, **options):
        refuses(kind, text, model.generate, [[4, 2]], **options)

    refused(ValueError, "temperature: a number above 0 expected, got 0", temperature=0)
    refused(ValueError, "temperature: a number above 0 expected", temperature=1e-60)
    refused(ValueError, "temperature is -1; a number above 0", sample=True, temperature=-1)
    refused(ValueError, "temperature is nan", sample=True, temperature=float("nan"))
    refused(TypeError, "temperature: a number", temperature="hot")
    refused(ValueError, "top_p: a number above 0 expected, got 0", top_p=0.0)
    refused(ValueError, "top_p is 1.5; a number above 0 and at most 1", sample=True, top_p=1.5)
    refused(ValueError, "min_p is -1; a number from 0 to 1", sample=True, min_p=-1)
    refused(ValueError, "top_k: -1 is out of range", top_k=-1)
    refused(TypeError, "top_k: an int expected", top_k=0.5)
    refused(ValueError, "seed: -1 is out of range", seed=-1)
    refused(ValueError, f"seed: {2**64} is out of range", seed=2**64)
    refused(TypeError, "seed: an int expected, got float", seed=1.0)
    refused(ValueError, "sampling with 2 beams", sample=True, beams=2)
    refused(ValueError, "stop[1]: at least one id expected, got none", stop=[[1], []])
    refused(ValueError, "stop_ids[1] is 77", stop=[[77]])
    refused(TypeError, "stop[0]", stop=[["a"]])
    refused(ValueError, "stop[0]: an empty text", stop="")
    refused(ValueError, "stop[1]: a NUL character", stop=["a", "a\0"])
    refused(TypeError, "stop[0]", stop=[b"a"])
    refused(ValueError, "forced_bos is 77", forced_bos=77)
    refused(ValueError, "forced_bos: token ids are from 0", forced_bos=-1)


FOLDERS = os.path.join(os.path.dirname(MODEL), os.pardir, "tests", "data", "models")


def test_embed_as_the_golden_vectors():
    folder = os.path.join(FOLDERS, "minilm")
    if not os.path.exists(os.path.join(folder, "vectors.txt")):
        pytest.skip("the test data of the repository is not there")
    minilm = isobit.Model.load(folder)
    assert minilm.info.decoder_layers == 0 and minilm.info.has_pooler
    with open(os.path.join(folder, "texts.txt"), encoding="utf-8") as file:
        texts = [line.strip() for line in file.read().split("\n")[:-1]]
    with open(os.path.join(folder, "vectors.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file]
    wanted = np.float64([row[2:] for row in rows if row[:2] == ["mean", "yes"]])
    found = minilm.embed(texts)
    np.testing.assert_allclose(found, wanted, atol=2e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    each = np.concatenate([minilm.embed([text]) for text in texts])
    assert same_bits(found, each)
    first = minilm.embed(texts, pooling="cls", normalize=False)
    assert not np.allclose(first, found, atol=1e-3)
    assert minilm.embed([]).shape == (0, minilm.info.d)
    refuses(ValueError, "pooling", minilm.embed, texts, pooling="median")
    refuses(TypeError, "list of str", minilm.embed, "one text")
    refuses(isobit.IsobitError, "no decoder", minilm.generate, [[3, 4]])


def test_embed_behind_a_dense_module():
    folder = os.path.join(FOLDERS, "sentence-t5")
    if not os.path.exists(os.path.join(folder, "vectors.txt")):
        pytest.skip("the test data of the repository is not there")
    model = isobit.Model.load(folder)
    assert (model.info.d, model.info.sentence_d) == (16, 12)
    with open(os.path.join(folder, "texts.txt"), encoding="utf-8") as file:
        texts = file.read().split("\n")[:-1]
    with open(os.path.join(folder, "vectors.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file]
    for pooling, normalize in (("mean", "yes"), ("max", "no")):
        wanted = np.float64([row[2:] for row in rows if row[:2] == [pooling, normalize]])
        found = model.embed(texts, pooling=pooling, normalize=normalize == "yes")
        np.testing.assert_allclose(found, wanted, atol=2e-5)
    assert model.embed([]).shape == (0, 12)


def test_embed_in_lower_case(tmp_path):
    """do_lower_case is str.lower(): each letter that changes, and sigma with all that is next to it."""
    folder = os.path.join(FOLDERS, "roberta-f16")
    if not os.path.exists(os.path.join(folder, "config.json")):
        pytest.skip("the test data of the repository is not there")
    # With a tokenizer that has all bytes.
    bytewise = os.path.join(FOLDERS, os.pardir, "text", "roberta")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(folder, name), tmp_path)
    for name in os.listdir(bytewise):
        shutil.copy(os.path.join(bytewise, name), tmp_path)
    (tmp_path / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    lower = isobit.Model.load(tmp_path)
    every = [chr(c) for c in range(32, 0x1FFFF) if not 0xD800 <= c < 0xE000]
    texts = [c + c for c in every if c.lower() != c]
    assert len(texts) > 1300
    kinds = {}
    for c in every:
        key = (unicodedata.category(c), c.isupper() or c.islower() or c.istitle(),
               ("A" + c + "Σ").lower()[-1], ("AΣ" + c + "A").lower()[1])
        if key[0] != "Cn":
            kinds.setdefault(key, []).append(c)
    near = [c for group in kinds.values() for c in group[:: max(1, len(group) // 12)]]
    assert len(kinds) > 30
    texts += [form.replace("_", c) for c in near for form in ("a_Σ", "aΣ_a", "_Σ", "aΣ_.", "Σ_")]
    for text in texts:
        wanted = lower.tokenize(text.strip().lower())[0]
        assert lower._sentence(text).tolist() == wanted.tolist(), text
        assert len(wanted) < lower.info.sentence_max_length


def test_languages(tmp_path):
    """The weights of the tiny Marian model, with a tokenizer that has languages."""
    text = os.path.join(FOLDERS, os.pardir, "text")
    if not os.path.exists(os.path.join(text, "nllb")):
        pytest.skip("the test data of the repository is not there")
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        shutil.copy(os.path.join(text, "marian", name), tmp_path)
    for name in os.listdir(os.path.join(text, "nllb")):
        shutil.copy(os.path.join(text, "nllb", name), tmp_path)
    plain = isobit.Model.load(tmp_path)
    assert plain.tokenize("ab")[0][0] == 223  # English
    seen = []
    plain.translate(["ab"], on_token=seen.append)
    assert seen[0].id not in (222, 224)
    other = isobit.Model.load(tmp_path, source_language="fra_Latn", target_language="deu_Latn")
    assert other.tokenize("ab")[0][0] == 224
    seen.clear()
    other.translate(["ab"], on_token=seen.append)
    assert seen[0].id == 222
    seen.clear()
    other.translate(["ab"], forced_bos=9, on_token=seen.append)
    assert seen[0].id == 9
    error = refuses(isobit.IsobitError, 'no language "xx"', isobit.Model.load, tmp_path,
                    target_language="xx")
    assert error.status == isobit.Status.E_UNSUPPORTED
    refuses(isobit.IsobitError, "no languages", isobit.Model.load, MODEL, source_language="en")
    refuses(TypeError, "source_language: a str", isobit.Model.load, tmp_path, source_language=3)
    refuses(ValueError, "target_language: a NUL", isobit.Model.load, tmp_path,
            target_language="a\0b")


def test_prompts_are_continued():
    folder = os.path.join(os.path.dirname(MODEL), "tiny-gpt2")
    if not os.path.exists(folder):
        pytest.skip("the repository's models are not there")
    gpt2 = isobit.Model.load(folder)
    assert gpt2.info.encoder_layers == 0 and gpt2.info.default_max_new_tokens > 0
    prompts = gpt2.tokenize("isobit:") + gpt2.tokenize("a much longer prompt:")
    together = gpt2.generate(prompts, seed=4)
    alone = gpt2.generate(prompts[:1], seed=4)
    assert same_bits(together[0][0].ids, alone[0][0].ids)
    assert same_bits(together[0][0].log_probs, alone[0][0].log_probs)
    assert gpt2.detokenize(together[0][0].ids)
