#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write attention.json into directories of tests/data/models: what each layer attends to, as transformers has it.

Development only.  The attention of encoder and decoder to themselves, and of the decoder to the encoder, with
eager attention in double precision where transformers can: position tables and rotary embeddings stay float32.

    pip install transformers==4.51.3
    tools/make_attention.py
"""

import json
import warnings
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

MODELS = Path(__file__).resolve().parent.parent / "tests" / "data" / "models"
PAIRS = ("marian-swish", "bart", "m2m-100", "t5", "umt5", "flan-t5-bf16")
ENCODERS = ("bert", "roberta-f16", "distilbert-bf16")
DECODERS = ("gpt2", "llama", "qwen2-f16", "mistral", "gemma2-bf16")  # the last by transformers 5.24
SOURCE = [7, 9, 21, 30, 31, 12, 33, 5, 40, 8, 2]
TARGET = [11, 6, 25, 34, 13, 17]


def numbers(layers) -> list:
    """[layer][head][query][key], seven digits."""
    return [[[[float(f"{x:.7g}") for x in row] for row in head] for head in layer[0].tolist()] for layer in layers]


def in_double(model, **inputs):
    with torch.no_grad():
        try:
            return model.double()(**inputs, output_attentions=True)
        except RuntimeError:  # masks that are float32, or too large for a double
            return model.float()(**inputs, output_attentions=True)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in (*PAIRS, *ENCODERS, *DECODERS):
        directory = MODELS / name
        kind = AutoModelForSeq2SeqLM if name in PAIRS else AutoModel if name in ENCODERS else AutoModelForCausalLM
        model = kind.from_pretrained(directory, attn_implementation="eager", torch_dtype=torch.float32).eval()
        source = torch.tensor([SOURCE])
        case = {"source": SOURCE}
        if name in PAIRS:
            target = [AutoConfig.from_pretrained(directory).decoder_start_token_id, *TARGET]
            out = in_double(model, input_ids=source, attention_mask=torch.ones_like(source),
                            decoder_input_ids=torch.tensor([target]))
            case |= {"target": target, "encoder": numbers(out.encoder_attentions),
                     "decoder": numbers(out.decoder_attentions), "cross": numbers(out.cross_attentions)}
        else:
            out = in_double(model, input_ids=source, attention_mask=torch.ones_like(source))
            case["encoder" if name in ENCODERS else "decoder"] = numbers(out.attentions)
        path = directory / "attention.json"
        path.write_text(json.dumps(case, separators=(",", ":")) + "\n")
        print(f"{name:16} {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
