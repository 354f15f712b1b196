/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap connect: on the host; books, names and reports of what a heaptap serve elsewhere traces. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/commands.h"
#include "user/control.h"
#include "user/discover.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/options.h"
#include "user/output.h"
#include "user/recorder.h"
#include "user/session.h"
#include "user/source_remote.h"
#include "user/wire_auth.h"

enum { POLL_MS = 20, END_MS = 30000, QUEUE_BYTES = 4 << 20 };

struct connect {
	const struct options *options;
	struct source_remote_options remote;
	u8 token[WIRE_TOKEN_LEN];
	struct source *source; /* borrowed from the session */
	bool is_told;	       /* that tracing has begun */
};

static int open_source(void *ctx, struct source **out, struct module_table *modules)
{
	struct connect *c = ctx;
	int err = source_remote_open(out, &c->remote, modules);

	c->source = err ? NULL : *out;
	return err;
}

static int parse(struct connect *c, const char *text)
{
	const char *why;

	if (!net_addr_parse(&c->remote.link.addr, text, &why))
		return 0;
	error("connect: %s: %s", text, why);
	return -EINVAL;
}

static int check_ssh(struct connect *c, const char *text)
{
	const struct options *o = c->options;
	struct remote_link_options *l = &c->remote.link;

	if (l->addr.kind != NET_SSH) {
		if (o->nr_args <= 1)
			return 0;
		error("connect: %s: a program can be started over ssh:// only", text);
		return -EINVAL;
	}
	if (!l->addr.path[0] == (o->nr_args <= 1)) {
		error("connect: %s: needs a process behind the host, or -- and a program", text);
		return -EINVAL;
	}
	l->program = o->nr_args > 1 ? o->args + 1 : NULL;
	return 0;
}

static int find_address(struct connect *c)
{
	const struct options *o = c->options;
	struct remote_link_options *l = &c->remote.link;
	const char *text = o->listen ? o->listen : o->nr_args ? o->args[0] : NULL;

	if (!text == !o->discover || (o->listen && o->nr_args)) {
		error("connect: needs one address, --listen ADDRESS or --discover; see 'heaptap help "
		      "connect'");
		return -EINVAL;
	}
	if (o->thin && !o->min_size && !o->max_size) {
		error("connect: --thin needs --min-size or --max-size");
		return -EINVAL;
	}
	if (o->discover ? discover_find(&l->addr) : parse(c, text) || check_ssh(c, text))
		return -EINVAL;
	l->is_listening = o->listen;
	if (l->is_listening && l->addr.kind == NET_SSH) {
		error("connect: %s: cannot listen at ssh", text);
		return -EINVAL;
	}
	if (o->token_file && wire_token_read(c->token, o->token_file))
		return -EINVAL;
	l->token = o->token_file ? c->token : NULL;
	if (l->addr.kind == NET_TCP && !l->token) {
		error("connect: %s: needs --token-file FILE", text ? text : "--discover");
		return -EINVAL;
	}
	return 0;
}

static void look(struct connect *c, struct control *control)
{
	if (c->is_told || !source_remote_is_started(c->source))
		return;
	c->is_told = true;
	control_restart(control, c->options);
	if (!c->options->quiet)
		info("connected; Ctrl-C stops tracing and reports");
}

static void report(const struct connect *c, struct session *s)
{
	if (!c->is_told || session_poll(s))
		return;
	if (c->options->scan == SCAN_ALWAYS)
		session_scan(s, NULL, false);
	if (session_report(s))
		debug("connect: report not written");
}

/* A program over there waits at its end for its verdict. */
static void scan_exiting(struct connect *c, struct session *s)
{
	pid_t pid = source_remote_exiting(c->source);

	if (!pid)
		return;
	session_scan_exiting(s, pid);
	source_remote_let_exit(c->source);
}

/* Until something ends it. True if that is the other side. */
static bool trace(struct connect *c, struct session *s, struct control *control)
{
	int sig;

	for (;;) {
		switch (control_wait(control, session_wait_fd(s), POLL_MS, &sig)) {
		case CONTROL_STOP:
			/* The end of a time that begins only when the other side is there. */
			if (!sig && !c->is_told)
				break;
			return false;
		case CONTROL_REPORT:
			report(c, s);
			break;
		default:
			break;
		}
		if (session_poll(s))
			return true;
		look(c, control);
		scan_exiting(c, s);
	}
}

/* Probes out over there, and all that was seen until then. */
static void stop(struct connect *c, struct session *s)
{
	u64 end_ms = remote_now_ms() + END_MS;

	if (c->options->scan != SCAN_NEVER)
		session_scan(s, NULL, true);
	if (c->options->want_kill && session_kill(s))
		debug("connect: kill not sent");
	source_remote_stop(c->source);
	while (!session_poll(s)) {
		if (remote_now_ms() > end_ms) {
			warn("connect: the other side does not stop");
			break;
		}
		if (source_remote_exiting(c->source))
			source_remote_let_exit(c->source);
		remote_wait(session_wait_fd(s), POLL_MS);
	}
}

static int judged_status(const struct options *o, struct session *s)
{
	int found = session_findings(s);

	if (found < 0)
		return STATUS_UNTRUSTED;
	if (found)
		return o->error_exitcode ? (int)o->error_exitcode : STATUS_FINDINGS;
	return session_status(s);
}

static int connect_and_trace(struct connect *c, struct session *s, struct control *control)
{
	bool is_over = trace(c, s, control);
	const char *why;
	int status;

	control_finish(control);
	if (!is_over)
		stop(c, s);
	session_stop(s);
	why = source_remote_why(c->source);
	if (*why && source_remote_is_complete(c->source))
		info("connect: %s", why);
	else if (*why)
		error("connect: %s", why);
	if (!source_remote_is_started(c->source))
		return *why ? STATUS_NO_TARGET : STATUS_DONE;
	if (session_report(s))
		return STATUS_UNTRUSTED;
	status = judged_status(c->options, s);
	return status == STATUS_DONE && !source_remote_is_complete(c->source) ? STATUS_UNTRUSTED : status;
}

int cmd_connect(const struct options *o)
{
	struct connect c = { .options = o,
			     .remote = { .tuning = session_tuning_of(o),
					 .want_mmap = o->want_mmap,
					 .no_cpp = o->no_cpp,
					 .wants_exit_scan = o->scan != SCAN_NEVER,
					 .link = { .queue_bytes = QUEUE_BYTES } } };
	struct session *s = NULL;
	struct control *control = NULL;
	struct outputs *outs = NULL;
	int status = STATUS_IMPOSSIBLE, err;

	if (find_address(&c) || outputs_new(&outs, o, stdout))
		return STATUS_USAGE;
	if (recorder_check(o)) {
		outputs_free(outs);
		return STATUS_USAGE;
	}
	err = control_new(&control, o, false);
	if (err)
		error("connect: signals: %s", strerror(-err));
	else if (!session_new_told(&s, o, outs, &source_remote, open_source, &c))
		status = connect_and_trace(&c, s, control);
	else
		status = STATUS_NO_TARGET;
	session_free(s);
	control_free(control);
	outputs_free(outs);
	return status;
}
