/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open a connection from options, keep it going, and end it. */
#include "user/remote/connection.h"

#include <errno.h>
#include <string.h>

#include "user/remote/discover.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/progress.h"
#include "user/lib/status.h"
#include "user/session/busy_signals.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/session/session_ending.h"

enum {
	POLL_MS = 20,
	END_MS = 30000,
	ANSWER_MS = 800,
	FAR_ANSWER_MS = 4500,
	SLOW_MS = 700,
	BEHIND_MS = 300, /* the same, if the latest event is from LAG_MS ago or before */
	LAG_MS = 1000,
	CATCH_UP_MS = 3000, /* where nobody waits */
	NOTHING_MS = 1000,  /* somebody waits, and nothing came */
	QUEUE_BYTES = 4 << 20
};

bool connection_is_address(const char *text)
{
	return !strncmp(text, "ssh://", 6) || !strncmp(text, "unix:", 5) || !strncmp(text, "tcp://", 6);
}

static int open_source(void *ctx, struct source **out, struct module_table *modules, struct alloc_table *fns)
{
	struct connection *c = ctx;
	int err = source_remote_open(out, &c->remote, modules, fns);

	c->source = err ? NULL : *out;
	return err;
}

static const char *command_of(const struct connection *c)
{
	return c->options.session->command;
}

static int connection_parse(struct connection *c, const char *text)
{
	const char *why;

	if (!net_addr_parse(&c->remote.link.addr, text, &why))
		return 0;
	error("%s: %s: %s", command_of(c), text, why);
	return -EINVAL;
}

static int check_ssh(struct connection *c, const char *text)
{
	const struct connection_options *o = &c->options;
	struct remote_link_options *l = &c->remote.link;

	if (l->addr.kind != NET_SSH) {
		if (!o->program)
			return 0;
		error("%s: %s: a program can be started over ssh:// only", command_of(c), text);
		return -EINVAL;
	}
	if (!l->addr.path[0] == !o->program) {
		error("%s: %s: needs a process behind the host, or -- and a program", command_of(c), text);
		return -EINVAL;
	}
	l->program = o->program;
	return 0;
}

/* TCP asks for a token, even on loopback. Beyond loopback the user must have allowed it. */
static int connection_check_tcp(struct connection *c, const char *text)
{
	const struct connection_options *o = &c->options;
	struct remote_link_options *l = &c->remote.link;
	const char *why;

	if (net_addr_check_tcp(&l->addr, o->is_insecure_fine, &why)) {
		error("%s: %s: %s", command_of(c), text, why);
		return -EPERM;
	}
	if (o->token_file && wire_token_read(c->token, o->token_file))
		return -EINVAL;
	l->token = o->token_file ? c->token : NULL;
	if (l->addr.kind == NET_TCP && !l->token) {
		error("%s: %s: needs --token-file FILE", command_of(c), text);
		return -EINVAL;
	}
	return 0;
}

static int find_address(struct connection *c)
{
	const struct connection_options *o = &c->options;
	struct remote_link_options *l = &c->remote.link;
	const char *text = o->listen ? o->listen : o->address;

	if (!text == !o->discover || (o->listen && o->address)) {
		error("%s: needs one address, --listen ADDRESS or --discover; see 'heaptap help %s'",
		      command_of(c), command_of(c));
		return -EINVAL;
	}
	if (o->session->source.sample_bytes) {
		error("%s: --sample: the other side traces: type heaptap serve --sample there",
		      command_of(c));
		return -EINVAL;
	}
	if (o->discover && !o->is_insecure_fine) {
		error("%s: --discover: finds servers of TCP, which does not encrypt: add --insecure-tcp",
		      command_of(c));
		return -EINVAL;
	}
	if (o->discover ? discover_find(&l->addr) : connection_parse(c, text) || check_ssh(c, text))
		return -EINVAL;
	l->is_listening = o->listen;
	l->is_announced = o->announce;
	if (o->announce && (!o->listen || l->addr.kind != NET_TCP)) {
		error("%s: --announce: needs --listen tcp:// and an IPv4 address", command_of(c));
		return -EINVAL;
	}
	if (l->is_listening && l->addr.kind == NET_SSH) {
		error("%s: %s: cannot listen at ssh", command_of(c), text);
		return -EINVAL;
	}
	return connection_check_tcp(c, text ? text : "--discover") ? -EINVAL : 0;
}

int connection_init(struct connection *c, const struct connection_options *o)
{
	*c = (struct connection){ .options = *o,
				  .remote = { .tuning = o->session->tuning,
					      .want_mmap = o->want_mmap,
					      .no_cpp = o->no_cpp,
					      .max_followed = o->max_followed,
					      .wants_exit_scan = o->session->scan != SCAN_NEVER,
					      .needs_all = session_needs_all(o->session),
					      .link = { .queue_bytes = QUEUE_BYTES } } };
	if (find_address(c))
		return -EINVAL;
	if (!o->session->names.sysroot && net_addr_is_local(&c->remote.link.addr))
		o->session->names.sysroot = "/";
	return 0;
}

