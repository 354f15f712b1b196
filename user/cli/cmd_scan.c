/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap scan: one leak verdict, by the heaptap that traces the process already, or by a census. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/cmd_census.h"
#include "user/cli/commands.h"
#include "user/cli/rights.h"
#include "user/lib/log.h"
#include "user/lib/privileges.h"
#include "user/lib/status.h"
#include "user/lib/proc.h"
#include "user/cli/options_rooms.h"
#include "user/report/output.h"
#include "user/session/ask.h"
#include "user/source/listed_words.h"
#include "user/target/target.h"

/* Make the request, without the PID. */
static int make_request(struct ask_request *r, const struct options *o, const struct outputs *outs)
{
	struct output_format formats[ASK_MAX_FORMATS];

	*r = (struct ask_request){
		.sort = o->sort,
		.top = o->top,
		.verbose = o->verbose,
		.gen_suppressions = o->gen_suppressions,
		.nr_whys = o->nr_whys,
		.leaks = o->leaks,
		.fail_on_definite = o->fail_on_definite,
		.fail_on_errors = o->fail_on_errors,
		.fail_growth = o->fail_growth,
		.fail_bytes = o->fail_bytes,
		.why_addr = o->why_addr,
		.min_size = o->min_size,
		.max_size = o->max_size,
	};
	r->nr_formats = outputs_describe(outs, formats, ASK_MAX_FORMATS);
	if (r->nr_formats > ASK_MAX_FORMATS) {
		error("scan: --output: at most %d", ASK_MAX_FORMATS);
		return -EINVAL;
	}
	for (u32 i = 0; i < r->nr_formats; i++) {
		r->formats[i] = (struct ask_format){ .width = formats[i].width, .color = formats[i].color };
		snprintf(r->formats[i].name, sizeof(r->formats[i].name), "%s", formats[i].name);
	}
	return 0;
}

/* Why no process was scanned. */
struct refusal {
	bool is_other;	   /* a heaptap of another version is running */
	bool without_scan; /* a heaptap traces one, with --no-scan */
};

/* A trace could not be asked. Only the heaptap that has the process can stop it, so there is no census either. */
static int cmd_scan_refuse(pid_t pid, const struct refusal *why)
{
	struct proc_stat stat = { .comm = "?" };

	if (proc_read_stat(&stat, pid))
		debug("scan: PID %d has ended", (int)pid);
	if (why->without_scan) {
		error("scan: PID %d (%s): the heaptap that traces it was started with --no-scan; end it, and start "
		      "it without this option",
		      (int)pid, stat.comm);
		return STATUS_IMPOSSIBLE;
	}
	if (why->is_other)
		info("scan: a heaptap of another version is running; only heaptap of that version can ask it");
	error("scan: PID %d (%s): no heaptap of yours traces it, so nothing is known of its blocks; "
	      "type 'heaptap attach %d', let it run for a while, then scan again",
	      (int)pid, stat.comm, (int)pid);
	return STATUS_IMPOSSIBLE;
}

static int cmd_scan_judged_status(const struct options *o, const struct ask_reply *reply)
{
	if (!reply->has_verdict)
		return STATUS_NO_VERDICT;
	if (reply->is_found)
		return o->error_exitcode ? (int)o->error_exitcode : STATUS_FINDINGS;
	return reply->is_untrusted ? STATUS_UNTRUSTED : STATUS_DONE;
}

