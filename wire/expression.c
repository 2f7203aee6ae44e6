/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Compiles an expression, from left to right, into steps for a set of threads (Thompson's
 * construction, CACM 11/6, 1968). Jumps are relative, and the code of each piece is in one place
 * with its exit at its end. So steps around a piece make a repetition, and copies of it make a
 * bound.
 */
#include "wire/expression.h"

#include <errno.h>
#include <string.h>

/* A group that is open; the first is the whole expression. */
struct group {
	uint32_t branch; /* where the present alternative begins */
	uint32_t exits; /* jumps to the group's end, as a list through their `jump`: distance to the
			   one before; 0: the last */
	uint32_t begin;
	bool has_exits;
};

struct compiler {
	struct expression *expression;
	const uint8_t *text;
	size_t length, at;
	struct group groups[EXPRESSION_DEPTH_MAX + 1];
	uint32_t depth;
	uint32_t piece;  /* where the last piece begins */
	bool has_piece;  /* there is one that can be repeated */
	bool repeatable; /* it is no anchor */
};

static bool more(const struct compiler *compiler)
{
	return compiler->at < compiler->length;
}

static bool next_is(const struct compiler *compiler, uint8_t byte)
{
	return more(compiler) && compiler->text[compiler->at] == byte;
}

/* ---- steps ---- */

static int add_step(struct compiler *compiler, struct expression_step step)
{
	struct expression *expression = compiler->expression;

	if (expression->step_count == EXPRESSION_STEPS_MAX)
		return -E2BIG;
	expression->steps[expression->step_count++] = step;
	return 0;
}

/* Inserts a step before step `at`, and moves what is behind. No jump leads across that place. */
static int insert_step(struct compiler *compiler, uint32_t at, struct expression_step step)
{
	struct expression *expression = compiler->expression;

	if (expression->step_count == EXPRESSION_STEPS_MAX)
		return -E2BIG;
	memmove(&expression->steps[at + 1], &expression->steps[at],
		(expression->step_count - at) * sizeof(step));
	expression->steps[at] = step;
	expression->step_count++;
	return 0;
}

static struct expression_step jump_of(enum expression_operation operation, uint32_t from,
				      uint32_t to)
{
	return (struct expression_step){ .operation = (uint8_t)operation,
					 .jump = (int16_t)((int32_t)to - (int32_t)from) };
}

/* ---- sets ---- */

static void set_add(struct expression_set *set, uint8_t byte)
{
	set->bits[byte / 64] |= UINT64_C(1) << (byte % 64);
}

static void set_invert(struct expression_set *set)
{
	for (int i = 0; i < 4; i++)
		set->bits[i] = ~set->bits[i];
}

/* A piece that consumes one byte. None consumes a newline. */
static int add_set(struct compiler *compiler, const struct expression_set *set)
{
	struct expression *expression = compiler->expression;
	struct expression_step step = { .operation = EXPRESSION_SET };

	/* A set takes at least one byte of the expression's text. */
	step.set = (uint16_t)expression->set_count;
	expression->sets[expression->set_count] = *set;
	expression->sets[expression->set_count].bits['\n' / 64] &= ~(UINT64_C(1) << ('\n' % 64));
	expression->set_count++;
	compiler->piece = expression->step_count;
	compiler->has_piece = compiler->repeatable = true;
	return add_step(compiler, step);
}

static int add_literal(struct compiler *compiler, uint8_t byte)
{
	struct expression_set set = { 0 };

	set_add(&set, byte);
	return add_set(compiler, &set);
}

static bool is_in_class(const char *name, uint8_t byte)
{
	bool upper = byte >= 'A' && byte <= 'Z', lower = byte >= 'a' && byte <= 'z';
	bool digit = byte >= '0' && byte <= '9', graph = byte > ' ' && byte < 0x7F;
	bool hexadecimal = digit || (byte >= 'A' && byte <= 'F') || (byte >= 'a' && byte <= 'f');
	const struct {
		const char *name;
		bool has;
	} classes[] = {
		{ "alnum", upper || lower || digit },
		{ "alpha", upper || lower },
		{ "blank", byte == ' ' || byte == '\t' },
		{ "cntrl", byte < ' ' || byte == 0x7F },
		{ "digit", digit },
		{ "graph", graph },
		{ "lower", lower },
		{ "print", graph || byte == ' ' },
		{ "punct", graph && !upper && !lower && !digit },
		{ "space", byte == ' ' || (byte >= '\t' && byte <= '\r') },
		{ "upper", upper },
		{ "word", upper || lower || digit || byte == '_' },
		{ "xdigit", hexadecimal },
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strcmp(name, classes[i].name) == 0)
			return classes[i].has;
	return false;
}

