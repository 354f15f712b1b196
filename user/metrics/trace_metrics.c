/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a session to metrics and profiles. */
#include "user/metrics/trace_metrics.h"

#include <errno.h>
#include <stdlib.h>

#include "user/heap/heap.h"
#include "user/lib/clock.h"
#include "user/metrics/metrics_table.h"
#include "user/report/html_page.h"
#include "user/report/pprof.h"
#include "user/report/report.h"
#include "user/scan/leaks.h"
#include "user/session/session.h"
#include "user/session/session_ask.h"

/* Makes profiles and pages for the helper processes. */

struct making {
	const struct metrics_feed *feed;
	const struct profile_key *key;
	const char **why;
};

static int write_profile(void *ctx, FILE *out)
{
	struct making *making = ctx;
	struct pprof *profile;
	int err = pprof_new(&profile, out, making->key->kind), end_err;

	if (err)
		return err;
	err = making->feed->profile(making->feed->ctx, making->key, profile, making->why);
	end_err = pprof_end(profile);
	return err ? err : end_err;
}

static int write_page(void *ctx, FILE *out)
{
	struct making *making = ctx;

	return making->feed->page(making->feed->ctx, making->key, out, making->why);
}

int metrics_make_profile(int *fd, const struct metrics_feed *feed, const struct profile_key *key,
			 const char **why)
{
	struct making making = { feed, key, why };

	if (key->kind < NR_PPROF_KINDS)
		return channel_make_file(fd, "heaptap-profile", write_profile, &making);
	return channel_make_file(fd, "heaptap-page", write_page, &making);
}

static const u64 verdict_every_ns = 60 * SECOND_NS, verdict_again_ns = 10 * SECOND_NS,
		 verdict_soon_ns = SECOND_NS;

enum {
	VERDICT_SHARE = 100, /* of the time goes to verdicts while the heap grows */
	VERDICT_GROWTH = 8,  /* the heap has grown by such a part of it since the last one */
};

struct trace_verdict {
	pid_t pid;
	struct scan_sums sums;
	double time_s;
};

/* One call. */
struct trace_taking {
	struct trace_metrics *tm;
	struct session *session;
	struct metrics_table *table;
	struct pprof *profile;
	FILE *page;
	bool is_data; /* the data of the page alone */
	size_t nr_processes;
	bool has_verdicts; /* of any process */
	u64 live_bytes;	   /* of all */
};

int trace_metrics_init(struct trace_metrics *tm, const char *address, const char *url, u32 top,
		       bool wants_scan)
{
	int err;

	*tm = (struct trace_metrics){ .top = top, .wants_scan = wants_scan };
	if (!address && !url)
		return 0;
	tm->verdicts = calloc(TRACE_METRICS_VERDICTS, sizeof(*tm->verdicts));
	if (!tm->verdicts)
		return -ENOMEM;
	err = address ? metrics_open(&tm->metrics, address) : 0;
	return !err && url ? push_open(&tm->push, url, "heaptap") : err;
}

void trace_metrics_fini(struct trace_metrics *tm)
{
	metrics_close(tm->metrics);
	push_free(tm->push);
	free(tm->verdicts);
}

static struct trace_verdict *find_verdict(struct trace_metrics *tm, pid_t pid)
{
	for (u32 i = 0; i < tm->nr_verdicts; i++)
		if (tm->verdicts[i].pid == pid)
			return &tm->verdicts[i];
	return NULL;
}

static int trace_metrics_remember(void *ctx, const struct report *r)
{
	struct trace_metrics *tm = ((struct trace_taking *)ctx)->tm;

	for (size_t i = 0; i < r->nr_processes; i++) {
		const struct report_process *p = &r->processes[i];
		struct trace_verdict *v = find_verdict(tm, p->target->pid);

		tm->scan_bytes += heap_live_bytes(p->heap);
		if (!p->leaks || !p->leaks->has_verdict)
			continue;
		if (!v && tm->nr_verdicts < TRACE_METRICS_VERDICTS)
			v = &tm->verdicts[tm->nr_verdicts++];
		if (v)
			*v = (struct trace_verdict){ p->target->pid, p->leaks->result.sums,
						     (double)clock_ns(CLOCK_REALTIME) / 1e9 };
	}
	return 0;
}

/* The table and the profiles have the same verdicts: a report drops them from the session, so they are kept here. */
static int scan_if_older(struct trace_taking *k, u64 age_ns)
{
	u64 now_ns = clock_now_ns(), asked_ns = session_asked_ns(k->session);

	/* Somebody has typed heaptap scan. */
	if (asked_ns > 1 && asked_ns > k->tm->scan_ns) {
		k->tm->scan_ns = asked_ns;
		k->tm->scan_bytes = 0;
		return session_show(k->session, 0, trace_metrics_remember, k);
	}
	if (!k->tm->wants_scan || (k->tm->scan_ns && now_ns - k->tm->scan_ns < age_ns))
		return 0;
	session_scan(k->session, NULL, false);
	k->tm->scan_ns = clock_now_ns();
	k->tm->scan_cost_ns = k->tm->scan_ns - now_ns;
	k->tm->scan_bytes = 0;
	return session_show(k->session, 0, trace_metrics_remember, k);
}

static int trace_metrics_look(void *ctx, const struct report *r)
{
	struct trace_taking *k = ctx;

	for (size_t i = 0; i < r->nr_processes; i++) {
		k->has_verdicts |= r->processes[i].leaks != NULL;
		k->live_bytes += heap_live_bytes(r->processes[i].heap);
	}
	return 0;
}

