/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Log lines of every layer; the process decides where they go (stderr by default, tgtd's log in the
 * module).
 */
#ifndef MUNINN_COMMON_LOG_H
#define MUNINN_COMMON_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* The words for them: error, warning, info, debug. -EINVAL: `word` is none. */
int log_level_parse(const char *word, enum log_level *level);
const char *log_level_word(enum log_level level);

/*
 * What goes in front of a line on standard error: the level as <3>, if that is the journal of
 * systemd, which takes it off again; else nothing.
 */
const char *log_priority(enum log_level level);

typedef void log_sink(enum log_level level, const char *line);

/*
 * Sends lines up to `most` to `sink` (NULL: stderr). Not thread-safe: call before other threads
 * start.
 */
void log_configure(log_sink *sink, enum log_level most);

/* From now on lines up to `most` are logged. Thread-safe. */
void log_set_level(enum log_level most);

/* One line, without newline. Thread-safe. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