/* False: there is no such class. Every class has a byte. */
static bool set_add_class(struct expression_set *set, const char *name)
{
	bool any = false;

	for (unsigned byte = 0; byte < 256; byte++)
		if (is_in_class(name, (uint8_t)byte)) {
			set_add(set, (uint8_t)byte);
			any = true;
		}
	return any;
}

/* ---- brackets ---- */

/* Behind "[:", "[." or "[=": the name up to the same sign and "]". */
static int take_name(struct compiler *compiler, uint8_t sign, char name[8])
{
	size_t length = 0;

	while (compiler->at + 1 < compiler->length &&
	       !(compiler->text[compiler->at] == sign && compiler->text[compiler->at + 1] == ']')) {
		if (length == 7)
			return -EINVAL;
		name[length++] = (char)compiler->text[compiler->at++];
	}
	if (compiler->at + 1 >= compiler->length || length == 0)
		return -EINVAL;
	name[length] = '\0';
	compiler->at += 2;
	return (int)length;
}

/* An element of a bracket: 0 with *byte, 1: it was a class, which is in the set. */
static int take_element(struct compiler *compiler, struct expression_set *set, uint8_t *byte)
{
	char name[8];
	uint8_t sign;
	int length;

	*byte = compiler->text[compiler->at++];
	if (*byte != '[' || !more(compiler))
		return 0;
	sign = compiler->text[compiler->at];
	if (sign != ':' && sign != '.' && sign != '=')
		return 0;
	compiler->at++;
	length = take_name(compiler, sign, name);
	if (length < 0)
		return length;
	if (sign == ':')
		return strcmp(name, "word") != 0 && set_add_class(set, name) ? 1 : -EINVAL;
	*byte = (uint8_t)name[0];
	return length == 1 ? 0 : -EINVAL;
}

static int take_bracket(struct compiler *compiler)
{
	struct expression_set set = { 0 };
	bool inverted = next_is(compiler, '^');

	compiler->at += inverted;
	for (bool first = true; first || !next_is(compiler, ']'); first = false) {
		uint8_t low, high;
		int result;

		if (!more(compiler))
			return -EINVAL;
		result = take_element(compiler, &set, &low);
		if (result < 0)
			return result;
		high = low;
		/* A "-" before the end stands for itself. */
		if (result == 0 && next_is(compiler, '-') && compiler->at + 1 < compiler->length &&
		    compiler->text[compiler->at + 1] != ']') {
			compiler->at++;
			if (take_element(compiler, &set, &high) != 0 || high < low)
				return -EINVAL;
		}
		for (unsigned byte = low; result == 0 && byte <= high; byte++)
			set_add(&set, (uint8_t)byte);
	}
	compiler->at++;
	if (inverted)
		set_invert(&set);
	return add_set(compiler, &set);
}

/* ---- repetition ---- */

/* Copies the last piece `count` times behind itself. */
static int copy_piece(struct compiler *compiler, uint32_t begin, uint32_t length, uint32_t count)
{
	struct expression *expression = compiler->expression;

	if (length * count > EXPRESSION_STEPS_MAX - expression->step_count)
		return -E2BIG;
	for (uint32_t i = 0; i < count; i++) {
		memmove(&expression->steps[expression->step_count], &expression->steps[begin],
			length * sizeof(expression->steps[0]));
		expression->step_count += length;
	}
	return 0;
}

/* Makes the steps from `begin` on repeatable any number of times or, with `once`, optional. */
static int make_optional(struct compiler *compiler, uint32_t begin, bool once)
{
	uint32_t end = compiler->expression->step_count + 1;
	int result = insert_step(compiler, begin,
				 jump_of(EXPRESSION_SPLIT, begin, end + (once ? 0 : 1)));

	if (result == 0 && !once)
		result = add_step(compiler, jump_of(EXPRESSION_JUMP, end, begin));
	return result;
}

static int make_repeated(struct compiler *compiler, uint32_t begin)
{
	uint32_t end = compiler->expression->step_count;

	/* SPLIT goes on behind itself, or back. */
	return add_step(compiler, jump_of(EXPRESSION_SPLIT, end, begin));
}

