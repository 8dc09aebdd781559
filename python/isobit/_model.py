# SPDX-License-Identifier: MIT
"""Encoder-decoder Transformers of model.h: text or token ids in and out."""
from __future__ import annotations

import ctypes
import operator
import os
import weakref
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _c
from ._arrays import Floats, concatenated, token_ids
from ._errors import Status, error_of
from ._library import check, model_lib, strerror
from ._results import Hypothesis, Ids, ModelInfo, Token
from ._runtime import context_of, current_pool, number, size

_byref = ctypes.byref
_NO_ID = 2**32 - 1


def _raise(what: str, status: int, error: _c.iso_error) -> None:
    if status:
        text = error.message.decode("utf-8", "replace")
        raise error_of(status, f"{what}: {text or strerror(status)}")


def _sequences(name: str, values: Iterable[Any]) -> List[Ids]:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name}: a list of sequences of token ids expected, got a str")
    return [token_ids(f"{name}[{i}]", value) for i, value in enumerate(values)]


def _halves(name: str, value: Any) -> Tuple[int, int]:
    """The low and the high half of 64 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: an int expected, got {type(value).__name__}") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"{name}: {number} is out of range")
    return number % 2**32, number >> 32


def _array(pointer: Optional[int], shape: Tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """A copy of memory of the library."""
    result = np.empty(shape, dtype)
    if result.size:
        assert pointer is not None
        ctypes.memmove(result.ctypes.data, pointer, result.nbytes)
    return result


def _stops(stop: Union[str, Iterable[Any]]) -> Tuple[List[str], List[Ids]]:
    """The texts that end a sequence, and the sequences of ids."""
    texts: List[str] = []
    others: List[Ids] = []
    for i, one in enumerate([stop] if isinstance(stop, str) else stop):
        if isinstance(one, str):
            if not one or "\0" in one:
                what = "a NUL character" if one else "an empty text"
                raise ValueError(f"stop[{i}]: {what} ends nothing")
            texts.append(one)
        else:
            others.append(token_ids(f"stop[{i}]", one))
            if not len(others[-1]):
                raise ValueError(f"stop[{i}]: at least one id expected, got none")
    return texts, others


def _language(name: str, value: Optional[str]) -> Optional[bytes]:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name}: a str expected, got {type(value).__name__}")
    if value is not None and "\0" in value:
        raise ValueError(f"{name}: a NUL character in {value!r}")
    return None if value is None else value.encode()


_CACHES = ("f32", "f16", "bf16")  # as iso_cache numbers them
_COMPUTES = (None, "f32", "int8", "int4")  # as iso_compute does
_POOLINGS = ("mean", "cls", "max", "pooler")


class Model:
    """A loaded model: immutable, may be used by any number of threads at once."""

    def __init__(
        self,
        directory: Union[str, "os.PathLike[str]"],
        *,
        reject_nonfinite: bool = False,
        source_language: Optional[str] = None,
        target_language: Optional[str] = None,
        map: bool = False,
        positions: int = 0,
        widen: bool = False,
        cache: str = "f32",
        compute: Optional[str] = None,
    ) -> None:
        self._lib = model_lib()
        path = os.fsencode(directory)
        if b"\0" in path:
            raise ValueError(f"directory: a NUL character in {directory!r}")
        if cache not in _CACHES:
            raise ValueError(f"cache: one of {', '.join(_CACHES)} expected, got {cache!r}")
        if compute not in _COMPUTES:
            raise ValueError(f"compute: None, f32, int8 or int4 expected, got {compute!r}")
        self.directory = os.fsdecode(directory)
        options = _c.iso_load_options(
            size=ctypes.sizeof(_c.iso_load_options),
            reject_nonfinite=bool(reject_nonfinite),
            map=bool(map),
            positions=operator.index(positions),
            widen=bool(widen),
            cache=_CACHES.index(cache),
            compute=_COMPUTES.index(compute),
        )
        error = _c.iso_error()
        self._handle = ctypes.c_void_p()
        pool = current_pool()
        status = self._lib.iso_model_load(
            _byref(self._handle), path, _byref(options), context_of(pool), _byref(error)
        )
        _raise(f"Model.load({self.directory!r})", status, error)
        weakref.finalize(self, self._lib.iso_model_free, self._handle).atexit = False
        self.info = self._info()
        # A model without a tokenizer is complete: only those who bring text need to hear of it.
        self._tokenizer = ctypes.c_void_p()
        self._no_tokenizer = _c.iso_error()
        languages = _c.iso_tokenizer_options(
            size=ctypes.sizeof(_c.iso_tokenizer_options),
            source_language=_language("source_language", source_language),
            target_language=_language("target_language", target_language),
        )
        self._tokenizer_status = self._lib.iso_tokenizer_load_with(
            _byref(self._tokenizer), path, _byref(languages), _byref(self._no_tokenizer)
        )
        if source_language is not None or target_language is not None:
            self._need_tokenizer(f"Model.load({self.directory!r})")
        if self._tokenizer_status == 0:
            free = weakref.finalize(self, self._lib.iso_tokenizer_free, self._tokenizer)
            free.atexit = False

    @classmethod
    def load(
        cls,
        directory: Union[str, "os.PathLike[str]"],
        *,
        reject_nonfinite: bool = False,
        source_language: Optional[str] = None,
        target_language: Optional[str] = None,
        map: bool = False,
        positions: int = 0,
        widen: bool = False,
        cache: str = "f32",
        compute: Optional[str] = None,
    ) -> "Model":
        """
        Reads a checkpoint directory: config.json, the weights (model.safetensors or
        pytorch_model.bin, each also in shards), and the tokenizer if it is one that the library
        knows; or a .gguf file, by its path. reject_nonfinite: a NaN or infinite weight is an error.
        source_language and target_language, where the tokenizer has several: as it names them
        ("eng_Latn", "en_XX"), by default what tokenizer_config.json says; tokenize and translate use
        them. map: weights are used in the mapped file, neither read nor packed, with the same
        results; for files that nobody changes meanwhile. positions: for texts longer than the
        original positions of longrope, or those of dynamic, as many as a text may have; all texts
        are computed by what holds for long ones then. widen: F16, BF16 and groups of 8 or 4 bits become f32 in
        memory, with the same results and two to seven times the memory. cache: what the keys
        and values of decoding are rounded to, "f32" (not at all), "f16" or "bf16", for half the
        memory and faster steps of long texts; scores and logits have the same rounding, so they
        agree with generation. compute: what linear layers multiply, "f32", "int8" (all matrices
        become int8 when they are loaded, a quarter of the memory of f32; results differ, and
        are the same bits everywhere), "int4" (matrices that the file has in groups of 4 or 8
        bits multiply rows that are rounded to int8, which is faster), or None for int8 where the file
        has it, and f32 elsewhere.
        """
        return cls(
            directory,
            reject_nonfinite=reject_nonfinite,
            source_language=source_language,
            target_language=target_language,
            map=map,
            positions=positions,
            widen=widen,
            cache=cache,
            compute=compute,
        )

    def __repr__(self) -> str:
        return f"<isobit.Model {self.directory!r}, {self.info.parameters} parameters>"

    def __reduce__(self) -> Any:
        raise TypeError("a Model cannot be pickled or copied; load it again")

    def _info(self) -> ModelInfo:
        c = self._lib.iso_model_get_info(self._handle).contents
        values = {name: getattr(c, name) for name, _ in c._fields_ if not name.startswith("eos_")}
        values["family"] = c.family.decode()
        values["weight_types"] = c.weight_types.decode()
        for name in ("pad_id", "bos_id", "decoder_start_id", "unk_id"):
            values[name] = None if values[name] == _NO_ID else values[name]
        for name in ("default_sampling", "has_logits", "has_pooler"):
            values[name] = bool(values[name])
        eos = _array(c.eos_ids, (c.eos_count,), np.uint32)
        return ModelInfo(eos_ids=tuple(int(i) for i in eos), **values)

    # ---------------------------------------------------------------------------------- text

    def _need_tokenizer(self, what: str) -> None:
        _raise(what, self._tokenizer_status, self._no_tokenizer)

    def tokenize(self, text: str) -> List[Ids]:
        """
        Cuts a text into sequences of source ids, each with its EOS: for a model of words, one for
        each word.
        """
        self._need_tokenizer("tokenize")
        if not isinstance(text, str):
            raise TypeError(f"text: a str expected, got {type(text).__name__}")
        data = text.encode()
        error = _c.iso_error()
        counts = (ctypes.c_size_t * 2)()
        ids, lengths = np.empty(0, np.uint32), np.empty(0, np.uintp)
        first = _byref(counts)
        second = _byref(counts, ctypes.sizeof(ctypes.c_size_t))
        size_pointer = ctypes.POINTER(ctypes.c_size_t)
        while True:  # the first time for the sizes
            status = self._lib.iso_tokenizer_encode(
                self._tokenizer,
                data,
                len(data),
                ids.ctypes.data,
                len(ids),
                ctypes.cast(first, size_pointer),
                lengths.ctypes.data,
                len(lengths),
                ctypes.cast(second, size_pointer),
                _byref(error),
            )
            if status != Status.E_WORKSPACE or (len(ids), len(lengths)) == tuple(counts):
                break
            ids, lengths = np.empty(counts[0], np.uint32), np.empty(counts[1], np.uintp)
        _raise("tokenize", status, error)
        ends = np.cumsum(lengths).astype(np.intp)
        return [ids[end - int(n) : end] for end, n in zip(ends.tolist(), lengths)]

    def _first_token(self) -> Optional[int]:
        """The target language, unless it is the start token already, as of some models of mBART."""
        first = ctypes.c_uint32(_NO_ID)
        if self._tokenizer:
            self._lib.iso_tokenizer_forced_bos(self._tokenizer, _byref(first))
        return None if first.value in (_NO_ID, self.info.decoder_start_id) else first.value

    def detokenize(self, ids: npt.ArrayLike) -> str:
        """The text of one generated sequence, special tokens left out."""
        self._need_tokenizer("detokenize")
        array = token_ids("ids", ids)
        needed = ctypes.c_size_t(1)
        buffer = ctypes.create_string_buffer(1)
        while True:
            status = self._lib.iso_tokenizer_decode(
                self._tokenizer, array.ctypes.data, len(array), buffer, len(buffer), _byref(needed)
            )
            if status != Status.E_WORKSPACE or len(buffer) >= needed.value:
                break
            buffer = ctypes.create_string_buffer(needed.value)
        check(status, "detokenize", f"{len(array)} ids")
        return buffer.value.decode()

    def translate(self, texts: Iterable[str], **options: Any) -> List[str]:
        """
        The model's answer to each text, one str for each, in the target language of the tokenizer.
        Options as for generate; an answer ends before the first text of `stop`. For a model of words each word is a sequence of its own,
        and the answers are joined by spaces.
        """
        if isinstance(texts, (str, bytes)):
            raise TypeError(f"texts: a list of str expected, got {type(texts).__name__}")
        if "hypotheses" in options or "attention" in options:
            raise TypeError("translate takes neither hypotheses nor attention; use generate")
        sources: List[Ids] = []
        counts: List[int] = []
        for text in texts:
            words = self.tokenize(text)
            sources += words
            counts.append(len(words))
        stops, ids = _stops(options.pop("stop", ()))
        first = self._first_token()
        if first is not None and options.get("forced_bos") is None:
            options["forced_bos"] = first
        found = self.generate(sources, stop=[*stops, *ids], **options)

        def answer(ids: Ids) -> str:
            text = self.detokenize(ids)
            return text[: min((text.index(s) for s in stops if s in text), default=None)]

        # Where the search found nothing, as the command line has it: no text.
        answers = iter(answer(best[0].ids) if best else "" for best in found)
        return [" ".join(next(answers) for _ in range(count)) for count in counts]

    def _sentence(self, text: str) -> Ids:
        """The ids of which a vector is made."""
        self._need_tokenizer("embed")
        if not isinstance(text, str):
            raise TypeError(f"text: a str expected, got {type(text).__name__}")
        data = text.encode()
        tokens, error = _c.iso_sentence_tokens(), _c.iso_error()
        ids = np.empty(64, np.uint32)
        while True:
            status = self._lib.iso_sentence_ids(
                self._handle,
                self._tokenizer,
                data,
                len(data),
                ids.ctypes.data,
                len(ids),
                _byref(tokens),
                _byref(error),
            )
            if status != Status.E_WORKSPACE or len(ids) >= tokens.count:
                break
            ids = np.empty(tokens.count, np.uint32)
        _raise(f"embed {text[:40]!r}", status, error)
        return ids[: tokens.count]

    def embed(
        self,
        texts: Iterable[str],
        *,
        pooling: Optional[str] = None,
        normalize: Optional[bool] = None,
    ) -> Floats:
        """
        One vector for each text, [texts][info.sentence_d], by the encoder: as sentence-transformers
        makes it from the folder, unless pooling ("mean", "cls", "max", "pooler") or normalize say
        otherwise; Dense modules of the folder stay between the two.
        That means white space around a text does not count, the folder's default prompt goes
        before it, and texts of more than info.sentence_max_length tokens are cut; their last token
        stays.
        """
        if isinstance(texts, (str, bytes)):
            raise TypeError(f"texts: a list of str expected, got {type(texts).__name__}")
        if pooling is not None and pooling not in _POOLINGS:
            raise ValueError(f"pooling: one of {', '.join(_POOLINGS)} expected, got {pooling!r}")
        sequences = [self._sentence(text) for text in texts]
        result = np.empty((len(sequences), self.info.sentence_d), np.float32)
        if not sequences:
            return result
        all_ids, lengths = concatenated(sequences)
        options = _c.iso_sentence_options(
            size=ctypes.sizeof(_c.iso_sentence_options),
            pooling=0 if pooling is None else 1 + _POOLINGS.index(pooling),
            normalize=0 if normalize is None else 1 if normalize else -1,
        )
        error = _c.iso_error()
        pool = current_pool()
        status = self._lib.iso_sentence_embed_f32(
            result.ctypes.data,
            self._handle,
            all_ids.ctypes.data,
            lengths.ctypes.data,
            len(sequences),
            _byref(options),
            context_of(pool),
            _byref(error),
        )
        _raise("embed", status, error)
        return result

    # ----------------------------------------------------------------------------------- ids

    def generate(
        self,
        sources: Iterable[npt.ArrayLike],
        *,
        beams: Optional[int] = None,
        hypotheses: int = 1,
        max_length: Optional[int] = None,
        max_new_tokens: Optional[int] = None,
        length_penalty: Optional[float] = None,
        early_stopping: Union[None, bool, str] = None,
        repetition_penalty: Optional[float] = None,
        no_repeat_ngram: Optional[int] = None,
        min_length: Optional[int] = None,
        attention: bool = False,
        batch_tokens: Optional[int] = None,
        forced_bos: Optional[int] = None,
        sample: Optional[bool] = None,
        temperature: Optional[float] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        seed: int = 0,
        first_source: int = 0,
        stop: Union[str, Iterable[Union[str, npt.ArrayLike]]] = (),
        on_token: Optional[Callable[[Token], Any]] = None,
    ) -> List[List[Hypothesis]]:
        """
        For each source, a sequence of token ids, the best `hypotheses` (at most `beams`) target
        sequences, best first; fewer where fewer were found.

        None takes the model's default. beams 1 is greedy. max_length and min_length count the
        decoder start token, max_new_tokens does not. early_stopping is False, True or "never".
        Results do not depend on which sources are generated together.

        sample=True draws `hypotheses` independent sequences for each source; temperature, top_k
        (0: all), top_p and min_p are those of transformers. What is drawn depends on the seed,
        of 64 bits, and on the number of the source, which is counted from first_source.

        stop: texts and sequences of ids; a target ends with the first of them that it contains.
        A text may begin and end within a token, which is kept as a whole. forced_bos: the first
        token of each target. on_token is called with each Token, in the order of its
        sequence, as soon as it is there (with beams, when its source is finished). What it raises
        ends the call, and comes out of it.
        """
        arrays = _sequences("sources", sources)
        try:
            stopping = _c.EARLY_STOPPING[early_stopping]
        except (KeyError, TypeError):
            raise ValueError(
                f"early_stopping: {early_stopping!r} is none of None, False, True, 'never'"
            ) from None

        def at_least_1(name: str, value: Optional[int]) -> int:
            if value is None:
                return 0
            if size(name, value) == 0:
                raise ValueError(f"{name}: at least 1 expected, got 0")
            return size(name, value)

        def real(name: str, value: Optional[float]) -> float:
            """0 stands for the default in the library, and is refused here."""
            if value is None:
                return 0.0
            if ctypes.c_float(number(name, value)).value == 0:
                raise ValueError(f"{name}: a number above 0 expected, got {value}")
            return number(name, value)

        texts, stops = _stops(stop)
        stop_ids = np.array([n for s in stops for n in (len(s), *s)], np.uint32)
        raised: List[BaseException] = []

        def listen(_user: Any, token: Any) -> int:
            t = token.contents
            try:
                assert on_token is not None
                on_token(
                    Token(t.source, t.hypothesis, t.position, t.id, t.log_prob, bool(t.last))
                )
            except BaseException as error:
                raised.append(error)
            return len(raised)

        listener = _c.iso_on_token(listen) if on_token is not None else None
        options = _c.iso_generate_options(
            size=ctypes.sizeof(_c.iso_generate_options),
            beams=at_least_1("beams", beams),
            hypotheses=at_least_1("hypotheses", hypotheses),
            max_length=at_least_1("max_length", max_length),
            max_new_tokens=at_least_1("max_new_tokens", max_new_tokens),
            has_length_penalty=length_penalty is not None,
            length_penalty=0.0
            if length_penalty is None
            else number("length_penalty", length_penalty),
            early_stopping=stopping,
            repetition_penalty=0.0
            if repetition_penalty is None
            else number("repetition_penalty", repetition_penalty),
            no_repeat_ngram=at_least_1("no_repeat_ngram", no_repeat_ngram),
            min_length=at_least_1("min_length", min_length),
            attention=bool(attention),
            batch_tokens=at_least_1("batch_tokens", batch_tokens),
            has_forced_bos=forced_bos is not None,
            forced_bos=0 if forced_bos is None else int(token_ids("forced_bos", [forced_bos])[0]),
            sampling=0 if sample is None else 2 if sample else 1,
            temperature=real("temperature", temperature),
            top_k=0 if top_k is None else size("top_k", top_k) or ctypes.c_size_t(-1).value,
            top_p=real("top_p", top_p),
            has_min_p=min_p is not None,
            min_p=0.0 if min_p is None else number("min_p", min_p),
            seed=_halves("seed", seed),
            first_source=size("first_source", first_source),
            stop_ids=stop_ids.ctypes.data,
            stop_count=len(stop_ids),
            on_token=ctypes.cast(listener, ctypes.c_void_p) if listener else None,
        )
        if not arrays:
            return []
        ids, lengths = concatenated(arrays)
        error = _c.iso_error()
        ends = ctypes.c_void_p()
        if texts:
            self._need_tokenizer("stop")
            pointers = (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
            _raise(
                "stop",
                self._lib.iso_stop_create(
                    _byref(ends), self._tokenizer, pointers, len(texts), _byref(error)
                ),
                error,
            )
            options.is_last = ctypes.cast(self._lib.iso_stop_is_last, ctypes.c_void_p)
            options.is_last_user = ends
        result = ctypes.POINTER(_c.iso_generation)()
        pool = current_pool()
        status = self._lib.iso_generate(
            _byref(result),
            self._handle,
            ids.ctypes.data,
            lengths.ctypes.data,
            len(arrays),
            _byref(options),
            context_of(pool),
            _byref(error),
        )
        self._lib.iso_stop_free(ends)
        if raised:
            raise raised[0]
        _raise("generate", status, error)
        try:
            return self._hypotheses(result.contents, [len(a) for a in arrays])
        finally:
            self._lib.iso_generation_free(result)

    def _hypotheses(
        self, generation: _c.iso_generation, lengths: Sequence[int]
    ) -> List[List[Hypothesis]]:
        layers, heads = self.info.decoder_layers, self.info.decoder_heads
        each = generation.hypotheses
        found: List[List[Hypothesis]] = []
        for i, source in enumerate(lengths):
            found.append([])
            for j in range(each):
                best = generation.best[i * each + j]
                n = best.length
                if n == 0:
                    continue
                looked = None
                if best.attention:
                    looked = _array(best.attention, (layers, heads, n, source), np.float32)
                found[i].append(
                    Hypothesis(
                        ids=_array(best.ids, (n,), np.uint32),
                        score=float(best.score),
                        log_probs=_array(best.log_probs, (n,), np.float32),
                        attention=looked,
                    )
                )
        return found

    def score(
        self, sources: Iterable[npt.ArrayLike], targets: Iterable[npt.ArrayLike]
    ) -> List[Floats]:
        """
        The log-probability of each token of given targets, which do not include the decoder start
        token; whether they end with EOS is the caller's choice.
        """
        source_ids, target_ids = _sequences("sources", sources), _sequences("targets", targets)
        if len(source_ids) != len(target_ids):
            raise ValueError(f"{len(source_ids)} sources and {len(target_ids)} targets")
        if not source_ids:
            return []
        from_ids, from_lengths = concatenated(source_ids)
        to_ids, to_lengths = concatenated(target_ids)
        result = np.empty(len(to_ids), np.float32)
        error = _c.iso_error()
        pool = current_pool()
        status = self._lib.iso_score_f32(
            result.ctypes.data,
            self._handle,
            from_ids.ctypes.data,
            from_lengths.ctypes.data,
            to_ids.ctypes.data,
            to_lengths.ctypes.data,
            len(source_ids),
            context_of(pool),
            _byref(error),
        )
        _raise("score", status, error)
        ends = np.cumsum([len(t) for t in target_ids]).tolist()
        return [result[end - len(t) : end] for end, t in zip(ends, target_ids)]
