/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What tests of directory trees stand on: a folder of their own, a tree with everything in it, and
 * an OSD in memory.
 */
#ifndef MUNINN_TESTS_CLIENT_TREE_SCENE_H
#define MUNINN_TESTS_CLIENT_TREE_SCENE_H

#include "client/tree.h"
#include "tests/client/memory_osd.h"

#define PARTITION 0x10000

struct scene {
	char folder[64];
	char source[96], copy[96], log[96];
	struct memory_osd osd;
	struct osd_client_error error;
	struct tree_report report;
};

/* Fixtures of cmocka: *state is a struct scene. */
int scene_set_up(void **state);
int scene_tear_down(void **state);

/* Content that depends on `seed` alone. */
void scene_write_file(const char *folder, const char *name, size_t length, unsigned seed);
void scene_make_directory(const char *folder, const char *name);
void scene_remove_tree(const char *path);
/* A tree with everything that is kept: 6 objects, 10 names. */
void scene_make_tree(const struct scene *scene);
/* Last read and last changed: the same content at another time is the same file for nobody. */
void scene_set_time(const char *folder, const char *name, time_t seconds);
/* Fails at the first difference; returns the number of names. */
size_t scene_compare_trees(const char *left, const char *right);

/*
 * Source into the partition, with a log if wanted; partition into the copy. As tree_import,
 * tree_export.
 */
int scene_import(struct scene *scene, struct tree_options options, bool log);
int scene_export(struct scene *scene);
/* Fails unless source and copy are the same, with so many names; or exports anew before that. */
void scene_expect_copy(const struct scene *scene, size_t names);
void scene_expect_same_trees(struct scene *scene, size_t names);
/*
 * Modes shut nobody out who is root. In between the process is somebody else, who owns the folder
 * and all that is in it.
 */
void scene_begin_as_nobody(const struct scene *scene);
void scene_end_as_nobody(void);
/* Fails with the sentence. */
void scene_must(const struct scene *scene, int result);

#endif