/* `most` 0: any number. */
static int repeat_piece(struct compiler *compiler, uint32_t least, uint32_t most, bool unlimited)
{
	uint32_t begin = compiler->piece, length = compiler->expression->step_count - begin;
	uint32_t copies = unlimited ? least : most;
	int result = 0;

	if (!unlimited && most == 0) {
		compiler->expression->step_count = begin; /* matches nothing but the empty text */
		return 0;
	}
	if (copies > 1)
		result = copy_piece(compiler, begin, length, copies - 1);
	if (result == 0 && unlimited)
		return least == 0
			       ? make_optional(compiler, begin, false)
			       : make_repeated(compiler, compiler->expression->step_count - length);
	/* From the last copy to the first optional one: each is inside the one before. */
	for (uint32_t copy = most; result == 0 && copy > least; copy--)
		result = make_optional(compiler, begin + (copy - 1) * length, true);
	return result;
}

static int take_number(struct compiler *compiler, uint32_t *number)
{
	size_t begin = compiler->at;

	*number = 0;
	while (more(compiler) && compiler->text[compiler->at] >= '0' &&
	       compiler->text[compiler->at] <= '9') {
		*number = *number * 10 + (compiler->text[compiler->at++] - '0');
		if (*number > EXPRESSION_REPEAT_MAX)
			return -E2BIG;
	}
	return compiler->at > begin ? 0 : -EINVAL;
}

/* Behind "{". */
static int take_bound(struct compiler *compiler)
{
	uint32_t least, most;
	bool unlimited = false;
	int result = take_number(compiler, &least);

	most = least;
	if (result == 0 && next_is(compiler, ',')) {
		compiler->at++;
		unlimited = next_is(compiler, '}');
		if (!unlimited)
			result = take_number(compiler, &most);
	}
	if (result != 0)
		return result;
	if (!next_is(compiler, '}') || most < least)
		return -EINVAL;
	compiler->at++;
	return repeat_piece(compiler, least, most, unlimited);
}

/* ---- groups ---- */

static void begin_branch(struct compiler *compiler)
{
	compiler->groups[compiler->depth].branch = compiler->expression->step_count;
	compiler->has_piece = false;
}

static void begin_group(struct compiler *compiler)
{
	compiler->groups[compiler->depth] =
		(struct group){ .begin = compiler->expression->step_count };
	begin_branch(compiler);
}

/*
 * At "|": the alternative so far gets a way around it, and a jump to the group's end, which is not
 * known yet.
 */
static int end_branch(struct compiler *compiler)
{
	struct group *group = &compiler->groups[compiler->depth];
	uint32_t exit = compiler->expression->step_count + 1;
	int result = insert_step(compiler, group->branch,
				 jump_of(EXPRESSION_SPLIT, group->branch, exit + 1));

	if (result == 0)
		result = add_step(compiler, jump_of(EXPRESSION_JUMP, exit,
						    group->has_exits ? group->exits : exit));
	group->exits = exit;
	group->has_exits = true;
	begin_branch(compiler);
	return result;
}

/* The group as a whole is now the last piece. */
static void end_group(struct compiler *compiler)
{
	const struct group *group = &compiler->groups[compiler->depth];
	struct expression_step *steps = compiler->expression->steps;
	uint32_t exit = group->exits;

	for (bool any = group->has_exits; any;) {
		int16_t before = steps[exit].jump;

		steps[exit].jump = (int16_t)(compiler->expression->step_count - exit);
		any = before != 0;
		exit = (uint32_t)((int32_t)exit + before);
	}
	compiler->piece = group->begin;
	compiler->has_piece = compiler->repeatable = true;
}

/* ---- the whole ---- */

/* Behind a backslash. */
static int take_escape(struct compiler *compiler)
{
	struct expression_set set = { 0 };
	uint8_t byte;

	if (!more(compiler))
		return -EINVAL;
	byte = compiler->text[compiler->at++];
	if (is_in_class("punct", byte) && byte != '<' && byte != '>' && byte != '`' && byte != '\'')
		return add_literal(compiler, byte);
	if (byte != 'w' && byte != 'W' && byte != 's' && byte != 'S')
		return -EINVAL;
	set_add_class(&set, byte == 'w' || byte == 'W' ? "word" : "space");
	if (byte == 'W' || byte == 'S')
		set_invert(&set);
	return add_set(compiler, &set);
}

