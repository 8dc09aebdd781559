# SPDX-License-Identifier: MIT
"""Writes a GGUF file: a model of the Llama architecture with random weights, all of them float32.

usage: write_model.py FILE

120 million parameters: large enough that a prompt is all matrix products, small enough that one
takes a second. It has no words; tokens are numbers. The same file is written everywhere.
"""

import struct
import sys

import numpy

WIDTH, HIDDEN, HEADS, LAYERS, WORDS, CONTEXT = 1024, 2816, 16, 8, 8192, 1024
UINT32, FLOAT32, STRING = 4, 6, 8
ALIGNMENT = 32


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def entry(key, kind, value):
    packed = {UINT32: lambda: struct.pack("<I", value), FLOAT32: lambda: struct.pack("<f", value),
              STRING: lambda: text(value)}[kind]()
    return text(key) + struct.pack("<I", kind) + packed


def tensors():
    """(name, shape with the row length first, standard deviation; 0: all ones)"""
    yield "token_embd.weight", (WIDTH, WORDS), 1.0
    for i in range(LAYERS):
        yield "blk.%d.attn_norm.weight" % i, (WIDTH,), 0
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield "blk.%d.%s.weight" % (i, name), (WIDTH, WIDTH), WIDTH**-0.5
        yield "blk.%d.ffn_norm.weight" % i, (WIDTH,), 0
        yield "blk.%d.ffn_gate.weight" % i, (WIDTH, HIDDEN), WIDTH**-0.5
        yield "blk.%d.ffn_up.weight" % i, (WIDTH, HIDDEN), WIDTH**-0.5
        yield "blk.%d.ffn_down.weight" % i, (HIDDEN, WIDTH), HIDDEN**-0.5
    yield "output_norm.weight", (WIDTH,), 0
    yield "output.weight", (WIDTH, WORDS), WIDTH**-0.5


def main(path):
    entries = [
        entry("general.architecture", STRING, "llama"),
        entry("general.alignment", UINT32, ALIGNMENT),
        entry("llama.context_length", UINT32, CONTEXT),
        entry("llama.embedding_length", UINT32, WIDTH),
        entry("llama.block_count", UINT32, LAYERS),
        entry("llama.feed_forward_length", UINT32, HIDDEN),
        entry("llama.attention.head_count", UINT32, HEADS),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("llama.rope.dimension_count", UINT32, WIDTH // HEADS),
        entry("llama.vocab_size", UINT32, WORDS),
        entry("tokenizer.ggml.model", STRING, "none"),
    ]
    described, offset = [], 0
    for name, shape, _ in tensors():
        described.append(text(name) + struct.pack("<I", len(shape)) +
                         b"".join(struct.pack("<Q", n) for n in shape) +
                         struct.pack("<IQ", 0, offset))  # 0: F32
        size = 4 * int(numpy.prod(shape))
        offset += (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    random = numpy.random.Generator(numpy.random.PCG64(1))
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(described), len(entries)))
        file.write(b"".join(entries) + b"".join(described))
        for _, shape, deviation in tensors():
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            values = numpy.ones(shape[::-1], numpy.float32) if deviation == 0 else \
                random.standard_normal(shape[::-1], numpy.float32) * numpy.float32(deviation)
            file.write(values.astype("<f4").tobytes())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: write_model.py FILE")
    main(sys.argv[1])
