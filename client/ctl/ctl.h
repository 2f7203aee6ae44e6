/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* muninnctl: what its verbs share. docs/muninnctl.md describes the command. */
#ifndef MUNINN_CLIENT_CTL_CTL_H
#define MUNINN_CLIENT_CTL_CTL_H

#include <jansson.h>

#include "client/osd_client.h"
#include "client/transfer.h"
#include "wire/security.h"

/* The exit codes of the process, which are documented for scripts. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_FAILED = 1,        /* something else */
	CTL_USAGE = 2,         /* wrong arguments; nothing was done */
	CTL_NOT_FOUND = 3,     /* no such partition, object, version, attribute, tree, target */
	CTL_EXISTS = 4,        /* the ID or the tree is there already */
	CTL_NO_SPACE = 5,      /* the device is full or a quota used up */
	CTL_CONNECTION = 6,    /* no connection, or it was lost */
	CTL_DENIED = 7,        /* CHAP, access list, capability, old version */
	CTL_TARGET = 8,        /* the target failed or refused the command */
	CTL_LOCAL = 9,         /* local files or memory */
	CTL_NOT_EMPTY = 10,    /* partition with objects, directory with files */
	CTL_BAD_DATA = 11,     /* data that came is not what was stored */
	CTL_INTERRUPTED = 130, /* by SIGINT, as shells say it */
};

/* Options of all verbs. */
struct ctl_options {
	struct osd_client_options client;
	uint64_t given; /* a bit for each one that was given: main.c */
	bool json;
	bool quiet; /* no progress */
	bool verbose;
	bool help;
	bool version;
	size_t chunk_bytes;
	bool has_offset, has_length;
	uint64_t offset, length;
	uint32_t count;
	bool contents;
	bool force;
	bool repair;
	bool any;
	bool replace;
	bool update, checksum;
	bool clean;
	bool long_list, recursive;
	bool raw;
	bool text;
	bool hexadecimal;
	bool number;
	bool remove;
	const char *log;
	const char *svg;
	const char *from_file;
	const char *name;
	const char *at;
	const char *layout;
	bool regex;
	bool progress;
	bool read_only;
	/* OSD security. */
	const char *key, *credential, *security, *permissions;
	bool has_key_version;
	uint8_t key_version;
	uint64_t key_of;          /* partition whose keys replace missing ones; 0: none */
	bool collection;          /* the credential is for a collection */
	uint64_t expires_seconds; /* 0: the default */
	/* Of the service on this host. */
	const char *socket, *device;
	uint64_t lun, block_bytes; /* 0: not said */
	bool writable;
	/* Of import. */
	const char **excludes; /* the process's own */
	size_t exclude_count;
	bool one_file_system;
	/* What `drop` keeps: the last so many, and one of each hour, day and the like; 0: not said.
	 */
	uint64_t keep_last, keep[OSD_SCHEDULE_KINDS];
	bool dry_run;
	bool yes; /* do not ask */
};

#define CTL_TIME_TEXT 32
/* A moment as it is written: a time, a number, or the name of a version. */
#define CTL_MOMENT_TEXT (OSD_VERSION_NAME_MAX + 1)
#define CTL_VIEWS_MAX   4

struct tree_names;

struct ctl {
	const struct ctl_options *options;
	const char *verb;
	const char *url;
	struct osd_client *client; /* NULL until ctl_connect */
	uint64_t isid; /* of the client whose place the next one takes; 0: there is none */
	/* Behind the URL. */
	int argument_count;
	char **arguments;
	/*
	 * Moments that the target gave a number to, with the texts to print: these mean the same
	 * later.
	 */
	struct {
		uint64_t partition;
		uint16_t version;
		char moment[CTL_TIME_TEXT];
	} views[CTL_VIEWS_MAX];
	int view_count;
	/* places.c: the tree that was loaded last; NULL: none. */
	struct tree_names *tree;
	struct osd_client_address tree_of;
};

/* ---- output.c ---- */

