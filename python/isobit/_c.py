# SPDX-License-Identifier: MIT
"""
The C interface: structs and functions of isobit.h, ops.h and model.h, declared here and nowhere
else. Pointers to arrays are plain addresses (c_void_p). tests/test_layout.py compares sizes,
offsets and constants with what a C compiler makes of the headers.
"""
from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_float,
    c_int,
    c_size_t,
    c_uint,
    c_uint32,
    c_void_p,
)
from typing import Any, Dict, List, Tuple


class iso_context(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("isa", c_void_p),
        ("executor", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
    ]


class iso_gemm_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("trans_a", c_int),
        ("trans_b", c_int),
        ("alpha", c_float),
        ("beta", c_float),
        ("bias", c_void_p),
        ("act", c_int),
        ("residual", c_void_p),
        ("ldr", c_size_t),
    ]


class iso_packed(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("n", c_size_t), ("k", c_size_t)]


class iso_packed_w16(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("n", c_size_t), ("k", c_size_t), ("type", c_uint)]


class iso_q_format(ctypes.Structure):
    _fields_ = [("bits", c_uint), ("group", c_uint), ("scale", c_uint)]


class iso_packed_q(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("n", c_size_t), ("k", c_size_t), ("format", iso_q_format)]


class iso_packed_s8(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("scales", c_void_p),
        ("start", c_void_p),
        ("n", c_size_t),
        ("k", c_size_t),
    ]


class iso_linear_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("bias", c_void_p),
        ("act", c_int),
        ("residual", c_void_p),
        ("ldr", c_size_t),
    ]


class iso_softmax_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("log", c_int),
        ("safe", c_int),
        ("lengths", c_void_p),
        ("mask", c_void_p),
        ("ldm", c_size_t),
    ]


class iso_norm_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("gamma", c_void_p),
        ("beta", c_void_p),
        ("eps", c_float),
        ("residual", c_void_p),
        ("ldr", c_size_t),
        ("sum", c_void_p),
        ("lds", c_size_t),
    ]


class iso_eltwise_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("bias", c_void_p),
        ("act", c_int),
        ("residual", c_void_p),
        ("ldr", c_size_t),
    ]


class iso_strides(ctypes.Structure):
    _fields_ = [("batch", c_size_t), ("head", c_size_t), ("seq", c_size_t)]


class iso_attention_shape(ctypes.Structure):
    _fields_ = [
        ("B", c_size_t),
        ("H", c_size_t),
        ("Sq", c_size_t),
        ("Sk", c_size_t),
        ("dh", c_size_t),
        ("q", iso_strides),
        ("k", iso_strides),
        ("v", iso_strides),
        ("o", iso_strides),
    ]


class iso_attention_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("scale", c_float),
        ("causal", c_int),
        ("past", c_size_t),
        ("key_lengths", c_void_p),
        ("bias", c_void_p),
        ("bias_strides", iso_strides),
        ("weights", c_void_p),
        ("weights_strides", iso_strides),
        ("key_panels", c_int),
        ("window", c_size_t),
        ("softcap", c_float),
    ]


class iso_error(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", c_char * 500)]


class iso_load_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("reject_nonfinite", c_int),
        ("max_header_bytes", c_size_t),
        ("map", c_int),
        ("positions", c_size_t),
        ("widen", c_size_t),
        ("cache", c_size_t),
        ("compute", c_size_t),
    ]


