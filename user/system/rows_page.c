/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of the watch as a page for a browser. */
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/flush.h"
#include "user/lib/json.h"
#include "user/report/html_page.h"
#include "user/system/answer.h"
#include "user/system/rows.h"

struct rows_page {
	const struct system_state *state;
	u32 top;
};

static void rows_page_write_process(struct json *j, const struct system_state *s, const struct watched *p)
{
	const struct zoom_answer *answer = zooms_answer(&s->zooms, p->pid, p->start_time);
	struct row_text text;

	row_describe(s, p, &text);
	json_object_begin(j, NULL);
	json_u64(j, "pid", (u64)p->pid);
	json_string(j, "comm", p->comm);
	json_bool(j, "traced", answer && !answer->end_ns);
	json_bool(j, "leaks", answer && answer->kind == ANSWER_LEAKS);
	json_string(j, "needs", text.needs.text);
	json_string(j, "resident", text.resident.text);
	json_string(j, "rate", text.rate);
	json_string(j, "error", text.error);
	json_string(j, "since", text.since.text);
	json_string(j, "limit", text.limit);
	json_string(j, "container", text.container);
	json_string(j, "answer", text.zoom);
	json_object_end(j);
}

static int rows_page_write_data(FILE *out, const void *ctx)
{
	auto_free const struct watched **list = NULL;
	const struct rows_page *page = ctx;
	const struct watch *w = &page->state->watch;
	char head[256];
	struct json j;
	int err = watch_rank(w, &list);

	if (err)
		return err;
	rows_head(page->state, head, sizeof(head));
	json_init(&j, out, 0);
	j.in_page = true;
	json_object_begin(&j, NULL);
	json_bool(&j, "system", true);
	json_bool(&j, "live", true);
	json_u64(&j, "time_ns", w->now_ns);
	json_u64(&j, "real_ns", clock_ns(CLOCK_REALTIME));
	json_string(&j, "version", HEAPTAP_VERSION);
	json_string(&j, "head", head);
	json_u64(&j, "watched", w->nr);
	json_array_begin(&j, "processes");
	for (size_t i = 0; i < w->nr && (!page->top || i < page->top); i++)
		rows_page_write_process(&j, page->state, list[i]);
	json_array_end(&j);
	json_object_end(&j);
	return 0;
}

int rows_write_page(FILE *out, const struct system_state *s, u32 top, bool is_data)
{
	const struct rows_page page = { s, top };
	int err;

	if (!is_data)
		return html_page_live(out, rows_page_write_data, &page);
	err = rows_page_write_data(out, &page);
	return err ? err : flush_stream(out);
}
