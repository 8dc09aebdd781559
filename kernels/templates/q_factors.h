/* SPDX-License-Identifier: MIT
 *
 * What gemm_q and gemm_q_s8 share: panels of weights in groups, and their scales and offsets.
 */
#define Q_CHUNKS (ISO_PANEL / VF_N) /* vectors of a panel */
#define Q_LINE 16                   /* words of a cache line */

/* Scales of a chunk of a group, or (which 1) its offsets. head: what precedes the first group. */
ISO_INLINE vf q_factor(const uint32_t *head, const uint32_t *group, size_t which, size_t chunk,
                       int type) {
    const size_t at = which * ISO_PANEL + chunk * VF_N;
    const void *from = group, *first = head;
    if (type & ISO_Q_I8)
        return vf_mul(vf_load_s8((const int8_t *)from + at),
                      vf_load_f16((const uint16_t *)first + at));
    return type & ISO_Q_F32 ? vf_load((const float *)from + at)
                            : vf_load_f16((const uint16_t *)from + at);
}
