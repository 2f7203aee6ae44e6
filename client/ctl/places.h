/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Addresses as people write them: partitions by name, files of stored trees by path. */
#ifndef MUNINN_CLIENT_CTL_PLACES_H
#define MUNINN_CLIENT_CTL_PLACES_H

#include "client/ctl/ctl.h"
#include "client/tree_diff.h"

/*
 * PARTITION[/OID | :PATH][@MOMENT]; PARTITION is an ID or a name. Texts are parts of the argument.
 */
struct ctl_place {
	struct osd_client_address address; /* without an object if there is a path */
	const char *partition;             /* as it is written */
	size_t partition_length;
	const char *path; /* NULL: none; of no bytes: the whole tree */
	size_t path_length;
	const char *moment; /* NULL: none */
	/* A name that no partition has; only where one is to be made. */
	char new_name[OSD_VERSION_NAME_MAX + 1];
};

/* Is the partition written as a name? */
bool ctl_place_is_named(const struct ctl_place *place);

/*
 * Argument `index` as a place. Connects for names and moments. CTL_OK or, with a message, a code.
 * Does not look whether the path exists. An argument that is missing is the device.
 */
int ctl_place(struct ctl *ctl, int index, struct ctl_place *place);
/* The same, of a partition that may be missing: `new_name`. It is one of the present. */
int ctl_place_to_make(struct ctl *ctl, int index, struct ctl_place *place);
/*
 * What a partition that a verb makes shall be: argument `index`, which may be missing, is its ID or
 * its name; --name is its name, too. `requested` 0: the target chooses; `name` "": none. The name
 * is checked as below.
 */
int ctl_partition_to_make(struct ctl *ctl, int index, uint64_t *requested,
			  char name[OSD_VERSION_NAME_MAX + 1]);
/* May a partition get this name? No other one may have it. CTL_OK or, with a message, a code. */
int ctl_check_new_name(struct ctl *ctl, const char *name);

/*
 * The tree of a partition, at the address's version; loaded once. CTL_OK or, with a message, why
 * there is none.
 */
int ctl_load_tree(struct ctl *ctl, struct osd_client_address partition,
		  const struct tree_names **tree);
/* Forgets it. */
void ctl_forget_tree(struct ctl *ctl);

/* Is the path the place's own, or one below it? */
bool ctl_place_has(const struct ctl_place *place, const char *path);
/*
 * The entry at the place's path; hard links become their file. CTL_OK or, with a message, that
 * there is none.
 */
int ctl_find_entry(struct ctl *ctl, const struct ctl_place *place, const struct tree_names *tree,
		   const struct manifest_entry **entry);
/*
 * Puts the object of the file at the place's path into its address; leaves other places alone.
 * Refuses directories and links.
 */
int ctl_find_file(struct ctl *ctl, struct ctl_place *place);

/*
 * "docs:a/path@MOMENT", which means the same later; the caller's to free. NULL: no memory. `end`:
 * "/" behind directories, or "".
 */
char *ctl_place_text(const struct ctl *ctl, const struct ctl_place *place, const char *path,
		     const char *end);

#endif
