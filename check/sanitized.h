/* SPDX-License-Identifier: MIT
 *
 * SANITIZED: 1 under a sanitizer that has its own memory or stacks, else 0.
 */
#ifndef ISOBIT_CHECK_SANITIZED_H
#define ISOBIT_CHECK_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
