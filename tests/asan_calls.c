/* SPDX-License-Identifier: MIT
 *
 * What vector kernels call before each access where clang's address sanitizer checks addresses by
 * calls (kernels/CMakeLists.txt): the runtime looks at 32 and 64 bytes in three calls, which took
 * two thirds of the time of test_model. Here one load of the shadow says that all is well;
 * otherwise the runtime looks again, and reports. The names are those that clang makes of its
 * prefix.
 *
 * One byte of the shadow stands for 8 bytes of memory, and is 0 where all of them may be used:
 * https://clang.llvm.org/docs/AddressSanitizer.html
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void __asan_get_shadow_mapping(size_t *scale, size_t *offset);
static size_t shadow;
__attribute__((constructor)) static void find_shadow(void) {
    size_t scale;
    __asan_get_shadow_mapping(&scale, &shadow);
}

static inline int is_usable(uintptr_t address, size_t size) {
    const uintptr_t first = address >> 3, last = (address + size - 1) >> 3;
    uint64_t bytes;
    if (last - first >= 8 || !shadow)
        return 0;
    memcpy(&bytes, (const char *)(first + shadow), 8); /* little-endian: the first is the lowest */
    return bytes << (56 - 8 * (last - first)) == 0;
}

#define CALL(kind, name, ...)                                                                      \
    void __asan_##kind##name(__VA_ARGS__);                                                         \
    void iso_asan_##kind##name(__VA_ARGS__);                                                       \
    void iso_asan_##kind##name(__VA_ARGS__)
#define FIXED(kind, size)                                                                          \
    CALL(kind, size, uintptr_t address) {                                                          \
        if (!is_usable(address, size))                                                             \
            __asan_##kind##size(address);                                                          \
    }
#define BOTH(kind)                                                                                 \
    FIXED(kind, 1)                                                                                 \
    FIXED(kind, 2)                                                                                 \
    FIXED(kind, 4)                                                                                 \
    FIXED(kind, 8)                                                                                 \
    FIXED(kind, 16)                                                                                \
    CALL(kind, N, uintptr_t address, size_t size) {                                                \
        if (!is_usable(address, size))                                                             \
            __asan_##kind##N(address, size);                                                       \
    }
BOTH(load)
BOTH(store)

/* Those of the runtime check addresses. */
#define OF_MEMORY(name, ...)                                                                       \
    void *__asan_##name(__VA_ARGS__);                                                              \
    void *iso_asan_##name(__VA_ARGS__);                                                            \
    void *iso_asan_##name(__VA_ARGS__)
OF_MEMORY(memcpy, void *to, const void *from, size_t size) { return __asan_memcpy(to, from, size); }
OF_MEMORY(memmove, void *to, const void *from, size_t size) {
    return __asan_memmove(to, from, size);
}
OF_MEMORY(memset, void *to, int byte, size_t size) { return __asan_memset(to, byte, size); }
