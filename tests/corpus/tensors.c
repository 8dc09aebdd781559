/* SPDX-License-Identifier: MIT
 *
 * Rows of corpus.h: whole safetensors files, and those that config.json contradicts.
 */
#include "../corpus.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

const corpus_file corpus_files[] = {
    {"empty", ISOBIT_E_TRUNCATED, "0 bytes", 0, {0}},
    {"one byte", ISOBIT_E_TRUNCATED, "1 bytes", 1, {2}},
    {"seven bytes", ISOBIT_E_TRUNCATED, "7 bytes", 7, {2}},
    {"length 0", ISOBIT_E_HEADER_SIZE, "header of 0", 8, {0}},
    {"length 0 and text", ISOBIT_E_HEADER_SIZE, "header of 0", 10, {[8] = '{', '}'}},
    {"length 1", ISOBIT_E_HEADER_SIZE, "header of 1", 9, {1, [8] = '{'}},
    {"length 2, nothing", ISOBIT_E_TRUNCATED, "header of 2", 8, {2}},
    {"length 2, one byte", ISOBIT_E_TRUNCATED, "header of 2", 9, {2, [8] = '{'}},
    {"length by one", ISOBIT_E_TRUNCATED, "header of 3", 10, {3, [8] = '{', '}'}},
    {"length big endian", ISOBIT_E_HEADER_SIZE, "header of", 10, {[7] = 2, '{', '}'}},
    {"length 100000000", ISOBIT_E_TRUNCATED, "100000000", 16, {0, 0xe1, 0xf5, 0x05}},
    {"length 100000001", ISOBIT_E_HEADER_SIZE, "100000001", 16, {1, 0xe1, 0xf5, 0x05}},
    {"length 2^31", ISOBIT_E_HEADER_SIZE, "2147483648", 16, {0, 0, 0, 0x80}},
    {"length 2^32", ISOBIT_E_HEADER_SIZE, "4294967296", 16, {0, 0, 0, 0, 1}},
    {"length 2^32+2", ISOBIT_E_HEADER_SIZE, "4294967298", 16, {2, 0, 0, 0, 1, 0, 0, 0, '{', '}'}},
    {"length 2^63-1",
     ISOBIT_E_HEADER_SIZE,
     "9223372036854775807",
     16,
     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
    {"length 2^63", ISOBIT_E_HEADER_SIZE, "9223372036854775808", 16, {[7] = 0x80}},
    {"length 2^64-8 wraps",
     ISOBIT_E_HEADER_SIZE,
     "18446744073709551608",
     16,
     {0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    {"length 2^64-5 wraps",
     ISOBIT_E_HEADER_SIZE,
     "18446744073709551611",
     16,
     {0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    {"length 2^64-1",
     ISOBIT_E_HEADER_SIZE,
     "18446744073709551615",
     16,
     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    {"zeros", ISOBIT_E_HEADER_SIZE, "header of 0", 4096, {0}},
    {"header of zeros", ISOBIT_E_JSON, "object", 4096, {0xf8, 0x0f}},
    {"no tensor", ISOBIT_E_MISSING, "no tensor", 10, {2, [8] = '{', '}'}},
    {"a ZIP archive", ISOBIT_E_HEADER_SIZE, "header of", 64, {'P', 'K', 3, 4, 20, 0, 8, 8}},
    {"a pickle", ISOBIT_E_HEADER_SIZE, "header of", 64, {0x80, 2, 0x8a, 10, 'l', 0xfc, 0x9c, 'F'}},
    {"a GGUF file", ISOBIT_E_HEADER_SIZE, "header of", 64, {'G', 'G', 'U', 'F', 3, 0, 0, 0}},
    {"a text", ISOBIT_E_HEADER_SIZE, "header of", 64, {'v', 'e', 'r', 's', 'i', 'o', 'n', ' '}},
};
const size_t corpus_file_count = COUNT(corpus_files);

/* -------------------------------------------------------------------------------------- tensors */

#define ENCODER "model.encoder.layers.0."
#define DECODER "model.decoder.layers.0."
#define MISSING(tensor)                                                                            \
    { "missing " tensor, ISOBIT_E_MISSING, tensor, .skip = tensor }

const corpus_tensors corpus_tensor_files[] = {
    MISSING("model.shared.weight"),
    MISSING("final_logits_bias"),
    MISSING(ENCODER "self_attn.q_proj.weight"),
    MISSING(ENCODER "self_attn.k_proj.bias"),
    MISSING(ENCODER "self_attn.out_proj.weight"),
    MISSING(ENCODER "self_attn_layer_norm.weight"),
    MISSING(ENCODER "self_attn_layer_norm.bias"),
    MISSING(ENCODER "fc1.weight"),
    MISSING(ENCODER "fc2.bias"),
    MISSING(DECODER "encoder_attn.q_proj.weight"),
    MISSING(DECODER "encoder_attn.k_proj.weight"),
    MISSING(DECODER "encoder_attn.v_proj.bias"),
    MISSING(DECODER "encoder_attn.out_proj.weight"),
    MISSING(DECODER "encoder_attn_layer_norm.weight"),
    MISSING(DECODER "final_layer_norm.bias"),
    {"vocabulary smaller", ISOBIT_E_SHAPE, "[7, 8] is expected", .v = CORPUS_V - 1},
    {"vocabulary larger", ISOBIT_E_SHAPE, "[7, 8] is expected", .v = CORPUS_V + 1},
    {"width smaller", ISOBIT_E_SHAPE, "[7, 8] is expected", .d = CORPUS_D - 1},
    {"width larger", ISOBIT_E_SHAPE, "[7, 8] is expected", .d = CORPUS_D * 2},
    {"ffn smaller", ISOBIT_E_SHAPE, "[12, 8] is expected", .f = CORPUS_FFN - 1},
    {"ffn larger", ISOBIT_E_SHAPE, "[12, 8] is expected", .f = CORPUS_FFN + 16},
    {"embedding transposed", ISOBIT_E_SHAPE, "[7, 8] is expected", .skip = "model.shared.weight",
     .extra = "model.shared.weight", .n = CORPUS_D, .k = CORPUS_V},
    {"embedding a vector", ISOBIT_E_SHAPE, "[7, 8] is expected", .skip = "model.shared.weight",
     .extra = "model.shared.weight", .n = CORPUS_D * CORPUS_V},
    {"bias without its 1", ISOBIT_E_SHAPE, "[1, 7] is expected", .skip = "final_logits_bias",
     .extra = "final_logits_bias", .n = CORPUS_V},
    {"bias long", ISOBIT_E_SHAPE, "[1, 7] is expected", .skip = "final_logits_bias",
     .extra = "final_logits_bias", .n = 1, .k = CORPUS_V + 1},
    {"norm a matrix", ISOBIT_E_SHAPE, "[8] is expected", .skip = ENCODER "final_layer_norm.weight",
     .extra = ENCODER "final_layer_norm.weight", .n = 8, .k = 1},
    {"norm empty", ISOBIT_E_SHAPE, "[8] is expected", .skip = ENCODER "final_layer_norm.weight",
     .extra = ENCODER "final_layer_norm.weight", .n = 0},
    {"positions short", ISOBIT_E_SHAPE, "embed_positions",
     .extra = "model.encoder.embed_positions.weight", .n = 5, .k = CORPUS_D},
    {"positions narrow", ISOBIT_E_SHAPE, "embed_positions",
     .extra = "model.decoder.embed_positions.weight", .n = 1024, .k = CORPUS_D - 1},
    {"integers", ISOBIT_E_DTYPE, "F32, F16, BF16 or F64", .odd = ENCODER "fc1.weight",
     .dtype = "I32"},
    {"unsigned", ISOBIT_E_DTYPE, "F32, F16, BF16 or F64", .odd = "model.shared.weight",
     .dtype = "U32"},
    {"unknown type", ISOBIT_E_UNSUPPORTED, "unknown element type", .odd = "model.shared.weight",
     .dtype = "F33"},
    {"unknown type escaped", ISOBIT_E_UNSUPPORTED, "\\x0a", .odd = "model.shared.weight",
     .dtype = "Q4\\n"},
    {"small letters", ISOBIT_E_UNSUPPORTED, "\"f32\"", .odd = "final_logits_bias", .dtype = "f32"},
    {"type with NUL", ISOBIT_E_UNSUPPORTED, "unknown element type", .odd = DECODER "fc2.bias",
     .dtype = "F32\\u0000"},
};
const size_t corpus_tensor_file_count = COUNT(corpus_tensor_files);