class iso_model_info(ctypes.Structure):
    _fields_ = [
        ("family", c_char_p),
        ("d", c_size_t),
        ("encoder_layers", c_size_t),
        ("decoder_layers", c_size_t),
        ("encoder_heads", c_size_t),
        ("decoder_heads", c_size_t),
        ("encoder_ffn", c_size_t),
        ("decoder_ffn", c_size_t),
        ("source_vocabulary", c_size_t),
        ("target_vocabulary", c_size_t),
        ("max_positions", c_size_t),
        ("pad_id", c_uint32),
        ("bos_id", c_uint32),
        ("decoder_start_id", c_uint32),
        ("unk_id", c_uint32),
        ("eos_ids", c_void_p),
        ("eos_count", c_size_t),
        ("default_beams", c_size_t),
        ("default_max_length", c_size_t),
        ("parameters", c_size_t),
        ("weight_bytes", c_size_t),
        ("has_logits", c_int),
        ("has_pooler", c_int),
        ("sentence_max_length", c_size_t),
        ("default_sampling", c_int),
        ("default_temperature", c_float),
        ("default_top_k", c_size_t),
        ("default_top_p", c_float),
        ("default_min_p", c_float),
        ("default_max_new_tokens", c_size_t),
        ("parameters_16", c_size_t),
        ("parameters_8", c_size_t),
        ("parameters_4", c_size_t),
        ("parameters_int8", c_size_t),
        ("weight_types", c_char_p),
        ("parameters_int4", c_size_t),
        ("sentence_d", c_size_t),
    ]


class iso_sentence_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("pooling", c_int),
        ("normalize", c_int),
    ]


class iso_sentence_tokens(ctypes.Structure):
    _fields_ = [
        ("count", c_size_t),
        ("whole", c_size_t),
        ("unknown", c_size_t),
        ("dropped", c_size_t),
    ]


class iso_tokenizer_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("source_language", c_char_p),
        ("target_language", c_char_p),
    ]


class iso_token(ctypes.Structure):
    _fields_ = [
        ("source", c_size_t),
        ("hypothesis", c_size_t),
        ("position", c_size_t),
        ("id", c_uint32),
        ("log_prob", c_float),
        ("last", c_int),
    ]


# A pointer to such a function is a plain address in the options.
iso_on_token = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(iso_token))


class iso_generate_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("beams", c_size_t),
        ("hypotheses", c_size_t),
        ("max_length", c_size_t),
        ("max_new_tokens", c_size_t),
        ("has_length_penalty", c_int),
        ("length_penalty", c_float),
        ("early_stopping", c_int),
        ("repetition_penalty", c_float),
        ("no_repeat_ngram", c_size_t),
        ("min_length", c_size_t),
        ("attention", c_int),
        ("batch_tokens", c_size_t),
        ("has_forced_bos", c_int),
        ("forced_bos", c_uint32),
        ("sampling", c_int),
        ("temperature", c_float),
        ("top_k", c_size_t),
        ("top_p", c_float),
        ("has_min_p", c_int),
        ("min_p", c_float),
        ("seed", c_uint32 * 2),
        ("first_source", c_size_t),
        ("stop_ids", c_void_p),
        ("stop_count", c_size_t),
        ("on_token", c_void_p),
        ("user", c_void_p),
        ("is_last", c_void_p),
        ("is_last_user", c_void_p),
    ]


class iso_hypothesis(ctypes.Structure):
    _fields_ = [
        ("ids", c_void_p),
        ("length", c_size_t),
        ("score", c_float),
        ("log_probs", c_void_p),
        ("attention", c_void_p),
    ]


class iso_generation(ctypes.Structure):
    _fields_ = [
        ("count", c_size_t),
        ("hypotheses", c_size_t),
        ("best", POINTER(iso_hypothesis)),
    ]


STRUCTS = [
    iso_context,
    iso_gemm_options,
    iso_packed,
    iso_packed_w16,
    iso_q_format,
    iso_packed_q,
    iso_packed_s8,
    iso_linear_options,
    iso_softmax_options,
    iso_norm_options,
    iso_eltwise_options,
    iso_strides,
    iso_attention_shape,
    iso_attention_options,
    iso_error,
    iso_load_options,
    iso_model_info,
    iso_sentence_options,
    iso_sentence_tokens,
    iso_tokenizer_options,
    iso_token,
    iso_generate_options,
    iso_hypothesis,
    iso_generation,
]

