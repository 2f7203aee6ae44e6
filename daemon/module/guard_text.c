/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Key texts. tgtd copies keys and values into messages and answers, and takes a NUL in a key for
 * part of it in one place and for its end in another. So what is not a plain text is refused.
 */
#include "daemon/module/guard_text.h"

#include <string.h>

static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte != 0x7f;
}

/* Only CHAP's numbers may be long. */
static uint16_t longest_value(const struct guard_text *text)
{
	bool large = !strcmp(text->key, "CHAP_C") || !strcmp(text->key, "CHAP_R");

	return large ? GUARD_LARGE_BYTES : GUARD_VALUE_BYTES;
}

static const char *key_byte(struct guard_text *text, uint8_t byte)
{
	if (byte == '=') {
		if (!text->key_bytes)
			return "a text key has no name";
		if (text->keys == GUARD_TEXT_KEYS)
			return "a PDU has too many text keys";
		text->keys++;
		text->key[text->key_bytes] = '\0';
		text->in_value = true;
		text->value_bytes = 0;
		return NULL;
	}
	if (!is_plain(byte))
		return "a control character in the name of a text key";
	if (text->key_bytes == GUARD_KEY_BYTES)
		return "the name of a text key is too long";
	text->key[text->key_bytes++] = (char)byte;
	return NULL;
}

static const char *value_byte(struct guard_text *text, uint8_t byte, guard_text_key *key,
			      void *context)
{
	if (byte == '\0') {
		text->value[text->value_bytes < GUARD_VALUE_BYTES ? text->value_bytes
								  : GUARD_VALUE_BYTES] = '\0';
		text->in_value = false;
		text->key_bytes = 0;
		return key(context, text);
	}
	if (!is_plain(byte))
		return "a control character in the value of a text key";
	if (text->value_bytes == longest_value(text))
		return "the value of a text key is too long";
	if (text->value_bytes < GUARD_VALUE_BYTES)
		text->value[text->value_bytes] = (char)byte;
	text->value_bytes++;
	return NULL;
}

const char *guard_text_came(struct guard_text *text, const uint8_t *from, size_t bytes,
			    guard_text_key *key, void *context)
{
	const char *reason = NULL;

	for (size_t i = 0; !reason && i < bytes; i++)
		reason = text->in_value ? value_byte(text, from[i], key, context)
					: key_byte(text, from[i]);
	return reason;
}

const char *guard_text_end(const struct guard_text *text)
{
	return text->in_value || text->key_bytes ? "a text ends inside of a key" : NULL;
}
