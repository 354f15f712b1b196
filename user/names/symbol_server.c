/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads libdebuginfod when the user asks for it: heaptap itself needs neither the network nor this library. */
#include "user/names/symbol_server.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/lib/log.h"

typedef int fetch_fn(void *client, const unsigned char *build_id, int len, char **path);
typedef int progress_fn(void *client, long done, long size);

struct symbol_server {
	void *library; /* owned */
	void *client;  /* owned */
	void (*end)(void *client);
	void (*set_progress)(void *client, progress_fn *fn);
	fetch_fn *fetch[2]; /* by enum symbol_server_file */
};

/* Static: the callback of the library has no argument for a context of the caller. */
static struct {
	char name[128];
} current;

static bool is_called_off(void)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGINT) > 0 || sigismember(&pending, SIGTERM) > 0);
}

static int on_progress(void *client, long done, long size)
{
	char text[320];

	(void)client;
	if (log_level() >= LOG_INFO) {
		snprintf(text, sizeof(text), "%s%s%s  %s", human_bytes(done > 0 ? (u64)done : 0).text,
			 size > 0 ? " of " : "", size > 0 ? human_bytes((u64)size).text : "", current.name);
		log_status(text);
	}
	return is_called_off();
}

static bool find_functions(struct symbol_server *s, void *(**begin)(void))
{
	const struct {
		const char *name;
		void *where;
	} wanted[] = {
		{ "debuginfod_begin", begin },
		{ "debuginfod_end", &s->end },
		{ "debuginfod_set_progressfn", &s->set_progress },
		{ "debuginfod_find_executable", &s->fetch[SYMBOL_SERVER_BINARY] },
		{ "debuginfod_find_debuginfo", &s->fetch[SYMBOL_SERVER_DEBUG] },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		void *found = dlsym(s->library, wanted[i].name);

		if (!found)
			return false;
		memcpy(wanted[i].where, &found, sizeof(found));
	}
	return true;
}

int symbol_server_new(struct symbol_server **out)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct symbol_server *s;
	void *(*begin)(void);

	if (!urls || !*urls) {
		error("symbol: --debuginfod: DEBUGINFOD_URLS names no server");
		return -ENOSYS;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (s->library && find_functions(s, &begin))
		s->client = begin();
	if (!s->client) {
		error("symbol: --debuginfod: the library libdebuginfod.so.1 is not there");
		symbol_server_free(s);
		return -ENOSYS;
	}
	s->set_progress(s->client, on_progress);
	*out = s;
	return 0;
}

void symbol_server_free(struct symbol_server *s)
{
	if (!s)
		return;
	if (s->client)
		s->end(s->client);
	if (s->library)
		dlclose(s->library);
	free(s);
}

int symbol_server_fetch(struct symbol_server *s, enum symbol_server_file kind, const u8 *build_id, size_t len,
			const char *name, int *fd)
{
	const char *base = strrchr(name, '/');
	int got;

	if (is_called_off())
		return -EINTR;
	escape_buf(current.name, sizeof(current.name), base ? base + 1 : name);
	got = s->fetch[kind](s->client, build_id, (int)len, NULL);
	log_status(NULL);
	if (got < 0) {
		debug("symbol: debuginfod: %s: %s", current.name, strerror(-got));
		return got;
	}
	*fd = got;
	return 0;
}