/* Prints "muninnctl: SENTENCE", or with --json {"error": …}, to stderr; returns `code`. */
int ctl_fail(const struct ctl *ctl, enum ctl_exit code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int ctl_fail_command(const struct ctl *ctl, const struct osd_client_error *error);
int ctl_fail_connect(const struct ctl *ctl, int result, const struct error_text *sentence);
void ctl_warn(const char *sentence);

/* The exit code of that name, as {"error": ...} has it; CTL_FAILED: there is none. */
enum ctl_exit ctl_exit_by_name(const char *name);
/* The exit code for an error of a command or of the connection. */
enum ctl_exit ctl_exit_of(const struct osd_client_error *error);
enum ctl_exit ctl_exit_of_connect(int result);

/*
 * Prints a JSON value and a newline, and drops it. Returns CTL_OK, or CTL_LOCAL when it can't be
 * written; says so if it was for stdout.
 */
int ctl_print_json(FILE *to, json_t *value);
/* A partition on a line, or, with --json, as the value of `name`. CTL_OK or CTL_LOCAL. */
int ctl_print_id(const struct ctl *ctl, const char *name, uint64_t id);
/*
 * Whether stdout is a pipe that nobody reads any more, as behind `head`: then there is nobody to be
 * told either.
 */
bool ctl_reader_is_gone(void);
/* Flushes stdout: CTL_OK or CTL_LOCAL. Without a message where the reader is gone. */
int ctl_end_output(const struct ctl *ctl);

/*
 * An array of JSON values on standard output, each printed as it comes, so that long lists cost no
 * memory. Nothing is printed before the first one, or the end; one that fails on the way is not
 * closed.
 */
struct ctl_list {
	bool is_json; /* with --json; otherwise the verb prints lines */
	bool has_begun;
};
struct ctl_list ctl_list_of(const struct ctl *ctl);
/* Prints a value and drops it. -ENOMEM: it is NULL. */
int ctl_list_add(struct ctl_list *list, json_t *value);
/* The end of the output, of lines as well. As ctl_end_output. */
int ctl_list_end(const struct ctl_list *list, const struct ctl *ctl);

/*
 * Before what can't be undone: on a terminal asks whether to go on, unless --yes. CTL_OK, or
 * CTL_FAILED: better not. `format` is a sentence without an end.
 */
int ctl_confirm(const struct ctl *ctl, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* IDs as strings "0x10000": they are ADDRESSes, and JSON numbers end at 2^53. */
json_t *ctl_json_id(uint64_t id);
/*
 * Sets a member of an object, and returns the object. A text that is no UTF-8 is escaped as in
 * manifests; then the member "escaped", a list, names `key`.
 */
json_t *ctl_json_with_text(json_t *object, const char *key, const char *text);
/*
 * Prints a text that somebody else has chosen: what a terminal would act on, and what is no UTF-8,
 * as \xNN.
 */
void ctl_print_text(const char *text);
/* "2026-01-31T12:00:00.123Z" from milliseconds since 1970. */
const char *ctl_format_time(uint64_t ms, char text[CTL_TIME_TEXT]);
/* The same from seconds, which may be before 1970. "?": the year is out of range. */
const char *ctl_format_seconds(int64_t seconds, unsigned ms, char text[CTL_TIME_TEXT]);
/* "1.5 GiB" */
#define CTL_SIZE_TEXT 16
const char *ctl_format_size(uint64_t bytes, char text[CTL_SIZE_TEXT]);

/* ---- arguments.c ---- */

/*
 * Argument `index` as an address. CTL_OK or, with a message, CTL_USAGE. If its moment is no version
 * number, as in 0x10000@-10min, connects and asks the target for the number of a view; errors are
 * then those of connecting and asking. So does --at. A name becomes its partition, and a path the
 * object of its file (places.h).
 */
int ctl_address(struct ctl *ctl, int index, struct osd_client_address *address);
/* The same, and it must name an object, or a partition. */
int ctl_object_address(struct ctl *ctl, int index, struct osd_client_address *address);
int ctl_partition_address(struct ctl *ctl, int index, struct osd_client_address *address);
/*
 * Called with the code of one of the above, for verbs that change the present: CTL_DENIED if the
 * address has a moment; otherwise `code`.
 */
int ctl_present(const struct ctl *ctl, int code, struct osd_client_address address);
/* The first argument as a partition of the present. Connects. */
int ctl_partition_to_change(struct ctl *ctl, struct osd_client_address *address);
/*
 * For verbs that take several objects: `act` for each argument from `first` on, one after the
 * other; it says what fails. `check` (may be NULL) and what is wrong with the arguments themselves
 * come before the first of them, so that no such thing is found after half of the work. An object
 * that is missing, or with which `act` fails, holds up no others. When the connection, this host or
 * the user gives up, all ends.
 *
 * CTL_OK; CTL_FAILED: some of several failed; or the code of what ended all, or of the only
 * argument. `done`: so many went well.
 */
typedef int ctl_object_call(struct ctl *ctl, int index, struct osd_client_address address,
			    void *context);
int ctl_for_each_object(struct ctl *ctl, int first, ctl_object_call *check, ctl_object_call *act,
			void *context, int *done);
/* As ctl_partition_address, or the device: "0". */
int ctl_scope_address(struct ctl *ctl, int index, struct osd_client_address *address);
/* Decimal or 0x, with K, M, G or T behind it (powers of 1024). -EINVAL. */
int ctl_parse_size(const char *text, uint64_t *value);
/* Decimal or 0x. -EINVAL. */
int ctl_parse_number(const char *text, uint64_t limit, uint64_t *value);
/* An even number of hexadecimal digits as bytes, half as many; -EINVAL. */
int ctl_parse_hex(const char *text, uint8_t *bytes, size_t *length);
/* Argument `index` as a size; CTL_OK or CTL_USAGE. `what` names it. */
int ctl_size(const struct ctl *ctl, int index, const char *what, uint64_t *value);

/* ---- moments.c ---- */

/*
 * As osd_client_format_address, but prints the moment that the address came from, not the number
 * that the target has for it just now.
 */
const char *ctl_format_address(const struct ctl *ctl, struct osd_client_address address,
			       char text[OSD_CLIENT_ADDRESS_TEXT]);
/*
 * Asks the target for the number of a moment and puts it into an address. Connects. CTL_OK or a
 * code.
 */
int ctl_resolve(struct ctl *ctl, const char *text, struct osd_client_address *address);
/*
 * Reports the error of a function that was given a moment, and says what is wrong with the moment
 * if that is the cause. Returns the code.
 */
int ctl_fail_moment(struct ctl *ctl, struct osd_client_address address,
		    const struct osd_client_moment *moment, const struct osd_client_error *error);
/*
 * Does a partition have this moment? CTL_OK or, with a message, a code. If it has, the target
 * begins a view of it.
 */
int ctl_check_moment(struct ctl *ctl, struct osd_client_address partition,
		     const struct osd_client_moment *moment);
/* A text as a moment. Refuses the future. CTL_OK or CTL_USAGE. */
int ctl_parse_moment(const struct ctl *ctl, const char *text, struct osd_client_moment *moment);
/* The same with argument `index`; "now" if it is missing. */
int ctl_moment(const struct ctl *ctl, int index, struct osd_client_moment *moment);
/*
 * Adds a moment to the parameters of a function, inside an item with this tag unless that is 0.
 * CTL_OK, or CTL_USAGE: a partition has no ~N.
 */
int ctl_add_moment(struct ctl *ctl, struct osd_item_writer *writer, uint16_t tag,
		   const struct osd_client_moment *moment);
/* Milliseconds since 1970. */
uint64_t ctl_now_ms(void);

/* ---- progress.c ---- */

struct progress {
	bool shown;    /* as a bar that is drawn again and again */
	bool in_lines; /* as lines: --progress, and stderr is no terminal */
	const char *label;
	uint64_t bytes, bytes_total; /* total 0: not known */
	uint64_t files, files_total; /* total 0: not counted */
	bool is_permille;
	uint64_t permille;
	uint64_t started_ms, drawn_ms;
};

/* Shows it on stderr if that is a terminal, unless --quiet or --json. */
void progress_begin(struct progress *progress, const struct ctl *ctl, const char *label,
		    uint64_t bytes_total, uint64_t files_total);
void progress_add(struct progress *progress, uint64_t bytes, uint64_t files);
void progress_end(struct progress *progress);

/*
 * For a function that the target works on for a while. Shows progress as above once it has taken so
 * long that somebody may wonder; with --progress as lines. From here on SIGINT ends the function,
 * not the process; progress_items says so.
 */
void progress_watch(struct progress *progress, const struct ctl *ctl, const char *label);
/* Reads the progress in a result. -ECANCELED: interrupted. */
int progress_items(struct progress *progress, const uint8_t *items, size_t length);
/* Removes the bar, before lines are printed in its place. */
void progress_clear(const struct progress *progress);
/*
 * SIGINT, SIGTERM and SIGHUP end no longer the process, but are told by progress_interrupted. The
 * second one ends it.
 */
void progress_catch_signals(void);
bool progress_interrupted(void);

/* ---- main.c ---- */

/*
 * Connects, once. Verbs call it when they have found their arguments right. CTL_OK or, with a
 * message, why not.
 */
int ctl_connect(struct ctl *ctl);
/*
 * For verbs that tidy up when they are interrupted: from now on a signal makes every command of the
 * connection fail with -ECANCELED.
 */
void ctl_catch_signals(struct ctl *ctl);
/*
 * For tidying up after a verb has failed: commands work again, on a new connection if the old one
 * has failed. False, with a message: they do not.
 */
bool ctl_recover(struct ctl *ctl);
/* ctl_connect, but does not sign commands, whatever the options say. */
int ctl_connect_unsigned(struct ctl *ctl);

/* ---- signer.c ---- */

/*
 * Does what --key and --credential ask for, on the connection. CTL_OK or, with a message, why not.
 */
int ctl_secure(struct ctl *ctl);
/* At the end: wipes the keys. */
void ctl_forget_keys(void);

/* ---- verbs ---- */

typedef int ctl_run(struct ctl *ctl);

ctl_run verb_info, verb_discover, verb_format, verb_mkpart, verb_name, verb_rmpart, verb_ls,
	verb_stat, verb_flush, verb_check, verb_cp;
ctl_run verb_create, verb_rm, verb_truncate, verb_clear, verb_punch;
ctl_run verb_put, verb_append, verb_get, verb_cat;
ctl_run verb_attr_get, verb_attr_set, verb_attr_ls;
ctl_run verb_import, verb_export;
ctl_run verb_key_create, verb_key_init, verb_key_set, verb_key_method, verb_key_show, verb_key_mint;
ctl_run verb_coll_create, verb_coll_track, verb_coll_rm, verb_coll_ls, verb_coll_add,
	verb_coll_drop, verb_coll_query, verb_coll_purge;
ctl_run verb_snapshot, verb_versions, verb_drop, verb_rollback, verb_undo, verb_log, verb_diff;
ctl_run verb_retention, verb_merge, verb_space, verb_watch;
ctl_run verb_quota, verb_search, verb_checksum, verb_statistics;
ctl_run verb_clone, verb_refresh, verb_detach;
ctl_run verb_send, verb_receive;
ctl_run verb_unlock;
ctl_run verb_time_epoch;
ctl_run verb_status, verb_top, verb_reload, verb_session_ls, verb_session_kick;
ctl_run verb_lun_add, verb_lun_rm, verb_lun_resize;
ctl_run verb_device_backup, verb_device_grow;
ctl_run verb_volume_ls, verb_volume_create, verb_volume_rm, verb_volume_resize, verb_volume_expose;
ctl_run verb_nand_create, verb_nand_grow, verb_nand_info, verb_nand_map, verb_nand_wear,
	verb_nand_dump, verb_nand_cut, verb_nand_timing, verb_nand_faults;

#endif
