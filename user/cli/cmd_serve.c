/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap serve: on the target; events out to a heaptap connect elsewhere, commands in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/commands.h"
#include "user/session/control.h"
#include "user/remote/discover.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/remote/net_socket.h"
#include "user/cli/options_rooms.h"
#include "user/cli/run_as.h"
#include "user/cli/tracing.h"
#include "user/lib/path.h"
#include "user/remote/serve.h"
#include "user/remote/wire_auth.h"
#include "user/lib/privileges.h"
#include "user/target/target.h"

enum { POLL_MS = 20, IDLE_MS = 1000, FINISH_MS = 5000, QUEUE_BYTES = 16 << 20 };

/* Where the client comes from. */
struct listen_place {
	struct serve_link_options link;
	struct net_addr addr;
	struct discover *discover; /* owned; NULL = not announced */
	u8 token[WIRE_TOKEN_LEN];
};

/* The program must not read or write on the descriptors of the connection. */
static int take_stdio(struct listen_place *p)
{
	auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	p->link.in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	p->link.out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (null < 0 || p->link.in_fd < 0 || p->link.out_fd < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	return 0;
}

static int parse_addr(struct net_addr *a, const char *text)
{
	const char *why;

	if (net_addr_parse(a, text, &why)) {
		error("serve: %s: %s", text, why);
		return -EINVAL;
	}
	if (IS_AGENT || a->kind != NET_SSH)
		return 0;
	error("serve: %s: serve cannot connect by ssh; run 'heaptap connect %s' on the host", text, text);
	return -EINVAL;
}

/* TCP asks for a token: other users of this machine can connect too. Beyond loopback the user must have allowed it. */
static int cmd_serve_check_tcp(struct listen_place *p, const struct options *o)
{
	char text[NET_PATH_MAX];
	const char *why;

	net_addr_text(&p->addr, text, sizeof(text));
	if (o->discover)
		strcpy(text, "--discover");
	if (net_addr_check_tcp(&p->addr, o->insecure_tcp, &why)) {
		error("serve: %s: %s", text, why);
		return -EPERM;
	}
	if (o->token_file && wire_token_read(p->token, o->token_file))
		return -EINVAL;
	p->link.token = o->token_file ? p->token : NULL;
	if (p->addr.kind != NET_TCP)
		return 0;
	if (!p->link.token) {
		error("serve: %s: needs --token-file FILE", text);
		return -EINVAL;
	}
	if (!net_addr_is_local(&p->addr))
		warn("serve: %s: names, stacks and sizes can be read and changed on the way; ssh:// protects "
		     "them",
		     text);
	return 0;
}

static int choose_address(struct listen_place *p, const struct options *o)
{
	char name[32];
	int err = 0;

	memset(p, 0, sizeof(*p));
	p->link.in_fd = p->link.out_fd = -1;
	p->link.queue_bytes = QUEUE_BYTES;
	if (o->use_stdio)
		return take_stdio(p);
	if (o->to) {
		err = parse_addr(&p->addr, o->to);
		p->link.to = &p->addr;
	} else if (o->discover) {
		p->addr.kind = NET_TCP;
		p->link.to = &p->addr;
		p->link.finds_to = true;
	} else if (o->listen) {
		err = parse_addr(&p->addr, o->listen);
		p->link.listen = &p->addr;
	} else {
		snprintf(name, sizeof(name), "%d", (int)getpid());
		p->addr.kind = NET_UNIX;
		net_private_path(p->addr.path, sizeof(p->addr.path), name);
		p->link.listen = &p->addr;
	}
	return err ? err : cmd_serve_check_tcp(p, o);
}

/* Print it only now, because a reader may connect at once. */
static void print_address(const struct listen_place *p, const struct options *o)
{
	char text[NET_PATH_MAX];

	if (p->link.listen && !o->quiet)
		info("serve: waiting; on the host: heaptap connect %s",
		     net_addr_text(&p->addr, text, sizeof(text)));
}

/* While serve waits for a client to come by itself, a board sleeps: who connects wakes it. */
static int cmd_serve_wait_ms(const struct serve *s, const struct listen_place *place)
{
	return s->session || place->discover || place->link.to ? POLL_MS : IDLE_MS;
}

static int cmd_serve_run(const struct options *o, struct serve *s, struct control *c,
			 const struct listen_place *place)
{
	int sig, err;

	/* With --wait or --stdio the program starts when the client is connected. */
	if (o->is_program && !o->wait && !o->use_stdio) {
		err = serve_launch(s);
		if (err)
			return err == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
	}
	while (!s->is_over) {
		switch (control_wait(c, serve_link_fd(s->link), cmd_serve_wait_ms(s, place), &sig)) {
		case CONTROL_STOP:
			s->is_over = true;
			break;
		default:
			break;
		}
		serve_round(s);
		if (!IS_AGENT)
			discover_poll(place->discover);
	}
	control_finish(c);
	if (s->session)
		serve_stop(s, WIRE_END_DETACHED, "the other side stopped serving");
	return STATUS_DONE;
}

static int check_targets(const struct options *o)
{
	if (!o->targets.nr == !o->is_program) {
		error("serve: needs processes, or -- and a program; see 'heaptap help serve'");
		return -EINVAL;
	}
	return 0;
}

/*
 * A name without a process is most often a typing mistake: report it now, and not to the client that comes later. Over
 * ssh the client is there already, and gets the reason. 0, or -errno, logged.
 */
static int find_targets(const struct options *o)
{
	int err = 0;

	for (size_t i = 0; i < o->targets.nr && !o->use_stdio; i++) {
		auto_free pid_t *pids = NULL;
		size_t nr;

		err = target_find(o->targets.items[i], &pids, &nr);
		if (!err)
			return 0;
	}
	return err;
}

static const char *name_of_target(const struct options *o)
{
	return path_name(o->is_program ? o->args[0] : o->targets.items[0]);
}

int cmd_serve(const struct options *o)
{
	struct serve s = { .options = options_serve(o) };
	const struct control_times times = options_times(o);
	struct control *c = NULL;
	struct listen_place place;
	auto_free char *user = NULL;
	int status = STATUS_IMPOSSIBLE, err;

	/* On a board nobody types sudo. */
	if (check_targets(o) || choose_address(&place, o) || (!IS_AGENT && o->is_program && run_as(o, &user)))
		return STATUS_USAGE;
	if (!IS_AGENT)
		s.options.user = user;
	err = find_targets(o);
	if (err)
		return err == -ESRCH ? STATUS_NO_TARGET : STATUS_IMPOSSIBLE;
	/* Names that no process has yet are not looked at. */
	if (!IS_AGENT) {
		tracing_choose_backend(&s.options.source, "serve");
		tracing_choose_sampler(&s.options.source, o, !o->is_program);
	}
	err = serve_link_new(&s.link, &place.link);
	if (!IS_AGENT && !err && o->announce)
		err = discover_announce(&place.discover, &place.addr, name_of_target(o));
	if (err) {
		serve_link_free(s.link);
		return STATUS_IMPOSSIBLE;
	}
	print_address(&place, o);
	err = control_new(&c, &times, false);
	/* A program that is started later, for the client, keeps all rights, and heaptap with it until then. */
	if (!o->is_program)
		privileges_drop(PRIVILEGES_TRACING, 0);
	if (err)
		error("serve: signals: %s", strerror(-err));
	else
		status = cmd_serve_run(o, &s, c, &place);
	serve_stop(&s, WIRE_END_DETACHED, "");
	serve_link_finish(s.link, FINISH_MS);
	if (s.launch)
		launch_free(s.launch);
	free(s.late.data);
	serve_link_free(s.link);
	if (!IS_AGENT)
		discover_free(place.discover);
	control_free(c);
	return status;
}
