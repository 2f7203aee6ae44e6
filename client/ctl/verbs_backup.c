/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * device backup: a device's image and NVRAM file, as they are at one instant, while it serves.
 *
 * The service copies them; it gets the files open, so that it needs no right to make them. They
 * have other names until they are complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/service.h"

#define LINE_BYTES 1024 /* of a message (daemon/module/backup.h) */
/* A service that says nothing for so long does not copy any more. */
#define SILENT_MS 600000

struct target {
	char *path, *partial;
	int fd; /* of the partial one; -1: none */
};

struct backup {
	struct ctl *ctl;
	struct target image, nvram;
	int line; /* where the service tells how far it is; -1: none */
	struct progress progress;
	uint64_t held_us, bytes;
};

/* ---- the files ---- */

static int name_target(struct target *target, const char *file, const char *ending)
{
	target->fd = -1;
	if (asprintf(&target->path, "%s%s", file, ending) < 0)
		target->path = NULL;
	if (asprintf(&target->partial, "%s%s.partial", file, ending) < 0)
		target->partial = NULL;
	return target->path && target->partial ? 0 : -ENOMEM;
}

/*
 * Whether what is open still has its name, as another backup may just have given it the other one,
 * and nobody else can read it.
 */
static bool is_own(const struct target *target)
{
	struct stat opened, named;

	return fstat(target->fd, &opened) == 0 && lstat(target->partial, &named) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino &&
	       S_ISREG(opened.st_mode) && opened.st_uid == geteuid() && opened.st_nlink == 1;
}

static bool is_there(const char *path)
{
	struct stat there;

	return lstat(path, &there) == 0;
}

/* Before anything is opened: one that was killed between its two names has left all of a copy. */
static int check_names(struct ctl *ctl, const struct target *image, const struct target *nvram)
{
	const bool has_image = is_there(image->path);

	if (!has_image && !is_there(nvram->path))
		return CTL_OK;
	if (!has_image && is_there(image->partial) && !is_there(nvram->partial))
		return ctl_fail(ctl, CTL_EXISTS,
				"device backup: %s is there already, and %s: a backup was killed "
				"when it was about to give that its name. Rename it to %s to have "
				"that backup, or remove both",
				nvram->path, image->partial, image->path);
	return ctl_fail(ctl, CTL_EXISTS,
			"device backup: %s is there already: name another file, or remove it",
			has_image ? image->path : nvram->path);
}

/* Takes over what an interrupted backup has left. */
static int open_target(struct ctl *ctl, struct target *target)
{
	target->fd =
		open(target->partial, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (target->fd < 0)
		return ctl_fail(ctl, CTL_LOCAL, "device backup: %s: %s", target->partial,
				strerror(errno));
	if (flock(target->fd, LOCK_EX | LOCK_NB) || !is_own(target)) {
		close(target->fd);
		target->fd = -1;
		return ctl_fail(ctl, CTL_EXISTS,
				"device backup: another backup writes %s, or it is no file of your "
				"own; if none does, remove it",
				target->partial);
	}
	if (ftruncate(target->fd, 0) || fchmod(target->fd, 0600))
		return ctl_fail(ctl, CTL_LOCAL, "device backup: %s: %s", target->partial,
				strerror(errno));
	return CTL_OK;
}

static void drop_target(struct target *target)
{
	if (target->fd >= 0) {
		unlink(target->partial);
		close(target->fd);
	}
	free(target->partial);
	free(target->path);
}

static int give_name(struct ctl *ctl, struct target *target)
{
	if (renameat2(AT_FDCWD, target->partial, AT_FDCWD, target->path, RENAME_NOREPLACE) &&
	    /* NFS and others do not know the flag. */
	    (errno != EINVAL || rename(target->partial, target->path)))
		return ctl_fail(ctl, errno == EEXIST ? CTL_EXISTS : CTL_LOCAL,
				"device backup: %s: %s", target->path, strerror(errno));
	close(target->fd);
	target->fd = -1;
	return CTL_OK;
}

static int sync_folder(struct ctl *ctl, const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int code = CTL_OK;

	if (fd < 0 || fsync(fd))
		code = ctl_fail(ctl, CTL_LOCAL, "device backup: the folder of %s: %s", path,
				strerror(errno));
	if (fd >= 0)
		close(fd);
	free(copy);
	return code;
}

/* The image comes last: if it has its name, the backup is whole. */
static int give_names(struct backup *backup)
{
	int code = give_name(backup->ctl, &backup->nvram);

	if (code != CTL_OK)
		return code;
	code = give_name(backup->ctl, &backup->image);
	if (code != CTL_OK)
		unlink(backup->nvram.path);
	else
		code = sync_folder(backup->ctl, backup->image.path);
	return code;
}

/* ---- what the service tells ---- */

/* Why it failed: the files, their file system, or the device. */
static int fail_backup(struct ctl *ctl, const char *text)
{
	char *sentence;
	long reason = strtol(text, &sentence, 10);
	bool no_space = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;

	return ctl_fail(ctl, no_space ? CTL_NO_SPACE : CTL_TARGET, "device backup:%s; %s", sentence,
			"no backup is left, and the device serves on");
}

/* 1: it goes on. Otherwise a code, with a message unless it is CTL_OK. */
static int take_line(struct backup *backup, const char *line)
{
	uint64_t done, total;

	if (sscanf(line, "copied %" SCNu64 " %" SCNu64, &done, &total) == 2) {
		backup->progress.bytes_total = total;
		if (done > backup->progress.bytes)
			progress_add(&backup->progress, done - backup->progress.bytes, 0);
		return -1;
	}
	if (sscanf(line, "instant %" SCNu64, &backup->held_us) == 1)
		return -1;
	if (sscanf(line, "done %" SCNu64, &backup->bytes) == 1)
		return CTL_OK;
	return fail_backup(backup->ctl, strncmp(line, "failed ", 7) == 0 ? line + 7 : "0 ?");
}

/* Until it says that it is done, or has failed, or says nothing any more. */
static int follow(struct backup *backup)
{
	struct pollfd line = { .fd = backup->line, .events = POLLIN };
	int code = -1;

	while (code < 0) {
		char text[LINE_BYTES];
		ssize_t got = 0;
		int ready = poll(&line, 1, SILENT_MS);

		if (progress_interrupted())
			return ctl_fail(backup->ctl, CTL_INTERRUPTED,
					"device backup: interrupted: no backup is left");
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready > 0)
			got = recv(backup->line, text, sizeof(text) - 1, 0);
		if (got <= 0)
			return ctl_fail(backup->ctl, CTL_CONNECTION,
					"device backup: the service has ended meanwhile, or does "
					"not answer; no backup is left");
		text[got] = '\0';
		code = take_line(backup, text);
	}
	return code;
}

