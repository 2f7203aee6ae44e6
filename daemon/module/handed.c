/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Files from muninnd for the module. */
#include "daemon/module/handed.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/descriptors.h"

int handed_send(int socket, uint64_t number, const int *fds, int count)
{
	ssize_t sent = descriptors_send(socket, &number, sizeof(number), fds, count);

	return sent < 0 ? (int)sent : 0;
}

static int inherited_socket(void)
{
	const char *text = getenv(HANDED_VARIABLE);

	return text ? atoi(text) : -1;
}

/* What came first. False: nothing more has come. */
static bool take_first(uint64_t *number, int *fds, int *count)
{
	*count = 0;
	return descriptors_receive(inherited_socket(), number, sizeof(*number), fds, count) ==
	       (ssize_t)sizeof(*number);
}

int handed_take(uint64_t number, int *fds, int count, struct error_text *error)
{
	/* Units have threads of their own for questions. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int came[DESCRIPTORS_MAX], came_count = 0;
	int result = -ENOENT;
	uint64_t first;

	pthread_mutex_lock(&lock);
	while (result && take_first(&first, came, &came_count)) {
		result = first == number && came_count == count ? 0 : -ENOENT;
		if (result)
			descriptors_close(came, &came_count);
	}
	pthread_mutex_unlock(&lock);
	if (result)
		return error_set(error, result, "the files did not come from muninnd");
	memcpy(fds, came, (size_t)count * sizeof(*fds));
	return 0;
}