# The names of Python, and iso_activation, iso_w16, iso_q_scale and iso_early_stopping.
ACTIVATIONS = {None: 0, "relu": 1, "silu": 2, "gelu": 3, "gelu_tanh": 4, "tanh": 5}
W16 = {"f16": 0, "bf16": 1}
SCALES = {"f16": 0, "f32": 1}
EARLY_STOPPING = {None: 0, False: 1, True: 2, "never": 3}

_context = POINTER(iso_context)
_linear_options = POINTER(iso_linear_options)
_q_format = POINTER(iso_q_format)
_error = POINTER(iso_error)
_size_out = POINTER(c_size_t)
_handle_out = POINTER(c_void_p)

# name: (result, arguments)
_Prototypes = Dict[str, Tuple[Any, List[Any]]]

CORE: _Prototypes = {
    "iso_strerror": (c_char_p, [c_int]),
    "iso_version": (c_char_p, []),
    "iso_isa_count": (c_size_t, []),
    "iso_isa_get": (c_void_p, [c_size_t]),
    "iso_isa_name": (c_char_p, [c_void_p]),
    "iso_isa_missing": (c_char_p, [c_void_p]),
    "iso_isa_names": (c_char_p, []),
    "iso_isa_active": (c_void_p, []),
    "iso_set_isa": (c_int, [c_char_p]),
    "iso_set_numerics": (c_int, [c_char_p]),
    "iso_numerics": (c_char_p, [c_void_p]),
    "iso_info_json": (c_int, [c_char_p, c_size_t, _size_out]),
    "iso_pool_create": (c_int, [_handle_out, c_size_t]),
    "iso_pool_destroy": (None, [c_void_p]),
    "iso_pool_executor": (c_void_p, [c_void_p]),
    "iso_usable_threads": (c_size_t, []),
    "iso_gemm_f32": (
        c_int,
        [c_void_p, c_size_t] * 3 + [c_size_t] * 3 + [POINTER(iso_gemm_options), _context],
    ),
    "iso_pack_f32_bytes": (c_int, [_size_out, c_size_t, c_size_t]),
    "iso_pack_f32": (
        c_int,
        [POINTER(iso_packed), c_void_p, c_size_t, c_void_p]
        + [c_size_t, c_size_t, c_size_t, c_int, _context],
    ),
    "iso_linear_f32": (
        c_int,
        [c_void_p, c_size_t] * 2 + [POINTER(iso_packed), c_size_t, _linear_options, _context],
    ),
    "iso_pack_w16_bytes": (c_int, [_size_out, c_size_t, c_size_t]),
    "iso_pack_w16": (
        c_int,
        [POINTER(iso_packed_w16), c_void_p, c_size_t, c_void_p]
        + [c_size_t, c_size_t, c_size_t, c_int, c_uint, _context],
    ),
    "iso_linear_w16": (
        c_int,
        [c_void_p, c_size_t] * 2 + [POINTER(iso_packed_w16), c_size_t, _linear_options, _context],
    ),
    "iso_round_w16": (
        c_int,
        [c_void_p, c_size_t] * 2 + [c_size_t, c_size_t, c_uint, _context],
    ),
    "iso_pack_q_bytes": (c_int, [_size_out, c_size_t, c_size_t, _q_format]),
    "iso_pack_q": (
        c_int,
        [POINTER(iso_packed_q), c_void_p, c_size_t, c_void_p]
        + [c_size_t, c_size_t, c_size_t, _q_format, _context],
    ),
    "iso_linear_q": (
        c_int,
        [c_void_p, c_size_t] * 2 + [POINTER(iso_packed_q), c_size_t, _linear_options, _context],
    ),
    "iso_linear_q_s8": (
        c_int,
        [c_void_p, c_size_t] * 2 + [POINTER(iso_packed_q), c_size_t, _linear_options, _context],
    ),
    "iso_quantize_s8": (
        c_int,
        [c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, _context],
    ),
    "iso_pack_s8_bytes": (c_int, [_size_out, c_size_t, c_size_t]),
    "iso_pack_s8": (
        c_int,
        [POINTER(iso_packed_s8), c_void_p, c_size_t, c_void_p]
        + [c_size_t, c_size_t, c_size_t, c_int, _context],
    ),
    "iso_linear_s8": (
        c_int,
        [c_void_p, c_size_t] * 2 + [POINTER(iso_packed_s8), c_size_t, _linear_options, _context],
    ),
    "iso_embed_f32": (
        c_int,
        [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]
        + [c_size_t, c_size_t, c_float, c_void_p, c_void_p, c_size_t, _context],
    ),
    "iso_embed_w16": (
        c_int,
        [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_uint]
        + [c_size_t, c_size_t, c_float, c_void_p, c_void_p, c_size_t, _context],
    ),
    "iso_embed_q": (
        c_int,
        [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, _q_format]
        + [c_size_t, c_size_t, c_float, c_void_p, c_void_p, c_size_t, _context],
    ),
    "iso_softmax_f32": (
        c_int,
        [c_void_p, c_size_t] * 2 + [c_size_t] * 2 + [POINTER(iso_softmax_options), _context],
    ),
    "iso_layernorm_f32": (
        c_int,
        [c_void_p, c_size_t] * 2 + [c_size_t] * 2 + [POINTER(iso_norm_options), _context],
    ),
    "iso_rmsnorm_f32": (
        c_int,
        [c_void_p, c_size_t] * 2 + [c_size_t] * 2 + [POINTER(iso_norm_options), _context],
    ),
    "iso_eltwise_f32": (
        c_int,
        [c_void_p, c_size_t] * 2 + [c_size_t] * 2 + [POINTER(iso_eltwise_options), _context],
    ),
    "iso_attention_f32": (
        c_int,
        [c_void_p] * 4 + [POINTER(iso_attention_shape), POINTER(iso_attention_options), _context],
    ),
}

