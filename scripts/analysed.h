/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What scripts/analyze tells the analysers, which see one source at a time: error_set() comes back
 * with the error that it is given. Without this they follow paths on which an error is none.
 */
#include "common/error.h"

#define error_set(text, result, ...)                                 \
	({                                                           \
		int analysed_ = (result);                            \
		(void)(error_set)(text, analysed_, __VA_ARGS__);     \
		if (!__builtin_constant_p(result) && analysed_ >= 0) \
			__builtin_unreachable();                     \
		analysed_;                                           \
	})
