/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What scripts/analyze tells the analysers of osd/, besides analysed.h: these functions come back
 * with the error that they are given, or with an error.
 */
#include <errno.h>

#include "osd/execute.h"

#define osd_result(request, result, field)                            \
	({                                                            \
		int analysed_result_ = (result);                      \
		(void)(osd_result)(request, analysed_result_, field); \
		analysed_result_;                                     \
	})
#define osd_fail(...)           ((void)(osd_fail)(__VA_ARGS__), -EINVAL)
#define osd_fail_field(...)     ((void)(osd_fail_field)(__VA_ARGS__), -EINVAL)
#define osd_fail_attribute(...) ((void)(osd_fail_attribute)(__VA_ARGS__), -EINVAL)
