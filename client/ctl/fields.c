/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Facts as JSON, and such JSON as lines and tables. */
#include "client/ctl/fields.h"

#include <stdio.h>
#include <string.h>

#include "client/ctl/ctl.h"

#define NAME_WIDTH   25
#define COLUMNS_MAX  16
#define VALUE_TEXT   160
#define BETWEEN      2
#define BROKEN_WIDTH 24 /* at least, of a text that is broken */

static json_t *value_of(const struct field *field)
{
	switch (field->kind) {
	case FIELD_NUMBER:
		return json_integer((json_int_t)field->value);
	case FIELD_HEX:
		return ctl_json_id(field->value);
	case FIELD_TEXT:
		return json_string(field->text);
	default:
		return json_boolean(field->value);
	}
}

static void take(void *context, const struct field *field)
{
	struct ctl_fields *to = context;

	int result = 0;

	switch (field->kind) {
	case FIELD_LIST:
		to->list = json_array();
		result = json_object_set_new(to->object, field->name, to->list);
		break;
	case FIELD_ROW:
		to->row = json_object();
		result = json_array_append_new(to->list, to->row);
		break;
	case FIELD_END:
		to->list = to->row = NULL;
		break;
	default:
		if (to->with_details || !field->is_detail)
			result = json_object_set_new(to->list ? to->row : to->object, field->name,
						     value_of(field));
	}
	to->failed = to->failed || result < 0;
}

struct fields ctl_fields_into(struct ctl_fields *to)
{
	return (struct fields){ .take = take, .context = to };
}

/* ---- for people ---- */

static const char *text_of(const json_t *value, char text[VALUE_TEXT])
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_boolean(value))
		return json_is_true(value) ? "yes" : "no";
	snprintf(text, VALUE_TEXT, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return text;
}

/* "used_bytes" is read as "used bytes". */
static const char *label_of(const char *name, char text[VALUE_TEXT])
{
	snprintf(text, VALUE_TEXT, "%s", name);
	for (char *at = text; (at = strchr(at, '_')) != NULL;)
		*at = ' ';
	return text;
}

struct column {
	const char *name;
	int width;
	bool is_text;
};

static size_t find_columns(const json_t *rows, struct column columns[COLUMNS_MAX])
{
	size_t count = 0, n;
	char text[VALUE_TEXT];
	const char *name;
	json_t *row, *value;

	json_array_foreach(rows, n, row)
	{
		json_object_foreach(row, name, value)
		{
			size_t at = 0;
			int width = (int)strlen(text_of(value, text));

			while (at < count && strcmp(columns[at].name, name) != 0)
				at++;
			if (at == COLUMNS_MAX)
				continue;
			if (at == count)
				columns[count++] =
					(struct column){ .name = name, .width = (int)strlen(name) };
			columns[at].is_text = json_is_string(value);
			if (width > columns[at].width)
				columns[at].width = width;
		}
	}
	return count;
}

/* The last text of a line, which goes on below itself where it is too long. */
static void print_broken(const char *text, int indent)
{
	int room = CTL_COLUMNS - indent < BROKEN_WIDTH ? BROKEN_WIDTH : CTL_COLUMNS - indent;

	while ((int)strlen(text) > room) {
		int end = room;

		while (end > 0 && text[end] != ' ')
			end--;
		if (!end)
			break;
		printf("%.*s\n%*s", end, text, indent, "");
		text += end + 1;
	}
	puts(text);
}

static void print_cell(const struct column *column, bool is_last, int indent, const char *text)
{
	if (is_last && column->is_text)
		print_broken(text, indent);
	else
		printf("%*s%s", column->is_text ? -column->width : column->width, text,
		       is_last ? "\n" : "  ");
}

static void print_table(const char *name, const json_t *rows)
{
	struct column columns[COLUMNS_MAX];
	size_t count = find_columns(rows, columns), n;
	char text[VALUE_TEXT];
	int indent = BETWEEN;
	json_t *row;

	printf("%s%s\n", label_of(name, text), json_array_size(rows) ? ":" : ": none");
	for (size_t at = 0; at < count; indent += columns[at++].width + BETWEEN) {
		printf("%*s", at ? 0 : BETWEEN, "");
		print_cell(&columns[at], at + 1 == count, indent, label_of(columns[at].name, text));
	}
	json_array_foreach(rows, n, row)
	{
		indent = BETWEEN;
		for (size_t at = 0; at < count; indent += columns[at++].width + BETWEEN) {
			const json_t *value = json_object_get(row, columns[at].name);

			printf("%*s", at ? 0 : BETWEEN, "");
			print_cell(&columns[at], at + 1 == count, indent,
				   value ? text_of(value, text) : "");
		}
	}
}

void ctl_fields_print(const json_t *object)
{
	char text[VALUE_TEXT], label[VALUE_TEXT];
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		if (json_is_array(value)) {
			print_table(name, value);
			continue;
		}
		printf("%-*s", NAME_WIDTH, label_of(name, label));
		print_broken(text_of(value, text), NAME_WIDTH);
	}
}
