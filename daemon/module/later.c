/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Puts work off until tgtd has nothing else to do. */
#include "daemon/module/later.h"

#include <stddef.h>

enum { WORKS_MAX = 16 };

static struct {
	later_work *work;
	void *context;
} works[WORKS_MAX];
static size_t count;
static bool is_busy;

bool later_put_off(later_work *work, void *context)
{
	if (!is_busy)
		return false;
	for (size_t i = 0; i < count; i++)
		if (works[i].work == work && works[i].context == context)
			return true;
	if (count == WORKS_MAX)
		return false;
	works[count].work = work;
	works[count++].context = context;
	return true;
}

void later_forget(void *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (works[i].context != context)
			works[kept++] = works[i];
	count = kept;
}

bool later_is_busy(void)
{
	return is_busy;
}

void later_set_busy(bool busy)
{
	is_busy = busy;
}

bool later_has_any(void)
{
	return count > 0;
}

void later_do(void)
{
	size_t due = count;

	count = 0;
	for (size_t i = 0; i < due; i++)
		works[i].work(works[i].context);
}
