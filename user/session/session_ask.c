/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of a session to another heaptap: one verdict and reports on one process, or a marker. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/unnamed_file.h"
#include "user/session/ask.h"
#include "user/heap/heap.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/report/format.h"
#include "user/report/report_rows.h"
#include "user/session/session_ask.h"
#include "user/session/session_live.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_span.h"
#include "user/session/session_told.h"

struct answering {
	struct session *session;
	struct process *process;
	const struct ask_request *request;
	struct ask_reply *reply;
	struct report report;
	struct report_process shown;
};

/* Write the report as @wanted says into a file in memory, and add the file to the reply. */
static int session_ask_write_format(struct answering *a, const struct ask_format *wanted)
{
	const struct report_format *format = report_format_named(wanted->name);
	FILE *out;
	int fd, err;

	if (!format)
		return -EINVAL;
	fd = unnamed_file_in_memory("heaptap-report");
	if (fd < 0)
		return fd;
	a->reply->fds[a->reply->nr_fds++] = fd;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	a->report.options.width = wanted->width;
	a->report.options.color = wanted->color;
	err = format->write(out, &a->report);
	if (fclose(out) && !err)
		err = -errno;
	return err;
}

static size_t nr_keys(void)
{
	size_t nr = 0;

	while (report_keys[nr].name)
		nr++;
	return nr;
}

static int session_ask_write_answer(void *arg)
{
	struct answering *a = arg;
	const struct ask_request *r = a->request;
	int err = session_make_symbolizer(a->session);

	if (!err)
		err = session_describe(a->session, a->process, a->report.time_ns, &a->shown);
	a->report.processes = &a->shown;
	a->report.nr_processes = 1;
	a->report.symbolizer = a->session->symbolizer;
	a->report.options = (struct report_options){
		.sort = r->sort < nr_keys() ? &report_keys[r->sort] : NULL,
		.top = r->top,
		.min_size = r->min_size,
		.max_size = r->max_size,
		.verbose = r->verbose,
		.gen_suppressions = r->gen_suppressions,
	};
	for (u32 i = 0; i < r->nr_formats && !err; i++)
		err = session_ask_write_format(a, &r->formats[i]);
	return err;
}

/* Fill in what the exit status of the other heaptap depends on. */
static void session_ask_sum_up(struct answering *a)
{
	const struct fail_rules rules = { .on_definite = a->request->fail_on_definite,
					  .on_errors = a->request->fail_on_errors,
					  .growth = a->request->fail_growth,
					  .bytes = a->request->fail_bytes };
	const struct process *p = a->process;
	struct ask_reply *reply = a->reply;

	reply->has_verdict = p->leaks && p->leaks->has_verdict;
	reply->is_untrusted = p->lost.now.allocs || p->lost.now.frees || heap_lost(p->heap);
	reply->is_found = session_has_findings(a->session, &rules);
}

static bool session_ask_has_all(const struct answering *a)
{
	return a->reply->has_verdict && a->request->leaks == (u32)a->session->options->verdict.leaks;
}

void session_keep_asked(struct session *s)
{
	s->asked_ns = 1;
}

u64 session_asked_ns(const struct session *s)
{
	return s->asked_ns;
}

void session_forget_asked(struct session *s)
{
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (!p->is_asked)
			continue;
		p->is_asked = false;
		leaks_free(p->leaks);
		p->leaks = NULL;
	}
}

static int scan_and_write(struct answering *a, const struct session_stopper *stopper)
{
	struct session *s = a->session;
	struct verdict_options asked = s->options->verdict;
	const struct session_scan_options scan = { .verdict = &asked,
						   .stopper = stopper,
						   .marks = &a->process->asked_marks };
	u64 now;
	int err;

	asked.nr_whys = a->request->nr_whys;
	asked.why_addr = a->request->why_addr;
	asked.leaks = a->request->leaks;
	session_forget_findings(s);
	session_scan_process(s, a->process, &scan);
	now = session_source_ns(s);
	a->report = (struct report){ .backend = session_backend(s),
				     .time_ns = now,
				     .duration_ns = s->start_ns ? now - s->start_ns : 0,
				     .real_ns = session_real_ns(s, now),
				     .nr_strays = s->nr_strays,
				     .cost = session_cost(s),
				     .modules = s->modules };
	err = session_aside(s, session_ask_write_answer, a);
	session_ask_sum_up(a);
	free((void *)a->shown.allocators);
	/* Of some kinds of blocks alone it is no answer for others. */
	if (!IS_AGENT && s->asked_ns && session_ask_has_all(a)) {
		a->process->is_asked = true;
		s->asked_ns = clock_now_ns();
		return err;
	}
	leaks_free(a->process->leaks);
	a->process->leaks = NULL;
	return err;
}

/* Wait for events that are on their way from another machine: the answer to a command comes after them. */
static bool catch_up_over_there(struct session *s)
{
	const struct source_told_ops *told = session_told(s);
	char why[160];
	int err = told->tune ? told->tune(s->source, &s->tuned.now, &s->sink, why, sizeof(why)) : -EOPNOTSUPP;

	if (err)
		debug("mark: what is on its way is not waited for: %s", strerror(-err));
	return !err;
}

/* Earlier events must come before the marker in the recording. */
int session_set_marker(struct session *s, const char *text)
{
	int err = 0;

	if (!recorder_is_open(s->recorder) && !session_has_span(s))
		return -ENOTCONN;
	if (!session_told(s) || !catch_up_over_there(s))
		err = session_poll(s);
	if (!err)
		session_mark(s, session_source_ns(s), text);
	return err;
}

/* ASK_DONE: the request is about this heaptap, or a process that it traces. Else why it is not done. */
static enum ask_status may_answer(struct answering *a)
{
	struct session *s = a->session;
	const struct ask_request *request = a->request;

	if (s->stop_ns)
		return ASK_NOT_TRACED;
	if (*request->marker && request->pid == getpid())
		return ASK_DONE;
	/* PIDs of another machine belong to other processes here. */
	a->process = session_told(s) ? NULL : session_find(s, (u32)request->pid);
	if (!a->process || a->process->has_last_verdict)
		return ASK_NOT_TRACED;
	return *request->marker || s->options->scan != SCAN_NEVER ? ASK_DONE : ASK_WITHOUT_SCAN;
}

static void session_ask_answer(struct session *s, const struct session_stopper *stopper,
			       const struct ask_request *request, struct ask_reply *reply)
{
	struct answering a = { .session = s, .request = request, .reply = reply };

	reply->status = may_answer(&a);
	if (reply->status != ASK_DONE)
		return;
	reply->error =
		*request->marker ? session_set_marker(s, request->marker) : scan_and_write(&a, stopper);
	reply->status = reply->error ? ASK_FAILED : ASK_DONE;
}

void session_answer(struct session *s, const struct session_stopper *stopper, struct ask_server *questions)
{
	struct ask_reply reply = { .status = ASK_NOT_TRACED };
	struct ask_request request;
	int fd, err = ask_accept(questions, &request, &fd);

	if (err) {
		debug("scan: asked by another process: %s", strerror(-err));
		return;
	}
	if (s)
		session_ask_answer(s, stopper, &request, &reply);
	ask_answer(fd, &reply);
}