static int take_anchor(struct compiler *compiler, enum expression_operation operation)
{
	compiler->has_piece = true;
	compiler->repeatable = false;
	return add_step(compiler, (struct expression_step){ .operation = (uint8_t)operation });
}

static int take_repetition(struct compiler *compiler, uint8_t sign)
{
	if (!compiler->has_piece || !compiler->repeatable)
		return -EINVAL;
	if (sign == '{')
		return take_bound(compiler);
	if (sign == '?')
		return repeat_piece(compiler, 0, 1, false);
	return repeat_piece(compiler, sign == '+', 0, true);
}

static int take_open(struct compiler *compiler)
{
	if (compiler->depth == EXPRESSION_DEPTH_MAX)
		return -E2BIG;
	compiler->depth++;
	begin_group(compiler);
	return 0;
}

static int take_close(struct compiler *compiler)
{
	if (compiler->depth == 0)
		return -EINVAL;
	end_group(compiler);
	compiler->depth--;
	return 0;
}

/* A "{" that no number follows stands for itself, as in grep. */
static bool is_bound(const struct compiler *compiler)
{
	return more(compiler) && compiler->text[compiler->at] >= '0' &&
	       compiler->text[compiler->at] <= '9';
}

static int take_next(struct compiler *compiler)
{
	struct expression_set any = { 0 };
	uint8_t byte = compiler->text[compiler->at++];

	switch (byte) {
	case '(':
		return take_open(compiler);
	case ')':
		return take_close(compiler);
	case '|':
		return end_branch(compiler);
	case '*':
	case '+':
	case '?':
		return take_repetition(compiler, byte);
	case '{':
		return is_bound(compiler) ? take_repetition(compiler, byte)
					  : add_literal(compiler, byte);
	case '[':
		return take_bracket(compiler);
	case '.':
		set_invert(&any);
		return add_set(compiler, &any);
	case '^':
		return take_anchor(compiler, EXPRESSION_LINE_BEGIN);
	case '$':
		return take_anchor(compiler, EXPRESSION_LINE_END);
	case '\\':
		return take_escape(compiler);
	case '\n':
	case '\0':
		return -EINVAL;
	default:
		return add_literal(compiler, byte);
	}
}

/* Finds the bytes that the first consuming step can take, whatever stands before. */
static void find_first(struct expression *expression)
{
	bool seen[EXPRESSION_STEPS_MAX] = { false };
	uint32_t waiting[EXPRESSION_STEPS_MAX + 1], count = 1;

	waiting[0] = 0;
	seen[0] = true;
	while (count > 0) {
		uint32_t at = waiting[--count], next[2] = { at + 1, at + 1 };
		const struct expression_step *step = &expression->steps[at];

		if (step->operation == EXPRESSION_SET)
			for (int i = 0; i < 4; i++)
				expression->first.bits[i] |= expression->sets[step->set].bits[i];
		if (step->operation == EXPRESSION_SET || step->operation == EXPRESSION_MATCH)
			continue;
		if (step->operation == EXPRESSION_SPLIT || step->operation == EXPRESSION_JUMP)
			next[1] = (uint32_t)((int32_t)at + step->jump);
		if (step->operation == EXPRESSION_JUMP)
			next[0] = next[1];
		for (int i = 0; i < 2; i++)
			if (!seen[next[i]]) {
				seen[next[i]] = true;
				waiting[count++] = next[i];
			}
	}
}

int expression_compile(const uint8_t *text, size_t length, struct expression *expression)
{
	struct compiler compiler = { .expression = expression, .text = text, .length = length };
	int result = length == 0 || length > EXPRESSION_BYTES_MAX ? -EINVAL : 0;

	*expression = (struct expression){ .step_count = 0 };
	begin_group(&compiler);
	while (result == 0 && more(&compiler))
		result = take_next(&compiler);
	if (result == 0 && compiler.depth > 0)
		result = -EINVAL;
	if (result != 0)
		return result;
	end_group(&compiler);
	result = add_step(&compiler, (struct expression_step){ .operation = EXPRESSION_MATCH });
	if (result != 0)
		return result;
	find_first(expression);
	expression->span = EXPRESSION_WORK_MAX / 2 / expression->step_count;
	if (expression->span > EXPRESSION_SPAN_MAX)
		expression->span = EXPRESSION_SPAN_MAX;
	return 0;
}