/* How old may a verdict be that was found before trace_metrics_look()? If the heap grows, it is soon wrong. */
static u64 trace_metrics_age(const struct trace_metrics *tm, bool has_verdicts, u64 live_bytes)
{
	u64 soon_ns = tm->scan_cost_ns * VERDICT_SHARE;

	if (has_verdicts && live_bytes <= tm->scan_bytes + tm->scan_bytes / VERDICT_GROWTH)
		return verdict_every_ns;
	if (!has_verdicts || soon_ns > verdict_again_ns)
		return verdict_again_ns;
	return soon_ns > verdict_soon_ns ? soon_ns : verdict_soon_ns;
}

/* ---- the table ---- */

static void keep_verdict(struct trace_metrics *tm, struct metrics_process *p)
{
	const struct trace_verdict *v = find_verdict(tm, p->pid);

	if (!v)
		return;
	p->has_verdict = true;
	p->leaks = v->sums;
	p->verdict_s = v->time_s;
}

static int take_table(void *ctx, const struct report *r)
{
	struct trace_taking *k = ctx;

	return metrics_take_report(k->table, r, k->tm->top);
}

static int trace_metrics_fill_table(void *ctx, struct metrics_table *t)
{
	struct trace_taking *k = ctx;
	int err;

	k->table = t;
	err = session_show(k->session, 0, trace_metrics_look, k);
	if (!err)
		err = scan_if_older(k, trace_metrics_age(k->tm, k->tm->nr_verdicts, k->live_bytes));
	if (!err)
		err = session_show(k->session, 0, take_table, k);
	for (size_t i = 0; i < t->nr_processes && !err; i++)
		keep_verdict(k->tm, &t->processes[i]);
	return err;
}

/* ---- profiles ---- */

static int trace_metrics_take_profile(void *ctx, const struct report *r)
{
	struct trace_taking *k = ctx;

	k->nr_processes = r->nr_processes;
	return r->nr_processes ? pprof_add(k->profile, r) : 0;
}

/* A profile of leaks has new verdicts where there are none: a report has dropped them. */
static int trace_metrics_scan(struct trace_taking *k, pid_t pid)
{
	int err = session_show(k->session, pid, trace_metrics_look, k);

	return err ? err : scan_if_older(k, k->has_verdicts ? verdict_again_ns : 0);
}

/* Make a report on the process that @key names, all without, and give it to @take. */
static int trace_metrics_show(struct trace_taking *k, const struct profile_key *key,
			      int (*take)(void *ctx, const struct report *r), const char **why)
{
	int err;

	if (key->container[0]) {
		*why = "container: only heaptap system knows containers";
		return -ESRCH;
	}
	err = session_show(k->session, key->pid, take, k);
	if (err || k->nr_processes)
		return err;
	*why = "no such process is traced";
	return -ESRCH;
}

static int trace_metrics_fill_profile(void *ctx, const struct profile_key *key, struct pprof *out,
				      const char **why)
{
	struct trace_taking *k = ctx;
	int err;

	err = key->kind == PPROF_LEAKS ? trace_metrics_scan(k, key->pid) : 0;
	if (err)
		return err;
	if (key->kind == PPROF_LEAKS && !k->tm->wants_scan && !k->has_verdicts) {
		*why = "no leak verdict so far: heaptap scan PID finds one, or start heaptap with --scan";
		return -ENODATA;
	}
	k->profile = out;
	return trace_metrics_show(k, key, trace_metrics_take_profile, why);
}

/* ---- the page ---- */

static int trace_metrics_take_page(void *ctx, const struct report *r)
{
	struct trace_taking *k = ctx;
	u64 age_ns = k->tm->scan_ns ? clock_now_ns() - k->tm->scan_ns : 0;

	k->nr_processes = r->nr_processes;
	return !r->nr_processes ? 0
	       : k->is_data	? report_html_data(k->page, r, age_ns)
				: report_html_live(k->page, r, age_ns);
}

static int trace_metrics_write_page(void *ctx, const struct profile_key *key, FILE *out, const char **why)
{
	struct trace_taking *k = ctx;
	int err;

	*why = NULL;
	k->page = out;
	k->is_data = key->kind == CHANNEL_PAGE_DATA;
	/* Somebody looks: a verdict is at most a minute old, and there is one again if a report has dropped it. */
	err = session_show(k->session, 0, trace_metrics_look, k);
	if (!err)
		err = scan_if_older(k, trace_metrics_age(k->tm, k->has_verdicts, k->live_bytes));
	if (err)
		return err;
	return trace_metrics_show(k, key, trace_metrics_take_page, why);
}

void trace_metrics_round(struct trace_metrics *tm, struct session *s)
{
	struct trace_taking k = { .tm = tm, .session = s };
	const struct metrics_feed feed = { &k, trace_metrics_fill_table, trace_metrics_fill_profile,
					   trace_metrics_write_page };

	metrics_round(tm->metrics, &feed);
	push_round(tm->push, &feed);
}

void trace_metrics_end(struct trace_metrics *tm, struct session *s)
{
	struct trace_taking k = { .tm = tm, .session = s };
	const struct metrics_feed feed = { &k, trace_metrics_fill_table, trace_metrics_fill_profile, NULL };

	push_end(tm->push, &feed);
}
