/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The tables of verbs and their help. */
#ifndef MUNINN_CLIENT_CTL_VERBS_H
#define MUNINN_CLIENT_CTL_VERBS_H

#include "client/ctl/ctl.h"

struct ctl_verb {
	const char *name;                 /* "attr get": two words */
	const char *synopsis;             /* what follows it */
	const char *summary;              /* one line */
	const char *help;                 /* paragraphs: what it does, its options, examples */
	int arguments_min, arguments_max; /* behind the URL */
	ctl_run *run;
};

/* Those that verbs_of_host.c tells of; they come last in the help. */
struct ctl_verb_table {
	const struct ctl_verb *verbs;
	size_t count;
};
extern const struct ctl_verb_table ctl_verbs_of_host;

/* The verb that the words begin with, and how many words it has; NULL: none. */
const struct ctl_verb *ctl_find_verb(int count, char **words, int *used);

/*
 * The second words of the verbs that begin with `first`, as "create, track". False: there are none.
 */
bool ctl_second_words(const char *first, char *text, size_t capacity);

/* Prints what verbs that begin with this word do. False: there are none. */
bool ctl_print_group_help(const char *first);

/*
 * Does the help tell of this option, as one of the verb's or of all verbs? `letter`: its short
 * form, or 0.
 */
bool ctl_verb_has_option(const struct ctl_verb *verb, const char *name, char letter);

void ctl_print_help(void);
void ctl_print_verb_help(const struct ctl_verb *verb);

#endif