int connection_open(struct connection *c, struct session **out, struct outputs *outs)
{
	int err = session_new_told(out, c->options.session, outs, &source_remote, open_source, c);

	/* The source logs all others. */
	if (err == -ENOMEM)
		error("%s: %s", command_of(c), strerror(-err));
	return err;
}

_Static_assert((int)WIRE_HEADER_LEN == (int)BUSY_SIGNALS_FAREWELL, "a frame without a body says farewell");

static void connection_guard(const struct connection *c, struct control *control)
{
	u8 bytes[WIRE_HEADER_LEN];
	int fd = source_remote_farewell(c->source, bytes);

	if (fd >= 0)
		control_guard_connection(control, fd, bytes);
}

void connection_round(struct connection *c, struct session *s, struct control *control)
{
	bool executes;
	pid_t pid = source_remote_exiting(c->source, &executes);

	connection_guard(c, control);
	if (source_remote_is_started(c->source))
		control_start_clocks(control);
	if (!pid)
		return;
	if (executes)
		session_scan_before_exec(s, pid, false, NULL);
	else
		session_scan_exiting(s, pid);
	source_remote_let_exit(c->source);
}

/* Answers of the other side to a ping. */
enum answer {
	ANSWER_THERE,
	ANSWER_NONE, /* nothing comes at all */
	ANSWER_SLOW, /* it is behind much that is on its way over a slow link */
};

static bool is_far(const struct connection *c)
{
	return !net_addr_is_local(&c->remote.link.addr);
}

/* How long ago the latest event was that has come. */
static u64 lag_ms(struct connection *c)
{
	return source_remote_lag_ns(c->source, 0) / 1000000;
}

/* One that is only busy with much to send may take longer, but much comes then. Who waits does not wait for nothing. */
static bool is_slow(struct connection *c, bool is_hurried, u64 since_ms, u64 bytes)
{
	u64 ms = clock_now_ms() - since_ms;
	u64 limit_ms = !is_hurried ? CATCH_UP_MS : lag_ms(c) >= LAG_MS ? BEHIND_MS : SLOW_MS;

	bytes = source_remote_bytes(c->source) - bytes;
	return is_far(c) && ms >= limit_ms && (bytes || (is_hurried && ms >= NOTHING_MS)) &&
	       bytes / ms < SOURCE_REMOTE_SLOW;
}

/*
 * Does the other side answer in time? After an interruption of some seconds, TCP waits as long again before it sends
 * once more.
 */
static enum answer connection_ask(struct connection *c, struct session *s, bool is_hurried)
{
	u64 limit_ms = is_far(c) ? FAR_ANSWER_MS : ANSWER_MS, silent_ms;
	u64 since_ms = clock_now_ms(), bytes = source_remote_bytes(c->source);

	source_remote_call(c->source);
	while (source_remote_is_silent(c->source, &silent_ms)) {
		if (silent_ms >= limit_ms || (is_hurried && is_far(c) && silent_ms >= NOTHING_MS))
			return ANSWER_NONE;
		if (is_slow(c, is_hurried, since_ms, bytes) || control_is_stop_pending())
			return ANSWER_SLOW;
		if (session_poll(s))
			break;
		remote_wait(session_wait_fd(s), POLL_MS);
	}
	return ANSWER_THERE;
}

/* Bytes of all that is on its way, if those that are left are as many for the time of their events; 0 = not known. */
static u64 estimate_rest(struct connection *c, u64 done, u64 begin_ms, u64 lag)
{
	u64 left = source_remote_lag_ns(c->source, begin_ms * 1000000) / 1000000;

	return left < lag ? done * lag / (lag - left) : 0;
}

/*
 * Take what comes until the other side has stopped, or paused, @is_pause. False: nothing came for END_MS, or it took so
 * long and somebody waits, @is_hurried; or a signal came.
 */
static bool connection_take_rest(struct connection *c, struct session *s, bool is_hurried, bool is_pause)
{
	u64 bytes = source_remote_bytes(c->source), first = bytes, heard_ms = clock_now_ms();
	u64 begin_ms = heard_ms, lag = lag_ms(c);

	while (!(is_pause && source_remote_has_paused(c->source)) && !session_poll(s)) {
		if (source_remote_bytes(c->source) != bytes && !is_hurried)
			heard_ms = clock_now_ms();
		bytes = source_remote_bytes(c->source);
		progress_bytes(bytes - first, estimate_rest(c, bytes - first, begin_ms, lag));
		if (control_is_stop_pending() || clock_now_ms() - heard_ms > END_MS ||
		    (is_hurried && is_slow(c, true, begin_ms, first)))
			return false;
		source_remote_let_exit(c->source);
		remote_wait(session_wait_fd(s), POLL_MS);
	}
	return true;
}

