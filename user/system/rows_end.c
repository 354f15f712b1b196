/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report at the end: all that grew, and where. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/system/answer.h"
#include "user/system/rows.h"

/* Before this nothing is known to grow: a line needs ten looks. */
static const u64 sure_ns = 15ULL * 1000 * 1000 * 1000;

/* A process that grows, has grown, or was traced. */
struct grower {
	pid_t pid;
	const char *comm;
	double bytes_per_s;
	u64 needs;
	bool has_ended;
	const struct zoom_answer *answer; /* NULL = it was not traced */
};

struct growers {
	struct grower *list; /* owned */
	size_t nr, max;
};

static int rows_end_add(struct growers *g, const struct grower *one)
{
	if (array_reserve(g->list, g->max, g->nr + 1))
		return -ENOMEM;
	g->list[g->nr++] = *one;
	return 0;
}

/* Processes that run. */
static int add_watched(struct growers *g, const struct system_state *s)
{
	int err = 0;

	for (size_t i = 0; i < s->watch.nr && !err; i++) {
		const struct watched *p = &s->watch.list[i];

		if (p->state != WATCHED_QUIET && !zooms_answer(&s->zooms, p->pid, p->start_time))
			err = rows_end_add(g, &(struct grower){ .pid = p->pid,
								.comm = p->comm,
								.bytes_per_s = p->line.bytes_per_s,
								.needs = watched_needs(p) });
	}
	return err;
}

/* Processes that were traced. */
static int add_found(struct growers *g, const struct system_state *s)
{
	int err = 0;

	for (u32 i = 0; i < s->zooms.nr_answers && !err; i++) {
		const struct zoom_answer *f = &s->zooms.answers[i];
		const struct watched *p = watch_find(&s->watch, f->pid);

		err = rows_end_add(g, &(struct grower){ .pid = f->pid,
							.comm = f->comm,
							.bytes_per_s = f->bytes_per_s,
							.needs = f->needs,
							.has_ended = !p || p->start_time != f->start_time,
							.answer = f });
	}
	return err;
}

/* Processes that ended untraced. */
static int add_ended(struct growers *g, const struct system_state *s)
{
	int err = 0;

	for (size_t i = 0; i < WATCH_MAX_ENDS && i < s->watch.nr_ends && !err; i++) {
		const struct watch_end *e = &s->watch.ends[i];

		if (!zooms_answer(&s->zooms, e->pid, e->start_time))
			err = rows_end_add(g, &(struct grower){ .pid = e->pid,
								.comm = e->comm,
								.bytes_per_s = e->line.bytes_per_s,
								.needs = e->needed,
								.has_ended = true });
	}
	return err;
}

/* Leaks first, then by rate. */
static int rows_end_compare(const void *a, const void *b)
{
	const struct grower *p = a, *q = b;
	bool p_leaks = p->answer && p->answer->kind == ANSWER_LEAKS;
	bool q_leaks = q->answer && q->answer->kind == ANSWER_LEAKS;

	if (p_leaks != q_leaks)
		return p_leaks ? -1 : 1;
	if (p->bytes_per_s != q->bytes_per_s)
		return p->bytes_per_s > q->bytes_per_s ? -1 : 1;
	return p->pid < q->pid ? -1 : p->pid > q->pid;
}

static void write_grower(FILE *out, const struct grower *g)
{
	char text[640], rate[80], box[4 * sizeof(g->answer->container)];
	const struct zoom_answer *f = g->answer;

	escape_text(out, g->comm);
	row_rate(g->bytes_per_s, rate, sizeof(rate));
	fprintf(out, " (pid %d)  %s%s, needs %s", (int)g->pid, g->bytes_per_s > 0 ? "by " : "", rate,
		human_bytes(g->needs).text);
	if (f && f->container[0])
		fprintf(out, ", in %s", escape_buf(box, sizeof(box), f->container));
	if (f && f->end_ns > f->begin_ns)
		fprintf(out, ", traced for %s", human_duration(f->end_ns - f->begin_ns).text);
	fputs(g->has_ended ? ", has ended\n" : "\n", out);
	if (f)
		answer_describe(f, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "not traced");
	fprintf(out, "        %s\n", text);
}

int rows_write_end(FILE *out, const struct system_state *s)
{
	struct growers g = { NULL };
	int err = add_found(&g, s);

	if (!err)
		err = add_watched(&g, s);
	if (!err)
		err = add_ended(&g, s);
	if (!err) {
		if (g.nr)
			qsort(g.list, g.nr, sizeof(*g.list), rows_end_compare);
		if (!g.nr)
			fputs(!s->watch.nr
				      ? "No process matches: --comm, --exe, --pid, --uid, --cgroup, --container.\n"
			      : s->watch.now_ns - s->watch.start_ns < sure_ns
				      ? "No process has grown yet: growth shows after some 15 seconds.\n"
				      : "No process has grown.\n",
			      out);
		else
			fprintf(out, "%s process%s grew, or %s traced\n\n", human_count(g.nr).text,
				g.nr == 1 ? "" : "es", g.nr == 1 ? "was" : "were");
		for (size_t i = 0; i < g.nr; i++)
			write_grower(out, &g.list[i]);
	}
	if (s->watch.nr_ends > WATCH_MAX_ENDS)
		fprintf(out, "%s more have grown and ended; only the last %d are listed\n",
			human_count(s->watch.nr_ends - WATCH_MAX_ENDS).text, WATCH_MAX_ENDS);
	if (s->zooms.nr_dropped)
		fprintf(out, "%s more were traced; only the last %d are listed\n",
			human_count(s->zooms.nr_dropped).text, ZOOM_MAX_ANSWERS);
	free(g.list);
	return err;
}