MODEL: _Prototypes = {
    "iso_model_load": (
        c_int,
        [_handle_out, c_char_p, POINTER(iso_load_options), _context, _error],
    ),
    "iso_model_free": (None, [c_void_p]),
    "iso_model_get_info": (POINTER(iso_model_info), [c_void_p]),
    "iso_sentence_embed_f32": (
        c_int,
        [c_void_p] * 4 + [c_size_t, POINTER(iso_sentence_options), _context, _error],
    ),
    "iso_sentence_ids": (
        c_int,
        [c_void_p, c_void_p, c_char_p, c_size_t, c_void_p, c_size_t]
        + [POINTER(iso_sentence_tokens), _error],
    ),
    "iso_score_f32": (
        c_int,
        [c_void_p, c_void_p] + [c_void_p] * 4 + [c_size_t, _context, _error],
    ),
    "iso_generate": (
        c_int,
        [POINTER(POINTER(iso_generation)), c_void_p, c_void_p, c_void_p, c_size_t]
        + [POINTER(iso_generate_options), _context, _error],
    ),
    "iso_generation_free": (None, [POINTER(iso_generation)]),
    "iso_stop_create": (c_int, [_handle_out, c_void_p, c_void_p, c_size_t, _error]),
    "iso_stop_free": (None, [c_void_p]),
    "iso_stop_is_last": (c_int, [c_void_p, c_void_p]),
    "iso_tokenizer_load_with": (
        c_int,
        [_handle_out, c_char_p, POINTER(iso_tokenizer_options), _error],
    ),
    "iso_tokenizer_forced_bos": (c_int, [c_void_p, c_void_p]),
    "iso_tokenizer_free": (None, [c_void_p]),
    "iso_tokenizer_encode": (
        c_int,
        [c_void_p, c_char_p, c_size_t, c_void_p, c_size_t, _size_out]
        + [c_void_p, c_size_t, _size_out, _error],
    ),
    "iso_tokenizer_decode": (
        c_int,
        [c_void_p, c_void_p, c_size_t, c_char_p, c_size_t, _size_out],
    ),
}


def declare(library: ctypes.CDLL, prototypes: _Prototypes) -> None:
    """Gives the functions of a library their types. AttributeError when one is not there."""
    for name, (result, arguments) in prototypes.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