/* Hands the files over. The other end of the line is the service's alone then. */
static int ask(struct backup *backup)
{
	struct ctl *ctl = backup->ctl;
	int line[2], code;
	json_t *request, *answer;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line))
		return ctl_fail(ctl, CTL_LOCAL, "device backup: %s", strerror(errno));
	backup->line = line[0];
	request = json_pack("{s:o}", "device", json_string(ctl->arguments[0]));
	code = service_ask_handing(ctl, request,
				   (const int[]){ backup->image.fd, backup->nvram.fd, line[1] }, 3,
				   &answer);
	close(line[1]);
	if (code == CTL_OK)
		json_decref(answer);
	return code == CTL_INTERRUPTED
		       ? ctl_fail(ctl, code, "device backup: interrupted: no backup is left")
		       : code;
}

static int show(const struct backup *backup)
{
	const struct ctl *ctl = backup->ctl;
	char size[CTL_SIZE_TEXT];
	json_t *object;

	if (ctl->options->json) {
		object = json_pack("{s:I,s:I}", "bytes", (json_int_t)backup->bytes, "waited_us",
				   (json_int_t)backup->held_us);
		ctl_json_with_text(object, "image", backup->image.path);
		return ctl_print_json(stdout,
				      ctl_json_with_text(object, "nvram", backup->nvram.path));
	}
	printf("%s and %s: %s; commands waited %" PRIu64 ".%03u ms\n", backup->image.path,
	       backup->nvram.path, ctl_format_size(backup->bytes, size), backup->held_us / 1000,
	       (unsigned)(backup->held_us % 1000));
	return ctl_end_output(ctl);
}

int verb_device_backup(struct ctl *ctl)
{
	struct backup backup = { .ctl = ctl, .line = -1 };
	int code = CTL_OK;

	if (name_target(&backup.image, ctl->arguments[1], "") |
	    name_target(&backup.nvram, ctl->arguments[1], ".nvram"))
		code = ctl_fail(ctl, CTL_LOCAL, "device backup: out of memory");
	progress_catch_signals();
	if (code == CTL_OK)
		code = check_names(ctl, &backup.image, &backup.nvram);
	if (code == CTL_OK)
		code = open_target(ctl, &backup.image);
	if (code == CTL_OK)
		code = open_target(ctl, &backup.nvram);
	if (code == CTL_OK)
		code = ask(&backup);
	if (code == CTL_OK) {
		progress_begin(&backup.progress, ctl, "backup", 0, 0);
		code = follow(&backup);
		progress_end(&backup.progress);
	}
	if (code == CTL_OK)
		code = give_names(&backup);
	if (code == CTL_OK)
		code = show(&backup);
	drop_target(&backup.image);
	drop_target(&backup.nvram);
	/* The service sees now that nobody waits any more. */
	if (backup.line >= 0)
		close(backup.line);
	return code;
}
