/* SPDX-License-Identifier: MIT
 *
 * The vector vocabulary on Advanced SIMD (NEON) of aarch64: 4 floats a register. scalar/vec.h
 * documents what each word means. Tails go through a short copy.
 */
#ifndef ISOBIT_VEC_H
#define ISOBIT_VEC_H

#include <arm_neon.h>
#include <sleef.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float32x4_t vf;
typedef uint32x4_t vm;
#define VF_N 4
#define VF_REGS 32
#define VF_FMA_CHAINS 24
#define VF_TOGETHER 2

static inline vm vm_first(size_t n) {
    static const uint32_t lane[4] = {0, 1, 2, 3};
    return vcltq_u32(vld1q_u32(lane), vdupq_n_u32((uint32_t)n));
}

static inline vf vf_set1(float x) { return vdupq_n_f32(x); }
static inline vf vf_load(const float *p) { return vld1q_f32(p); }
static inline void vf_store(float *p, vf v) { vst1q_f32(p, v); }
/* No memcpy here: compilers make it a call, around which no vector register survives whole. */
static inline vf vf_load_n(const float *p, size_t n) {
    if (n >= 4)
        return vld1q_f32(p);
    float32x2_t low = vdup_n_f32(0), high = low;
    if (n >= 2)
        low = vld1_f32(p);
    if (n == 3)
        high = vld1_lane_f32(p + 2, high, 0);
    if (n == 1)
        low = vld1_lane_f32(p, low, 0);
    return vcombine_f32(low, high);
}
static inline void vf_store_n(float *p, vf v, size_t n) {
    if (n >= 4)
        vst1q_f32(p, v);
    else if (n >= 2)
        vst1_f32(p, vget_low_f32(v));
    if (n == 3)
        vst1q_lane_f32(p + 2, v, 2);
    if (n == 1)
        vst1q_lane_f32(p, v, 0);
}
static inline vf vf_load_f16(const uint16_t *p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
static inline void vf_load_bf16(vf *pair, const uint16_t *p) {
    const uint32x4_t v = vreinterpretq_u32_u16(vld1q_u16(p));
    pair[0] = vreinterpretq_f32_u32(vshlq_n_u32(v, 16));
    pair[1] = vreinterpretq_f32_u32(vandq_u32(v, vdupq_n_u32(0xffff0000U)));
}
static inline vf vf_load_s8(const int8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four)))));
}
typedef int32x4_t vw;
static inline vw vw_load(const uint32_t *p) { return vreinterpretq_s32_u32(vld1q_u32(p)); }
static inline vf vw_number4(vw w, const int step, const int sign) {
    const int32x4_t x = vshlq_s32(w, vdupq_n_s32(4 * step));
    return sign ? vcvtq_f32_s32(vshrq_n_s32(x, 28))
                : vcvtq_f32_u32(vshrq_n_u32(vreinterpretq_u32_s32(x), 28));
}
static inline vw vw_next4(vw w) { return vshlq_n_s32(w, 4); }
#define VF_STREAMS 0
static inline void vf_stream(float *p, vf v) { vf_store(p, v); }
static inline void vf_streamed(void) {}
static inline vf vf_keep(vf v, size_t n) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), vm_first(n)));
}
static inline vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
static inline vf vf_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline vf vf_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline vf vf_minus_abs(vf x) {
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x80000000U)));
}
static inline vf vf_with_sign(vf x, vf s) { return vbslq_f32(vdupq_n_u32(0x80000000U), s, x); }
static inline vm vf_lt(vf a, vf b) { return vcltq_f32(a, b); }
static inline vm vf_eq(vf a, vf b) { return vceqq_f32(a, b); }
static inline vf vf_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }
static inline int vm_any(vm m) { return vmaxvq_u32(m) != 0; }
static inline int vm_all(vm m) { return vminvq_u32(m) != 0; }
static inline vm vm_or(vm a, vm b) { return vorrq_u32(a, b); }
static inline vf vf_log(vf x) { return Sleef_cinz_logf4_u10advsimdnofma(x); }

