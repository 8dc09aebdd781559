/* SPDX-License-Identifier: MIT
 *
 * See gguf_files.h: the rows of what is broken in the file itself, whatever model it holds.
 */
#include "rows.h"

#include <string.h>

static void raw(gguf_maker *m, const void *data, size_t bytes) {
    blob_add(&m->values, data, bytes);
    m->value_count++;
}

/* Metadata. */
static void twice(gguf_maker *m) { gguf_u32(m, "llama.block_count", 1); }
static void unused(gguf_maker *m) {
    static const unsigned char bytes[] = {U8, I8, BOOL};
    static const unsigned char pairs[] = {U16, I16}, fours[] = {I32, F32},
                               eights[] = {U64, I64, F64};
    char key[] = "x.0";
    for (size_t i = 0; i < sizeof bytes; i++, key[2]++)
        gguf_number(m, key, bytes[i], 1, 1);
    for (size_t i = 0; i < sizeof pairs; i++, key[2]++)
        gguf_number(m, key, pairs[i], 1, 2);
    for (size_t i = 0; i < sizeof fours; i++, key[2]++)
        gguf_number(m, key, fours[i], 1, 4);
    for (size_t i = 0; i < sizeof eights; i++, key[2]++)
        gguf_number(m, key, eights[i], 1, 8);
    gguf_texts(m, "x.texts", (const char *const[]){NULL});
}
static void no_name(gguf_maker *m) { gguf_u32(m, "", 1); }
static void nul_name(gguf_maker *m) { raw(m, "\2\0\0\0\0\0\0\0a\0\4\0\0\0\0\0\0\0", 18); }
static void odd_name(gguf_maker *m) { raw(m, "\2\0\0\0\0\0\0\0a\xff\4\0\0\0\0\0\0\0", 18); }
static void name_of(gguf_maker *m, size_t bytes) {
    char name[4098];
    memset(name, 'a', sizeof name);
    name[bytes] = 0;
    gguf_u32(m, name, 1);
}
static void long_name(gguf_maker *m) { name_of(m, 4097); }
static void longest_name(gguf_maker *m) { name_of(m, 4096); }
static void far_name(gguf_maker *m) {
    raw(m,
        "\xff\xff\xff\xff\xff\xff\xff\xff"
        "aaaaaa",
        14);
}
static void odd_type(gguf_maker *m) { gguf_number(m, "x", 13, 0, 4); }
static void odd_bool(gguf_maker *m) { gguf_number(m, "x", BOOL, 2, 1); }
static void nested(gguf_maker *m) { gguf_number(m, "x", ARRAY, ARRAY, 12); }
static void long_array(gguf_maker *m) {
    gguf_number(m, "x", ARRAY, U64, 4);
    gguf_put(&m->values, UINT64_C(1) << 61, 8);
}
static void long_texts(gguf_maker *m) {
    gguf_number(m, "x", ARRAY, STRING, 4);
    gguf_put(&m->values, 1000, 8);
}
static void far_text(gguf_maker *m) { gguf_number(m, "x", STRING, UINT64_C(1) << 40, 8); }
static void odd_item(gguf_maker *m) {
    gguf_number(m, "x", ARRAY, BOOL, 4);
    gguf_put(&m->values, 2, 8);
    gguf_put(&m->values, 0x0301, 2);
}
static void split_file(gguf_maker *m) { gguf_number(m, "split.count", U16, 3, 2); }
static void no_split(gguf_maker *m) { gguf_number(m, "split.count", U16, 1, 2); }
static void odd_split(gguf_maker *m) { gguf_text(m, "split.count", "3"); }
static void align_24(gguf_maker *m) { gguf_u32(m, "general.alignment", 24); }
static void align_4(gguf_maker *m) { gguf_u32(m, "general.alignment", 4); }
static void align_most(gguf_maker *m) { gguf_u32(m, "general.alignment", 131072); }
static void align_64k(gguf_maker *m) { gguf_u32(m, "general.alignment", 65536); }
static void align_text(gguf_maker *m) { gguf_text(m, "general.alignment", "32"); }
static void align_other(gguf_maker *m) { gguf_u32(m, "general.alignment", 16384); }
static void infinite_items(gguf_maker *m) {
    gguf_numbers(m, "llama.x", F32, (const uint32_t[]){0x7f800000}, 1);
}

