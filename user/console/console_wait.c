/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command `wait`: for a time, for the end of the processes, or until a number is reached. For scripts. */
#include "user/console/console.h"

#include <errno.h>
#include <string.h>

#include "user/console/console_log.h"
#include "user/lib/clock.h"
#include "user/lib/parse.h"
#include "user/session/session_live.h"

/* A number that can be waited for. */
struct wait_key {
	const char *name;
	size_t field; /* offset in struct session_sums */
	bool is_bytes;
};

static const struct wait_key keys[] = {
	{ "live", offsetof(struct session_sums, live_bytes), true },
	{ "peak", offsetof(struct session_sums, peak_bytes), true },
	{ "blocks", offsetof(struct session_sums, live_blocks), false },
	{ "allocs", offsetof(struct session_sums, allocs), false },
	{ "frees", offsetof(struct session_sums, frees), false },
};

/* "live>10M" */
struct condition {
	const struct wait_key *key;  /* NULL = wait for the end of the processes */
	bool is_less, is_equal_fine; /* "<=" and ">=" */
	u64 value;
};

/* 0 or -EINVAL. */
static int parse_condition(struct condition *cond, const char *text)
{
	size_t len = strcspn(text, "<>");
	int err;

	*cond = (struct condition){ .is_less = text[len] == '<' };
	if (!strcmp(text, "end"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].name) == len && !strncmp(keys[i].name, text, len))
			cond->key = &keys[i];
	if (!cond->key || !text[len])
		return -EINVAL;
	text += len + 1;
	cond->is_equal_fine = *text == '=';
	text += cond->is_equal_fine;
	err = cond->key->is_bytes ? parse_size(text, &cond->value) : parse_u64(text, &cond->value);
	return err ? -EINVAL : 0;
}

static bool is_met(const struct console *c, const struct condition *cond)
{
	struct session_sums sums;
	u64 value;

	if (!cond->key)
		return false;
	sums = session_sums(c->session, c->pid);
	value = *(const u64 *)(const void *)((const char *)&sums + cond->key->field);
	if (value == cond->value)
		return cond->is_equal_fine;
	return cond->is_less ? value < cond->value : value > cond->value;
}

static enum wait_end console_wait_watching(struct console *c, u64 ns,
					   bool (*is_enough)(const struct console *c, void *arg), void *arg)
{
	u64 end = ns ? clock_now_ns() + ns : UINT64_MAX;

	for (;;) {
		if (is_enough && is_enough(c, arg))
			return WAIT_ENOUGH;
		if (!c->has_source || !c->nr_running)
			return WAIT_ENDED;
		if (clock_now_ns() >= end)
			return WAIT_TIMED_OUT;
		if (console_round(c, WAIT_A_BIT) != NEWS_NONE)
			return WAIT_BROKEN_OFF;
	}
}

enum wait_end console_wait_for(struct console *c, u64 ns,
			       bool (*is_enough)(const struct console *c, void *arg), void *arg)
{
	enum wait_end end = console_wait_watching(c, ns, is_enough, arg);

	console_log_flush(c, true);
	return end;
}

static bool is_condition_met(const struct console *c, void *arg)
{
	return is_met(c, arg);
}

static int wait_condition(struct console *c, const char *text, struct condition *cond, u64 limit_ns)
{
	switch (console_wait_for(c, limit_ns, is_condition_met, cond)) {
	case WAIT_ENDED:
		return cond->key ? console_refuse(c, -ENODATA, "wait: %s: the processes have ended", text)
				 : 0;
	case WAIT_TIMED_OUT:
		return console_refuse(c, -ETIME, "wait: %s: not in the time", text);
	default:
		return 0;
	}
}

int console_wait(struct console *c, size_t nr, char **words)
{
	struct condition cond;
	u64 ns = 0;

	if (nr > 1 && (parse_duration(words[1], &ns) || !ns))
		return console_refuse(c, -EINVAL, "wait: %s: must be a duration such as 500ms or 10s",
				      words[1]);
	if (!parse_condition(&cond, words[0]))
		return wait_condition(c, words[0], &cond, ns);
	if (nr > 1 || parse_duration(words[0], &ns))
		return console_refuse(
			c, -EINVAL,
			"wait: %s: must be a duration such as 10s, or end, or live, peak, blocks, "
			"allocs or frees with <, <=, > or >= and a number (live>10M)",
			words[0]);
	if (ns)
		console_wait_for(c, ns, NULL, NULL);
	return 0;
}
