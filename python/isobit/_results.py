# SPDX-License-Identifier: MIT
"""What a model says of itself, and what it gives."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np
import numpy.typing as npt

from ._arrays import Floats

Ids = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class ModelInfo:
    """What the configuration says; an id that the model lacks is None."""

    family: str
    d: int
    encoder_layers: int
    decoder_layers: int
    encoder_heads: int
    decoder_heads: int
    encoder_ffn: int
    decoder_ffn: int
    source_vocabulary: int
    target_vocabulary: int
    max_positions: int
    pad_id: Optional[int]
    bos_id: Optional[int]
    decoder_start_id: Optional[int]
    unk_id: Optional[int]
    eos_ids: Tuple[int, ...]
    default_beams: int
    default_max_length: int
    parameters: int
    weight_bytes: int
    has_logits: bool  # not so of an encoder that came without the head of a masked language model
    has_pooler: bool
    sentence_max_length: int  # to which sentence-transformers cuts texts for embed
    default_sampling: bool
    default_temperature: float
    default_top_k: int  # 0: all
    default_top_p: float
    default_min_p: float
    default_max_new_tokens: int  # of a decoder alone; 0: default_max_length counts the prompt
    parameters_16: int  # of the parameters, those that are held in 16 bits
    parameters_8: int  # and in 8 or 4, with scales: of groups,
    parameters_4: int
    parameters_int8: int  # or, of those in 8, of rows: so many are multiplied as int8
    parameters_int4: int  # of those in groups, of 4 or 8 bits: so many multiply rows of int8
    sentence_d: int  # numbers of a vector of embed
    weight_types: str  # that the files have, and how many weights of each: "Q4_K 65536, F32 768"


@dataclass(frozen=True)
class Token:
    """One token of a sequence that grows, for on_token."""

    source: int  # its index in the call
    hypothesis: int
    position: int  # in its sequence, from 0
    id: int
    log_prob: float
    last: bool  # its sequence ends here


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One generated sequence, without the start token, its final EOS included if it has one."""

    ids: Ids
    score: float  # beams: the sum of log_probs / length^penalty; else the sum
    log_probs: Floats
    attention: Optional[Floats]  # [decoder layer][head][target position][source position]
