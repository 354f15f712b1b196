/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leaking program of "make demo": a small server of made-up requests that forgets some of its memory. */
#include "tests/targets/truth.h"

enum { NR_REQUESTS = 200, NR_SETTINGS = 12, SETTING_SIZE = 64, SESSION_SIZE = 512, ENTRY_SIZE = 96 };

struct session {
	char *user;
	char buffer[SESSION_SIZE - sizeof(char *)];
};

struct entry {
	struct entry *next;
	char text[ENTRY_SIZE - sizeof(struct entry *)];
};

static struct entry *cache;

/* Leaks: the settings are read and forgotten. */
FN static void load_settings(void)
{
	for (int i = 0; i < NR_SETTINGS; i++) {
		char *setting = malloc(SETTING_SIZE);

		keep(setting);
	}
}

FN static char *copy_name(int number)
{
	char *name = malloc(24);

	snprintf(name, 24, "user%d", number);
	return name;
}

FN static struct session *open_session(int number)
{
	struct session *s = calloc(1, sizeof(*s));

	s->user = copy_name(number);
	return s;
}

/* Leaks: one session in ten is never closed, with the name in it. */
FN static void close_session(struct session *s, int number)
{
	if (number % 10 == 0)
		return;
	free(s->user);
	free(s);
}

/* No leak, but growing: still reachable at the end. */
FN static void remember(int number)
{
	struct entry *e = malloc(sizeof(*e));

	snprintf(e->text, sizeof(e->text), "request %d", number);
	e->next = cache;
	cache = e;
}

/* No leak: a temporary buffer, then a larger one. */
FN static void render_page(int number)
{
	char *page = malloc(256);

	page = realloc(page, 256 + number * 16);
	keep(page);
	free(page);
}

FN static void handle_request(int number)
{
	struct session *s = open_session(number);

	render_page(number);
	if (number % 4 == 0)
		remember(number);
	close_session(s, number);
}

FN static void serve(void)
{
	for (int i = 0; i < NR_REQUESTS; i++)
		handle_request(i);
}

int main(int argc, char **argv)
{
	const int leaked = NR_REQUESTS / 10, kept = NR_REQUESTS / 4;

	truth_begin();
	load_settings();
	serve();
	if (argc < 2 || strcmp(argv[1], "--expect")) {
		printf("served %d requests\n", NR_REQUESTS);
		return 0;
	}
	expect("calls malloc %d", NR_SETTINGS + NR_REQUESTS * 2 + kept);
	expect("calls calloc %d", NR_REQUESTS);
	expect("calls realloc %d", NR_REQUESTS);
	expect("calls free %d", NR_REQUESTS * 3 - leaked * 2);
	expect("failed 0");
	expect("unknown 0");
	expect("live %d %d load_settings", NR_SETTINGS, NR_SETTINGS * SETTING_SIZE);
	expect("live %d %d copy_name", leaked, leaked * 24);
	expect("live %d %zu open_session", leaked * 2, leaked * (24 + sizeof(struct session)));
	expect("live %d %zu remember", kept, kept * sizeof(struct entry));
	expect("live 0 0 render_page");
	expect("live %d %zu serve", leaked * 2 + kept,
	       leaked * (24 + sizeof(struct session)) + kept * sizeof(struct entry));
	return 0;
}
