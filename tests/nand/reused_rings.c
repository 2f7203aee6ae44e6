/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * For ThreadSanitizer. liburing maps and unmaps its rings by system calls of its own, which the
 * sanitizer does not see. So it takes a ring that one thread has closed, and the next one at the
 * same address that another thread has opened, for the same memory.
 */
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "race:io_uring_prep_rw\nrace:io_uring_get_sqe\nrace:io_uring_sqe_set_data\n"
	       "race:uring_start\n";
}
