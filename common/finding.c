/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What kinds of findings there are. */
#include "common/finding.h"

#include <stdarg.h>
#include <stdio.h>

static const struct finding_words words[FINDING_KINDS] = {
	[FINDING_SUPERBLOCK] = { "superblock",
				 "nothing is lost while the other copy, or the NVRAM, is whole",
				 "takes what is whole", false },
	[FINDING_IMAGE_SHORT] = { "image", "what was behind the end is lost",
				  "copies what the rest of the image holds", false },
	[FINDING_NVRAM_FILE] = { "nvram-file", "what was only in NVRAM may be lost",
				 "goes on with what the flash holds", false },
	[FINDING_BLOCK_STATE] = { "block", "what is stored in the block can't be read",
				  "names the objects that need it", false },
	[FINDING_NVRAM] = { "nvram", "the service refuses to open the device",
			    "goes on without this part of the NVRAM", false },
	[FINDING_BUFFER] = { "buffer", "the newest records of a row may be lost",
			     "copies what is left, and names what may be older", true },
	[FINDING_ROOT] = { "root", "the device can't be opened if its NVRAM is lost",
			   "needs none while the NVRAM is whole", false },
	[FINDING_INDEX] = { "index", "records that are stored may not be found",
			    "copies what the index finds", false },
	[FINDING_SEGMENT] = { "segment", "records of the segment may be lost",
			      "names the objects that need them", false },
	[FINDING_PAGE] = { "page", "objects that have a record in the page can't be read in whole",
			   "names the objects that need it", false },
	[FINDING_PARITY] = { "parity",
			     "nothing is lost, as long as few pages beside it are; the service "
			     "moves it, or writes it anew, when it scrubs",
			     "copies what was there", false },
	[FINDING_RECORD] = { "record", "the record is not found, or is not what was stored",
			     "names the object that needs it", false },
	[FINDING_SEQUENCE] = { "sequence", "a command may count that never ended",
			       "copies what the device shows", false },
	[FINDING_STORE] = { "store", "the device can't be opened", "can't go on without it", true },
	[FINDING_PARTITION] = { "partition", "the partition, or a part of it, can't be reached",
				"copies what can be reached of it", true },
	[FINDING_DIRECTORY] = { "directory", "objects may be missing in lists",
				"looks for objects without the directory", true },
	[FINDING_OBJECT] = { "object", "the object can't be opened", "leaves it out", true },
	[FINDING_DATA] = { "data", "these bytes of the object can't be read", "leaves a hole there",
			   true },
	[FINDING_ATTRIBUTE] = { "attribute", "attributes of the object can't be read",
				"copies those that can be", true },
	[FINDING_ORPHAN] = { "orphan", "the object is stored, but no list shows it",
			     "copies it to its place", false },
	[FINDING_COLLECTION] = { "collection", "collection and object do not say the same",
				 "copies what both say", true },
	[FINDING_COUNT] = { "count", "what is shown as used or as their number is wrong",
			    "counts anew", false },
	[FINDING_VERSION] = { "version", "the version can't be read in whole",
			      "copies the present, no versions", false },
	[FINDING_CLONE] = { "clone", "what the clone reads of its source may go",
			    "makes it a partition of its own", false },
	[FINDING_OLDER] = { "older", "parts of it may be older than they were",
			    "copies it as it was found", true },
	[FINDING_SPACE] = { "space", "the copy lacks it", "names it", true },
};

const struct finding_words *finding_words(enum finding_kind kind)
{
	return &words[kind];
}

static void add(struct findings *findings, struct finding *finding, const char *format,
		va_list arguments)
{
	vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	findings->count++;
	findings->take(findings->context, finding);
}

void findings_add(struct findings *findings, enum finding_kind kind, const char *format, ...)
{
	struct finding finding = { .kind = kind };
	va_list arguments;

	va_start(arguments, format);
	add(findings, &finding, format, arguments);
	va_end(arguments);
}

void findings_add_of(struct findings *findings, enum finding_kind kind, uint64_t partition,
		     uint64_t object, const char *format, ...)
{
	struct finding finding = { .kind = kind, .partition = partition, .object = object };
	va_list arguments;

	va_start(arguments, format);
	add(findings, &finding, format, arguments);
	va_end(arguments);
}
