/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line of JSON about the processes of the watch. */
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/json.h"
#include "user/system/answer.h"
#include "user/system/rows.h"

enum { ON_ONE_LINE = 0 };

static void rows_json_write_growth(struct json *j, const struct system_state *s, const struct watched *p)
{
	static const char *const states[] = {
		[WATCHED_QUIET] = "none", [WATCHED_GROWS] = "grows", [WATCHED_GREW] = "grew"
	};

	json_object_begin(j, "growth");
	json_string(j, "state", states[p->state]);
	json_s64(j, "bytes_per_hour", (s64)(p->line.bytes_per_s * 3600));
	json_s64(j, "error_per_hour", (s64)(2 * p->line.error_per_s * 3600));
	json_u64(j, "window_ns", p->line.time_ns);
	json_u64(j, "since_ns", watched_growing_ns(&s->watch, p));
	json_object_end(j);
}

static void write_limit(struct json *j, const struct watched *p)
{
	u64 left_ns = p->state == WATCHED_GROWS ? limit_time_ns(&p->limit, p->line.bytes_per_s) : 0;

	if (p->limit.kind == LIMIT_NONE) {
		json_null(j, "limit");
		return;
	}
	json_object_begin(j, "limit");
	json_string(j, "kind", limit_name(p->limit.kind));
	json_u64(j, "max_bytes", p->limit.max);
	json_u64(j, "left_bytes", p->limit.left);
	json_known(j, "reached_in_ns", left_ns);
	json_object_end(j);
}

/* "" becomes null. */
static void rows_json_write_text(struct json *j, const char *key, const char *text)
{
	json_string(j, key, text && *text ? text : NULL);
}

static void write_container(struct json *j, const struct container *c)
{
	rows_json_write_text(j, "cgroup", c->cgroup);
	if (!c->id[0] && !c->pod[0]) {
		json_null(j, "container");
		return;
	}
	json_object_begin(j, "container");
	rows_json_write_text(j, "runtime", c->runtime);
	rows_json_write_text(j, "id", c->id);
	rows_json_write_text(j, "name", c->name);
	rows_json_write_text(j, "pod", c->pod);
	json_object_end(j);
}

/* The answer of tracing. */
static void rows_json_write_answer(struct json *j, const char *key, const struct zoom_answer *f)
{
	if (!f) {
		json_null(j, key);
		return;
	}
	json_object_begin(j, key);
	json_u64(j, "pid", (u64)f->pid);
	json_string(j, "comm", f->comm);
	json_bool(j, "traced", !f->end_ns);
	json_u64(j, "begin_ns", f->begin_ns);
	json_string(j, "finding", answer_kind_name(f->kind));
	rows_json_write_text(j, "function", f->where);
	json_u64(j, "bytes", f->bytes);
	json_u64(j, "blocks", f->blocks);
	if (f->distance)
		json_bool(j, "estimated", true);
	json_u64(j, "verdicts", f->nr_verdicts);
	json_u64(j, "cost_permyriad", f->permyriad);
	json_u64(j, "windows", f->nr_windows);
	json_known(j, "scaled_bytes", answer_scaled(f));
	json_u64(j, "elsewhere_bytes", answer_elsewhere(f));
	rows_json_write_text(j, "why", f->why);
	json_object_end(j);
}

static void rows_json_write_process(struct json *j, const struct system_state *s, const struct watched *p)
{
	json_object_begin(j, NULL);
	json_u64(j, "pid", (u64)p->pid);
	if (p->container.pid_inside)
		json_u64(j, "pid_inside", (u64)p->container.pid_inside);
	json_string(j, "comm", p->comm);
	json_u64(j, "resident_bytes", p->resident);
	json_u64(j, "anonymous_bytes", p->anonymous);
	json_u64(j, "swapped_bytes", p->swapped);
	rows_json_write_growth(j, s, p);
	write_limit(j, p);
	write_container(j, &p->container);
	rows_json_write_answer(j, "zoom", zooms_answer(&s->zooms, p->pid, p->start_time));
	json_object_end(j);
}

int rows_write_json(FILE *out, const struct system_state *s, u32 top)
{
	auto_free const struct watched **list = NULL;
	const struct watch *w = &s->watch;
	struct json j;
	int err = watch_rank(w, &list);

	if (err)
		return err;
	json_init(&j, out, ON_ONE_LINE);
	json_object_begin(&j, NULL);
	json_string(&j, "schema", "heaptap-system/1");
	json_u64(&j, "time_ns", w->now_ns);
	json_u64(&j, "real_ns", clock_ns(CLOCK_REALTIME));
	json_u64(&j, "watched", w->nr);
	json_u64(&j, "evicted", w->nr_evicted);
	json_u64(&j, "unseen", w->nr_unseen);
	json_u64(&j, "resident_bytes", w->resident);
	json_u64(&j, "cpu_permyriad", s->cpu_permyriad);
	json_u64(&j, "targets_permyriad", s->zooms.permyriad);
	json_array_begin(&j, "processes");
	for (size_t i = 0; i < w->nr && (!top || i < top); i++)
		rows_json_write_process(&j, s, list[i]);
	json_array_end(&j);
	json_array_begin(&j, "findings");
	for (u32 i = 0; i < s->zooms.nr_answers; i++)
		rows_json_write_answer(&j, NULL, &s->zooms.answers[i]);
	json_array_end(&j);
	json_object_end(&j);
	return 0;
}
