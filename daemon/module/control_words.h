/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What muninnd and the module both know of requests to units (control.h). */
#ifndef MUNINN_DAEMON_MODULE_CONTROL_WORDS_H
#define MUNINN_DAEMON_MODULE_CONTROL_WORDS_H

#define CONTROL_QUESTION_BYTES 256 /* `ask QUESTION`, NUL included */
/*
 * In tgtd's working directory, which is the run directory: an answer that is more than a code.
 * muninnd takes it away.
 */
#define CONTROL_ANSWER_FILE      "answer"
#define CONTROL_ANSWER_BYTES_MAX (256U << 10)

#endif
