/* SPDX-License-Identifier: MIT
 *
 * Tries a masked load at the end of a page in a child process and sees whether that survives.
 */
#include "guard.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
/* Assembly, because a compiler may turn the intrinsic into two plain loads. */
static void load_two_lanes(float *to, const float *from) {
    static const int32_t mask[8] = {-1, -1};
    __asm__ volatile(".byte 0xc5, 0xfc, 0x10, 0x0e\n\t"       /* vmovups (%rsi), %ymm1 */
                     ".byte 0xc4, 0xe2, 0x75, 0x2c, 0x02\n\t" /* vmaskmovps (%rdx), %ymm1, %ymm0 */
                     ".byte 0xc5, 0xfc, 0x11, 0x07\n\t"       /* vmovups %ymm0, (%rdi) */
                     ".byte 0xc5, 0xf8, 0x77"                 /* vzeroupper */
                     :
                     : "D"(to), "d"(from), "S"(mask)
                     : "memory", "xmm0", "xmm1");
}
#endif

#if defined(__x86_64__)
static void give_up(int number) { _exit(number); }
#endif

bool iso_check_masked_loads_fault(void) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx"))
        return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *base = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + page, page, PROT_NONE))
        return false;
    pid_t child = fork();
    if (child == 0) {
        float to[8];
        signal(SIGSEGV, give_up); /* no core file */
        load_two_lanes(to, (const float *)(void *)(base + page) - 2);
        _exit(0);
    }
    int status = 0;
    bool dead = child > 0 && waitpid(child, &status, 0) == child && status != 0;
    munmap(base, 2 * page);
    return dead;
#else
    return false;
#endif
}