/* *@is_asked: a heaptap could be asked for a verdict; if none could, @why says why, and the caller logs it. */
static int scan_one(const struct options *o, struct outputs *outs, struct ask_request *request,
		    bool *is_asked, struct refusal *why)
{
	struct ask_reply reply;
	pid_t pid = request->pid;
	bool is_other;
	int status, err = ask_send(request, &reply, &is_other);

	why->is_other |= is_other;
	why->without_scan |= err == -EOPNOTSUPP;
	/* A stopped heaptap was named. Whether it traces the process or not: a census needs no answer of it. */
	*is_asked = err != -ESRCH && err != -EOPNOTSUPP && err != -ETIME;
	if (!*is_asked)
		return STATUS_IMPOSSIBLE;
	if (err || reply.status == ASK_FAILED) {
		error("scan: PID %d: the heaptap that traces it: %s", (int)pid,
		      strerror(err ? -err : -reply.error));
		return STATUS_UNTRUSTED;
	}
	err = outputs_copy(outs, pid, reply.fds, reply.nr_fds);
	for (u32 i = 0; i < reply.nr_fds; i++)
		close(reply.fds[i]);
	status = cmd_scan_judged_status(o, &reply);
	return err ? STATUS_UNTRUSTED : status;
}

struct scanned {
	pid_t *pids; /* owned */
	size_t nr;
	struct listed_words listed; /* for a census */
};

/* A census of each process. */
static int count_all(const struct options *o, struct outputs *outs, const struct scanned *of)
{
	int status = STATUS_DONE;

	for (size_t i = 0; i < of->nr; i++) {
		struct proc_stat stat;
		int one = target_check(of->pids[i], &stat)
				  ? STATUS_NO_TARGET
				  : census_process(o, outs, of->pids[i], &of->listed);

		status = one > status ? one : status;
	}
	return status;
}

/* Scan all traced processes of a name. If none is traced, take a census of each. */
static int scan_all(const struct options *o, struct outputs *outs, struct ask_request *request,
		    const struct scanned *of)
{
	struct refusal why = { 0 };
	bool is_any = false;
	pid_t named = of->pids[0];
	int status = STATUS_DONE;

	for (size_t i = 0; i < of->nr; i++) {
		bool is_asked, was_refused = why.without_scan;
		int one;

		request->pid = of->pids[i];
		one = scan_one(o, outs, request, &is_asked, &why);
		if (why.without_scan && !was_refused)
			named = of->pids[i];
		if (!is_asked)
			continue;
		is_any = true;
		status = one > status ? one : status;
	}
	if (is_any)
		return status;
	if (IS_AGENT || why.without_scan)
		return cmd_scan_refuse(named, &why);
	if (why.is_other)
		info("scan: a heaptap of another version is running; only heaptap of that version can ask it");
	return count_all(o, outs, of);
}

/* A filter of ours would take away the right to suspend that of a process. */
static void drop_privileges(const struct scanned *of)
{
	struct proc_status status;
	bool has_filter = false;

	for (size_t i = 0; i < of->nr && !has_filter; i++)
		has_filter = !proc_read_status(&status, of->pids[i]) && status.seccomp;
	privileges_drop(has_filter ? PRIVILEGES_SUSPENDING : PRIVILEGES_SCANNING, 0);
}

int cmd_scan(const struct options *o)
{
	struct scanned of = { .pids = NULL };
	struct outputs *outs = NULL;
	struct ask_request request;
	int status = STATUS_USAGE, core = -1;
	const struct output_options oo = options_output(o);
	int err = outputs_new(&outs, &oo, stdout);

	if (err)
		return outputs_status(err);
	if (!IS_AGENT && census_open_core(o->targets.items[0], &core)) {
		rights_keep_files(o, outs);
		status = census_core(o, outs, o->targets.items[0], core);
	} else if (!make_request(&request, o, outs)) {
		err = target_find(o->targets.items[0], &of.pids, &of.nr);
		if (!err) {
			if (!IS_AGENT)
				census_list_words(&of.listed, of.pids, of.nr, "scan");
			drop_privileges(&of);
		}
		status = err					  ? STATUS_NO_TARGET
			 : !IS_AGENT && (o->census || o->callers) ? count_all(o, outs, &of)
								  : scan_all(o, outs, &request, &of);
		free(of.listed.items);
		free(of.pids);
	}
	if (core >= 0)
		close(core);
	outputs_free(outs);
	return status;
}