/* Leave out what is on its way, and have it counted over there, if that is possible in time after @since_ms. */
static void connection_cut(struct connection *c, struct session *s, u64 since_ms, const char *why)
{
	u64 end_ms = since_ms + SOURCE_REMOTE_HURRY_MS;
	bool is_over = !source_remote_cut(c->source), is_asked = false;

	info("%s: %s: what is still on its way is left out", command_of(c), why);
	while (!is_over && clock_now_ms() < end_ms) {
		is_over = session_poll(s);
		if (!is_asked && source_remote_has_asked(c->source)) {
			/* The probes go out again at once. */
			source_remote_stop(c->source);
			is_asked = true;
		}
		remote_wait(session_wait_fd(s), POLL_MS);
	}
	source_remote_leave(c->source, "what was still on its way is not counted");
}

static void kill_over_there(struct connection *c, struct session *s)
{
	if (!c->options.want_kill || !session_kill(s))
		return;
	error("%s: --kill: the other side does not allow to end its program (serve --allow-kill)",
	      command_of(c));
	c->is_kill_refused = true;
}

/* Take the last verdict and the last events. False: a signal breaks it off, or the other side does not stop. */
static bool connection_finish(struct connection *c, struct session *s, bool is_hurried)
{
	bool is_done = false;

	progress_begin(command_of(c));
	progress_phase("what is on its way comes; Ctrl-C leaves it out");
	if (c->options.session->scan != SCAN_NEVER)
		session_scan(s, NULL, true);
	if (!control_is_stop_pending() && !source_remote_is_late(c->source)) {
		kill_over_there(c, s);
		source_remote_stop(c->source);
		is_done = connection_take_rest(c, s, is_hurried, false);
	}
	progress_end();
	return is_done;
}

/*
 * Over a slow link a verdict would come late. The trace ends over there, as a pause, so that the server can still count
 * what Ctrl-C leaves out.
 */
static bool connection_catch_up(struct connection *c, struct session *s)
{
	bool is_done;

	info("%s: the link is slow, so there is no verdict; what is on its way comes, Ctrl-C leaves it "
	     "out",
	     command_of(c));
	progress_begin(command_of(c));
	progress_phase("what is on its way comes; Ctrl-C leaves it out");
	is_done = source_remote_pause(c->source) && connection_take_rest(c, s, false, true);
	if (is_done) {
		kill_over_there(c, s);
		source_remote_stop(c->source);
		is_done = connection_take_rest(c, s, false, false);
	}
	progress_end();
	return is_done;
}

void connection_stop(struct connection *c, struct session *s, bool is_hurried)
{
	bool is_in_time = is_hurried && is_far(c), is_done = false;
	u64 signal_ms = clock_now_ms();
	enum answer answer = connection_ask(c, s, is_hurried);

	if (is_in_time)
		source_remote_hurry(c->source, signal_ms);
	if (answer == ANSWER_THERE || (answer == ANSWER_NONE && !is_hurried))
		is_done = connection_finish(c, s, is_hurried);
	else if (answer == ANSWER_SLOW && !is_hurried && !control_is_stop_pending())
		is_done = connection_catch_up(c, s);
	if (is_done)
		return;
	/* The server may be stopped, or the network may be cut. */
	if (answer == ANSWER_NONE && is_hurried && !is_in_time)
		source_remote_leave(c->source,
				    "the other side does not answer; what is known until now is reported");
	else if (is_in_time || answer == ANSWER_SLOW || control_is_stop_pending())
		connection_cut(c, s, is_in_time && !control_is_stop_pending() ? signal_ms : clock_now_ms(),
			       answer == ANSWER_NONE ? "the other side does not answer" : "the link is slow");
	else
		source_remote_leave(c->source,
				    "the other side does not stop; what is known until now is reported");
}

int connection_status(const struct connection *c)
{
	const char *why = source_remote_why(c->source);

	if (*why && source_remote_is_complete(c->source))
		info("%s: %s", command_of(c), why);
	else if (*why)
		error("%s: %s", command_of(c), why);
	if (!source_remote_is_started(c->source))
		return *why ? STATUS_NO_TARGET : STATUS_DONE;
	if (!source_remote_is_complete(c->source))
		return STATUS_UNTRUSTED;
	return c->is_kill_refused ? STATUS_IMPOSSIBLE : STATUS_DONE;
}