/* Tensors. */
static void same_tensor(gguf_maker *m) { gguf_f32(m, "token_embd.weight", 4, 7); }
static void quantised(gguf_maker *m) {
    gguf_tensor(m, "blk.0.attn_q.weight", IQ2_XXS, 2, (const uint64_t[]){256, 4}, 264);
}
static void blocks(gguf_maker *m) {
    gguf_tensor(m, "x", Q4_0, 2, (const uint64_t[]){64, 3}, 108);
    gguf_tensor(m, "y", Q8_0, 1, (const uint64_t[]){32}, 34);
    gguf_tensor(m, "z", Q4_K, 2, (const uint64_t[]){512, 3}, 864);
}
static void half_blocks(gguf_maker *m) {
    gguf_tensor(m, "blk.0.attn_q.weight", Q8_0, 2, (const uint64_t[]){48, 4}, 204);
}
static void half_k_blocks(gguf_maker *m) {
    gguf_tensor(m, "blk.0.attn_q.weight", Q4_K, 2, (const uint64_t[]){128, 4}, 288);
}
static void short_blocks(gguf_maker *m) {
    gguf_tensor(m, "blk.0.attn_q.weight", Q4_0, 2, (const uint64_t[]){4, 4}, 18);
}
static void many_blocks(gguf_maker *m) {
    gguf_tensor(m, "x", Q8_0, 2, (const uint64_t[]){(uint64_t)1 << 40, (uint64_t)1 << 25}, 34);
}
static void mxfp4(gguf_maker *m) { gguf_tensor(m, "x", 39, 1, (const uint64_t[]){32}, 17); }
static void type_4711(gguf_maker *m) { gguf_tensor(m, "x", 4711, 1, (const uint64_t[]){1}, 4); }
static void whole_numbers(gguf_maker *m) {
    gguf_tensor(m, "x", I8_TENSOR, 1, (const uint64_t[]){5}, 5);
}
static void wider_numbers(gguf_maker *m) {
    for (uint32_t i = 1; i < 4; i++)
        gguf_tensor(m, &"x\0y\0z"[2 * (i - 1)], I8_TENSOR + i, 1, (const uint64_t[]){5},
                    (size_t)5 << i);
}
static void needed_numbers(gguf_maker *m) {
    gguf_tensor(m, "output_norm.weight", I8_TENSOR, 1, (const uint64_t[]){4}, 4);
}
static void doubles(gguf_maker *m) {
    gguf_tensor(m, "output_norm.weight", F64_TENSOR, 1, (const uint64_t[]){4}, 32);
}
static void no_rank(gguf_maker *m) { gguf_tensor(m, "x", 0, 0, NULL, 4); }
static void rank_5(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 5, (const uint64_t[]){1, 1, 1, 1, 1}, 4);
}
static void rank_4(gguf_maker *m) { gguf_tensor(m, "x", 0, 4, (const uint64_t[]){1, 2, 1, 1}, 8); }
static void empty(gguf_maker *m) { gguf_tensor(m, "x", 0, 2, (const uint64_t[]){4, 0}, 0); }
static void vast(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 2, (const uint64_t[]){UINT64_C(1) << 40, UINT64_C(1) << 40}, 4);
}
static void vast_bytes(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 1, (const uint64_t[]){UINT64_C(1) << 62}, 4);
}
static void nul_tensor(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 1, (const uint64_t[]){1}, 4);
    m->tensors.bytes[m->tensors.count - 25] = 0;
}
static void odd_tensor(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 1, (const uint64_t[]){1}, 4);
    m->tensors.bytes[m->tensors.count - 25] = 0xff;
}
static void no_tensor_name(gguf_maker *m) { gguf_tensor(m, "", 0, 1, (const uint64_t[]){1}, 4); }
static void move(gguf_maker *m, size_t tensor, uint64_t to) {
    for (size_t i = 0; i < 8; i++)
        m->tensors.bytes[m->places[tensor] + i] = (unsigned char)(to >> 8 * i);
}
static void unaligned(gguf_maker *m) { move(m, 1, 113); }
static void overlap(gguf_maker *m) { move(m, 1, 96); }
static void hole(gguf_maker *m) { move(m, 1, 160); }
static void wrapped(gguf_maker *m) { move(m, 0, UINT64_MAX - 31); }
static void swapped(gguf_maker *m) { /* in another order than that of the list */
    move(m, 1, 352);
    move(m, 6, 128);
}
static void too_much(gguf_maker *m) {
    for (int i = 0; i < 64; i++)
        gguf_put(&m->data, 0, 1);
}
static void too_little(gguf_maker *m) { m->data.count -= 4; }
static void inside(gguf_maker *m) { move(m, 1, 32); }
static void odd_other_texts(gguf_maker *m) {
    gguf_text(m, "general.name", "\xff");
    gguf_text(m, "llamas.x", "\xff");
    gguf_text(m, "llam", "\xff");
    gguf_number(m, "general.x", F32, 0x7f800000, 4);
}
static void odd_own_text(gguf_maker *m) { gguf_text(m, "llama.x", "\xff"); }

#define AT(where, ...)                                                                             \
    .at = where, .bytes = sizeof((unsigned char[]){__VA_ARGS__}), .to = {__VA_ARGS__}
