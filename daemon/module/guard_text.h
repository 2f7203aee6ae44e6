/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reads KEY=VALUE texts of logins and discovery while they come, byte by byte, so that nothing has
 * to be kept but the present key.
 */
#ifndef MUNINN_DAEMON_MODULE_GUARD_TEXT_H
#define MUNINN_DAEMON_MODULE_GUARD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUARD_KEY_BYTES   63   /* RFC 7143 6.1 */
#define GUARD_VALUE_BYTES 255  /* the same, of all values but large numbers */
#define GUARD_LARGE_BYTES 2050 /* of CHAP_C and CHAP_R: 1024 bytes as hexadecimal digits */
#define GUARD_TEXT_KEYS   64   /* of a PDU; known initiators send 20 at most */
#define GUARD_NAME_BYTES  223  /* RFC 7143 4.2.7.2 */

struct guard_text {
	char key[GUARD_KEY_BYTES + 1];
	char value[GUARD_VALUE_BYTES + 1]; /* the beginning of longer ones */
	uint16_t key_bytes, value_bytes;
	uint8_t keys;
	bool in_value;
};

/*
 * A key is complete. NULL, or why the connection must end. `text` is as for a C string, the value's
 * length is value_bytes.
 */
typedef const char *guard_text_key(void *context, const struct guard_text *text);

/* Bytes of the text have come. NULL, or why the connection must end. */
const char *guard_text_came(struct guard_text *text, const uint8_t *from, size_t bytes,
			    guard_text_key *key, void *context);

/* The text is at its end. NULL, or why the connection must end. */
const char *guard_text_end(const struct guard_text *text);

#endif
