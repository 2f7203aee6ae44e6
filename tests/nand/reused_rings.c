/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * For ThreadSanitizer. liburing maps and unmaps its rings by system calls of its own, which the
 * sanitizer does not see. So it takes a ring that one thread has closed, and the next one at the
 * same address that another thread has opened, for the same memory.
 */
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	/* Liburing's own functions, and those of nand/uring.c that use a ring. */
	return "race:io_uring_\nrace:uring_start\nrace:uring_flush\nrace:uring_next\n";
}