static inline vf vf_ldexp(vf x, vf n) {
    int32x4_t i = vcvtnq_s32_f32(n), h = vshrq_n_s32(i, 1), bias = vdupq_n_s32(127);
    int32x4_t a = vshlq_n_s32(vaddq_s32(h, bias), 23);
    int32x4_t b = vshlq_n_s32(vaddq_s32(vsubq_s32(i, h), bias), 23);
    return vmulq_f32(vmulq_f32(x, vreinterpretq_f32_s32(a)), vreinterpretq_f32_s32(b));
}

static inline vf vf_ldexp_normal(vf x, vf n, vf t) {
    (void)n;
    int32x4_t i = vshlq_n_s32(vreinterpretq_s32_f32(t), 23);
    return vmulq_f32(x, vreinterpretq_f32_s32(vaddq_s32(i, vdupq_n_s32(127 << 23))));
}

static inline vf vf_ldexp_down(vf x, vf n, vf t) {
    (void)n;
    int32x4_t i = vshlq_n_s32(vreinterpretq_s32_f32(t), 23);
    i = vaddq_s32(i, vdupq_n_s32((127 + 64) << 23));
    x = vmulq_f32(x, vreinterpretq_f32_s32(i));
    return vmulq_f32(x, vdupq_n_f32(0x1p-64f));
}

static inline vm vm_bytes(const uint8_t *p, size_t n) {
    uint32_t t[4] = {0};
    for (size_t i = 0; i < n && i < 4; i++)
        t[i] = p[i];
    return vcgtq_u32(vld1q_u32(t), vdupq_n_u32(0));
}

static inline float vf_tree(vf v) {
    float32x2_t q = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(q, 0) + vget_lane_f32(q, 1);
}

static inline float vf_hmax(vf v) {
    float t[4], a, b;
    vst1q_f32(t, v);
    a = t[0] > t[1] ? t[0] : t[1];
    b = t[2] > t[3] ? t[2] : t[3];
    return a > b ? a : b;
}

static inline void vf_swap_pairs(vf *v) { v[0] = vrev64q_f32(v[0]), v[1] = vrev64q_f32(v[1]); }

#define VF_TRANSPOSED 4
static inline void vf_load_transposed(vf *out, const float *src, size_t stride) {
    float32x4x2_t a = vtrnq_f32(vld1q_f32(src), vld1q_f32(src + stride));
    float32x4x2_t b = vtrnq_f32(vld1q_f32(src + 2 * stride), vld1q_f32(src + 3 * stride));
    out[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    out[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    out[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    out[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

static inline void vf_transpose(float *dst, size_t dst_stride, const float *src, size_t stride,
                                size_t n) {
    const size_t last = n - 1;
    float32x4_t r0 = vld1q_f32(src), r1 = vld1q_f32(src + (last < 1 ? last : 1) * stride);
    float32x4_t r2 = vld1q_f32(src + (last < 2 ? last : 2) * stride);
    float32x4_t r3 = vld1q_f32(src + last * stride);
    float32x4x2_t a = vtrnq_f32(r0, r1), b = vtrnq_f32(r2, r3);
    float32x4_t c0 = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    float32x4_t c1 = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    float32x4_t c2 = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    float32x4_t c3 = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
    if (n == 4) {
        vst1q_f32(dst, c0), vst1q_f32(dst + dst_stride, c1);
        vst1q_f32(dst + 2 * dst_stride, c2), vst1q_f32(dst + 3 * dst_stride, c3);
    } else {
        vf_store_n(dst, c0, n), vf_store_n(dst + dst_stride, c1, n);
        vf_store_n(dst + 2 * dst_stride, c2, n), vf_store_n(dst + 3 * dst_stride, c3, n);
    }
}

static inline float fma_one(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#endif
