/* SPDX-License-Identifier: MIT
 *
 * A library that is no plug-in.
 */
int check_empty(void);
int check_empty(void) { return 0; }
