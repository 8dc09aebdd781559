/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 and 8 bits in groups: which arguments are refused, and that nothing changes then.
 */
#include "few_bits.h"

void wrong_arguments_are_refused(void **unused);

void wrong_arguments_are_refused(void **unused) {
    (void)unused;
    static const iso_q_format q8_0 = {8, 32, ISOBIT_SCALE_F16}, q4_0 = {4, 32, ISOBIT_SCALE_F16};
    enum { M = 3, N = 40, K = 64, BLOCK = 34 };
    static unsigned char w[N * K / 32 * BLOCK];
    static uint32_t room[48 * K / 2] __attribute__((aligned(64)));
    static float x[M * K], y[M * N], e[2 * K];
    const uint32_t ids[2] = {0, 7};
    iso_packed_q p = {.n = 77};
    size_t bytes = 5;
    REFUSED(NULL, iso_pack_q_bytes(NULL, N, K, &q8_0));
    REFUSED(NULL, iso_pack_q_bytes(&bytes, N, K, NULL));
    REFUSED(DIM, iso_pack_q_bytes(&bytes, N, K + 16, &q8_0));
    REFUSED(OVERFLOW, iso_pack_q_bytes(&bytes, SIZE_MAX, 32, &q8_0));
    REFUSED(OVERFLOW, iso_pack_q_bytes(&bytes, SIZE_MAX / 2, SIZE_MAX / 64 * 32, &q8_0));
    REFUSED(OVERFLOW, iso_pack_q_bytes(&bytes, SIZE_MAX / 4, 256, &q8_0));
    REFUSED(OVERFLOW, iso_pack_q_bytes(&bytes, SIZE_MAX / 2, 1024, &q8_0)); /* 2^64 blocks */
    static const iso_q_format none_such[] = {{5, 32, ISOBIT_SCALE_F16},  {0, 32, ISOBIT_SCALE_F16},
                                             {8, 8, ISOBIT_SCALE_F16},   {8, 0, ISOBIT_SCALE_F16},
                                             {4, 256, ISOBIT_SCALE_F16}, {4, 32, (iso_q_scale)6}};
    for (size_t i = 0; i < COUNT(none_such); i++)
        REFUSED(OPTION, iso_pack_q_bytes(&bytes, N, K, &none_such[i]));
    assert_int_equal(bytes, 5);
    assert_ok(iso_pack_q_bytes(&bytes, N, K, &q8_0));
    assert_int_equal(bytes, 3 * 2 * (32 + 512));
#define PACK(p, to, bytes, w, ldw, k, f) iso_pack_q(p, to, bytes, w, ldw, N, k, f, NULL)
    REFUSED(NULL, PACK(NULL, room, bytes, w, 2, K, &q8_0));
    REFUSED(NULL, PACK(&p, NULL, bytes, w, 2, K, &q8_0));
    REFUSED(NULL, PACK(&p, room, bytes, NULL, 2, K, &q8_0));
    REFUSED(NULL, PACK(&p, room, bytes, w, 2, K, NULL));
    REFUSED(OPTION, PACK(&p, room, bytes, w, 2, K, &none_such[0]));
    REFUSED(DIM, PACK(&p, room, bytes, w, 2, K - 1, &q8_0));
    REFUSED(ALIGN, PACK(&p, room + 1, bytes, w, 2, K, &q8_0));
    REFUSED(WORKSPACE, PACK(&p, room, bytes - 1, w, 2, K, &q8_0));
    REFUSED(LD, PACK(&p, room, bytes, w, 1, K, &q8_0));
    REFUSED(OVERFLOW, PACK(&p, room, bytes, w, SIZE_MAX / 40, K, &q8_0));
    REFUSED(OVERFLOW,
            PACK(&p, room, bytes, w, SIZE_MAX / N + 1, K, &q8_0)); /* 2^64 and a few more */
    REFUSED(ALIAS, PACK(&p, room, bytes, (const char *)room + bytes - 1, 2, K, &q8_0));
    assert_int_equal(p.n, 77);
    assert_ok(PACK(&p, room, bytes, w, 2, K, &q8_0)); /* scales are 0 */
    assert_true(p.n == N && p.k == K && p.format.bits == 8 && p.format.group == 32);
    assert_ptr_equal(p.data, room);
#undef PACK
#define LINEAR(y, ldy, x, ldx, w) iso_linear_q(y, ldy, x, ldx, w, M, NULL, NULL)
    y[0] = 1;
    assert_ok(LINEAR(y, N, x, K, &p));
    assert_true(y[0] == 0);
    WRONG_OPERANDS_ARE_REFUSED(LINEAR, y, N, x, K, &p);
    iso_packed_q wrong = p;
    wrong.data = NULL;
    REFUSED(NULL, LINEAR(y, N, x, K, &wrong));
    wrong.data = room, wrong.format.bits = 3;
    REFUSED(OPTION, LINEAR(y, N, x, K, &wrong));
    REFUSED(OPTION, iso_linear_q_workspace_bytes(&bytes, &wrong, M, NULL));
    wrong = p, wrong.k = K + 1;
    REFUSED(DIM, LINEAR(y, N, x, K + 1, &wrong));
    REFUSED(NULL, iso_linear_q_workspace_bytes(NULL, &p, M, NULL));
    REFUSED(NULL, iso_linear_q_workspace_bytes(&bytes, NULL, M, NULL));
#undef LINEAR
#define LINEAR(y, ldy, x, ldx, w) iso_linear_q_s8(y, ldy, x, ldx, w, M, NULL, NULL)
    y[0] = 1;
    assert_ok(LINEAR(y, N, x, K, &p));
    assert_true(y[0] == 0);
    WRONG_OPERANDS_ARE_REFUSED(LINEAR, y, N, x, K, &p);
    wrong = p, wrong.data = NULL;
    REFUSED(NULL, LINEAR(y, N, x, K, &wrong));
    wrong = p, wrong.k = K + 1;
    REFUSED(DIM, LINEAR(y, N, x, K + 1, &wrong));
    REFUSED(DIM, iso_linear_q_s8_workspace_bytes(&bytes, &wrong, M, NULL));
    wrong = p, wrong.format.group = 33;
    REFUSED(OPTION, LINEAR(y, N, x, K, &wrong));
    REFUSED(OPTION, iso_linear_q_s8_workspace_bytes(&bytes, &wrong, M, NULL));
    REFUSED(NULL, iso_linear_q_s8_workspace_bytes(NULL, &p, M, NULL));
    REFUSED(NULL, iso_linear_q_s8_workspace_bytes(&bytes, NULL, M, NULL));
    const iso_linear_options unknown = {.size = 3};
    REFUSED(SIZE, iso_linear_q_s8(y, N, x, K, &p, M, &unknown, NULL));
    const iso_context older = {.size = 3};
    REFUSED(SIZE, iso_linear_q_s8(y, N, x, K, &p, M, NULL, &older));
    REFUSED(SIZE, iso_linear_q_s8_workspace_bytes(&bytes, &p, M, &older));
    assert_ok(iso_linear_q_s8_workspace_bytes(&bytes, &p, 0, NULL));
    assert_int_equal(bytes, 0);
    assert_ok(iso_linear_q_s8_workspace_bytes(&bytes, &p, M, NULL)); /* lines of 32 elements */
    assert_true(bytes >= 64 * M * (K / 32) && bytes <= 64 * M * (K / 32) + 64);
    wrong = p, wrong.k = SIZE_MAX / 64 * 32;
    REFUSED(OVERFLOW, iso_linear_q_s8_workspace_bytes(&bytes, &wrong, SIZE_MAX, NULL));
#undef LINEAR
#define EMBED(y, ldy, ids, table, format, vocabulary, d)                                           \
    iso_embed_q(y, ldy, ids, 2, table, format, vocabulary, d, 1, NULL, NULL, 0, NULL)
    assert_ok(EMBED(e, K, ids, w, &q8_0, 8, K));
    REFUSED(NULL, EMBED(NULL, K, ids, w, &q8_0, 8, K));
    REFUSED(NULL, EMBED(e, K, NULL, w, &q8_0, 8, K));
    REFUSED(NULL, EMBED(e, K, ids, NULL, &q8_0, 8, K));
    REFUSED(NULL, EMBED(e, K, ids, w, NULL, 8, K));
    REFUSED(LD, EMBED(e, K - 1, ids, w, &q8_0, 8, K));
    REFUSED(RANGE, EMBED(e, K, ids, w, &q8_0, 7, K));
    REFUSED(OPTION, EMBED(e, K, ids, w, &none_such[3], 8, K));
    REFUSED(DIM, EMBED(e, K, ids, w, &q8_0, 8, K - 8));
    REFUSED(OVERFLOW, EMBED(e, K, ids, w, &q8_0, SIZE_MAX / 4, K));
    REFUSED(ALIAS, EMBED(e, K, ids, e + 2, &q8_0, 8, K));
#undef EMBED
    iso_packed_q none = {.format = q4_0};
    assert_ok(iso_pack_q(&none, NULL, 0, NULL, 0, 0, 64, &q4_0, NULL));
    assert_ok(iso_linear_q(NULL, 0, NULL, 64, &none, 3, NULL, NULL));
    assert_ok(iso_linear_q_s8(NULL, 0, NULL, 64, &none, 3, NULL, NULL));
    assert_ok(iso_embed_q(NULL, 64, NULL, 0, NULL, &q4_0, 0, 64, 1, NULL, NULL, 0, NULL));
}
