/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Leaves out pages of a segment that are too new for a search through a ribbon row. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_NARROW_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_NARROW_H

#include "engine/muninn/index/narrow.h"
#include "engine/muninn/index/ribbon/ribbon_search.h"

/*
 * As index_search_narrow, of the segment that the search has found: of its pages those are left
 * that may have the newest record up to the bound, and older ones. 0, or the error of a probe.
 */
int ribbon_narrow(struct ribbon_search *search, enum narrow_way way, index_probe *probe,
		  void *context);

#endif