static const gguf_row rows[] = {
    {"good", ISOBIT_OK, "", .add = NULL},
    {"version 2", ISOBIT_OK, "", AT(4, 2)},

    /* The head. */
    {"no GGUF", ISOBIT_E_UNSUPPORTED, "model.gguf: this is no GGUF file", AT(3, 'H')},
    {"version 1", ISOBIT_E_UNSUPPORTED, "GGUF of version 1; isobit reads versions 2 and 3",
     AT(4, 1)},
    {"version 4", ISOBIT_E_UNSUPPORTED, "GGUF of version 4", AT(4, 4)},
    {"version 0", ISOBIT_E_UNSUPPORTED, "GGUF of version 0", AT(4, 0)},
    {"big-endian", ISOBIT_E_UNSUPPORTED, "a big-endian GGUF file", AT(4, 0, 0, 0, 3)},
    {"many tensors", ISOBIT_E_LIMIT, "262145 tensors; at most 65536 and 262144", AT(8, 1, 0, 4)},
    {"all tensors", ISOBIT_E_LIMIT, "18446744073709551615 tensors",
     AT(8, 255, 255, 255, 255, 255, 255, 255, 255)},
    {"many values", ISOBIT_E_LIMIT, "65537 values", AT(16, 1, 0, 1)},
    {"more than there is", ISOBIT_E_TRUNCATED, "too short for what it counts", AT(8, 0, 0, 4)},
    {"one tensor more", ISOBIT_E_TRUNCATED, "a tensor goes beyond the end", AT(8, 12)},
    {"one tensor less", ISOBIT_E_HOLE, "the last tensor ends at byte 560", AT(8, 10)},

    /* Metadata. */
    {"values of all types", ISOBIT_OK, "", .add = unused},
    {"key twice", ISOBIT_E_DUPLICATE, "the key \"llama.block_count\" occurs twice", .add = twice},
    {"key empty", ISOBIT_E_LIMIT, "a value has a name that has not 1 to 4096 bytes",
     .add = no_name},
    {"key too long", ISOBIT_E_LIMIT, "has not 1 to 4096 bytes", .add = long_name},
    {"key as long as can be", ISOBIT_OK, "", .add = longest_name},
    {"key with NUL", ISOBIT_E_UTF8, "not UTF-8, or has a NUL", .add = nul_name},
    {"key no UTF-8", ISOBIT_E_UTF8, "not UTF-8, or has a NUL", .add = odd_name},
    {"key beyond the end", ISOBIT_E_TRUNCATED, "a value goes beyond the end", .add = far_name},
    {"type 13", ISOBIT_E_UNSUPPORTED, "the value of \"x\" has the type 13; 0 to 12",
     .add = odd_type},
    {"bool 2", ISOBIT_E_CONFIG, "the value of \"x\" is neither 0 nor 1", .add = odd_bool},
    {"bool 3 in an array", ISOBIT_E_CONFIG, "is neither 0 nor 1", .add = odd_item},
    {"array of arrays", ISOBIT_E_UNSUPPORTED, "\"x\" is an array of arrays", .add = nested},
    {"array beyond the end", ISOBIT_E_TRUNCATED, "\"x\" goes beyond the end", .add = long_array},
    {"strings beyond the end", ISOBIT_E_TRUNCATED, "\"x\" goes beyond the end", .add = long_texts},
    {"string beyond the end", ISOBIT_E_TRUNCATED, "\"x\" goes beyond the end", .add = far_text},
    {"split", ISOBIT_E_UNSUPPORTED, "model.gguf is one of 3 files of a model that was split",
     .add = split_file},
    {"items of a list, unused", ISOBIT_OK, "", .add = infinite_items},
    {"split into one", ISOBIT_OK, "", .add = no_split},
    {"split into a string", ISOBIT_E_CONFIG,
     "\"split.count\" is a string; a 16-bit number is expected", .add = odd_split},
    {"alignment 24", ISOBIT_E_CONFIG, "\"general.alignment\" is 24; a power of 2", .add = align_24},
    {"alignment 4", ISOBIT_E_CONFIG, "\"general.alignment\" is 4", .add = align_4},
    {"alignment 131072", ISOBIT_E_CONFIG, "\"general.alignment\" is 131072", .add = align_most},
    {"alignment as text", ISOBIT_E_CONFIG, "\"general.alignment\" is a string; a 32-bit",
     .add = align_text},
    {"alignment 65536", ISOBIT_E_OFFSET,
     "tensor \"blk.0.attn_norm.weight\" does not begin at a multiple", .add = align_64k},
    {"alignment that the tensors lack", ISOBIT_E_OFFSET,
     "tensor \"blk.0.attn_norm.weight\" does not begin at a multiple", .add = align_other},

    /* Tensors. */
    {"quantised", ISOBIT_E_UNSUPPORTED,
     "tensor \"blk.0.attn_q.weight\" has type IQ2_XXS, which isobit does not read yet",
     .skip = "blk.0.attn_q.weight", .add = quantised},
    {"blocks, unused", ISOBIT_OK, "", .add = blocks},
    {"a row of one block and a half", ISOBIT_E_SHAPE,
     "tensor \"blk.0.attn_q.weight\" has rows that are no whole blocks of 32 elements",
     .skip = "blk.0.attn_q.weight", .add = half_blocks},
    {"rows shorter than a block", ISOBIT_E_SHAPE,
     "tensor \"blk.0.attn_q.weight\" has rows that are no whole blocks of 32 elements",
     .skip = "blk.0.attn_q.weight", .add = short_blocks},
    {"a row shorter than a block of 256", ISOBIT_E_SHAPE,
     "tensor \"blk.0.attn_q.weight\" has rows that are no whole blocks of 256 elements",
     .skip = "blk.0.attn_q.weight", .add = half_k_blocks},
    {"blocks beyond 2^64 bits", ISOBIT_E_OVERFLOW, "tensor \"x\"", .add = many_blocks},
    {"quantised, unused", ISOBIT_E_UNSUPPORTED, "tensor \"x\" has type MXFP4", .add = mxfp4},
    {"unknown type", ISOBIT_E_UNSUPPORTED, "tensor \"x\" has type 4711, which isobit does not know",
     .add = type_4711},
    {"whole numbers, unused", ISOBIT_OK, "", .add = whole_numbers},
    {"wider whole numbers", ISOBIT_OK, "", .add = wider_numbers},
    {"whole numbers", ISOBIT_E_DTYPE, "\"output_norm.weight\" has the element type I8",
     .skip = "output_norm.weight", .add = needed_numbers},
    {"doubles", ISOBIT_OK, "", .skip = "output_norm.weight", .add = doubles},
    {"tensor twice", ISOBIT_E_DUPLICATE, "tensor \"token_embd.weight\" occurs twice",
     .add = same_tensor},
    {"rank 0", ISOBIT_E_LIMIT, "tensor \"x\" has not 1 to 4 dimensions", .add = no_rank},
    {"rank 5", ISOBIT_E_LIMIT, "has not 1 to 4 dimensions", .add = rank_5},
    {"rank 4", ISOBIT_OK, "", .add = rank_4},
    {"size 0", ISOBIT_E_SHAPE, "tensor \"x\" has a dimension of 0", .add = empty},
    {"product of the shape", ISOBIT_E_OVERFLOW, "the product of the shape overflows", .add = vast},
    {"size in bytes", ISOBIT_E_OVERFLOW, "the size in bytes overflows", .add = vast_bytes},
    {"name with NUL", ISOBIT_E_UTF8, "a tensor has a name that is not UTF-8", .add = nul_tensor},
    {"name no UTF-8", ISOBIT_E_UTF8, "a tensor has a name that is not UTF-8", .add = odd_tensor},
    {"no name", ISOBIT_E_LIMIT, "a tensor has a name that has not 1 to", .add = no_tensor_name},
    {"not aligned", ISOBIT_E_OFFSET, "\"blk.0.attn_norm.weight\" does not begin at a multiple",
     .add = unaligned},
    {"overlapping", ISOBIT_E_OFFSET,
     "\"blk.0.attn_norm.weight\" begins at byte 96 of the data; it should at 128", .add = overlap},
    {"a text of the family that is not UTF-8", ISOBIT_E_CONFIG,
     "\"llama.x\" is not finite, or a string that is not UTF-8", .add = odd_own_text},
    {"texts and numbers of nobody", ISOBIT_OK, "", .add = odd_other_texts},
    {"one in another", ISOBIT_E_OFFSET,
     "\"blk.0.attn_norm.weight\" begins at byte 32 of the data; it should at 128", .add = inside},
    {"hole", ISOBIT_E_HOLE, "begins at byte 160 of the data", .add = hole},
    {"end beyond 2^64", ISOBIT_E_OVERFLOW, "\"token_embd.weight\" ends beyond 2^64 bytes",
     .add = wrapped},
    {"another order", ISOBIT_OK, "", .add = swapped},
    {"behind the last tensor", ISOBIT_E_HOLE, "the last tensor ends at byte 592 of the data",
     .add = too_much},
    {"not all data", ISOBIT_E_TRUNCATED,
     "\"output_norm.weight\" ends at byte 592 of the data, of which there are 588",
     .add = too_little},
    {"missing", ISOBIT_E_MISSING, "model.gguf has no tensor \"blk.0.attn_v.weight\"",
     .skip = "blk.0.attn_v.weight"},
};
const gguf_table gguf_file_rows = {rows, sizeof rows / sizeof *rows};
