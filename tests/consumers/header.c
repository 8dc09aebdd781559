/* SPDX-License-Identifier: MIT
 *
 * Includes one header, HEADER, twice and nothing else: it must compile alone, in every language
 * that the library promises.
 */
#include HEADER
#include HEADER

int consumer_of_header(void);
int consumer_of_header(void) { return ISOBIT_VERSION_MAJOR; }
