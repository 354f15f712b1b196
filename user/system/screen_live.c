/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines and keys of the terminal, and messages that come meanwhile. */
#include "user/system/screen_live.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/report/output.h"
#include "user/session/control.h"
#include "user/top/top_view.h"

enum { MAX_EMPTY_INPUTS = 100 };

struct screen_live {
	struct top_view *view; /* owned */
	struct screen screen;
	struct top_screen lines;
	pthread_mutex_t lock; /* of messages: reports are made in another thread */
	u32 nr_empty_inputs;  /* in a row: a terminal that has gone is always ready */
};

static void screen_live_take_message(void *ctx, enum log_level level, const char *line)
{
	struct screen_live *live = ctx;

	pthread_mutex_lock(&live->lock);
	screen_say(&live->screen, level, line);
	pthread_mutex_unlock(&live->lock);
}

bool screen_is_possible(void)
{
	const char *term = getenv("TERM");

	return top_view_is_built && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term;
}

int screen_live_open(struct screen_live **out, const struct output_options *look, struct control *c)
{
	auto_free struct screen_live *live = calloc(1, sizeof(*live));
	int err = live ? top_view_open(&live->view, output_look(look, stdout).color) : -ENOMEM;

	if (err)
		return err;
	pthread_mutex_init(&live->lock, NULL);
	log_divert(screen_live_take_message, live);
	control_watch(c, STDIN_FILENO);
	*out = take_ptr(live);
	return 0;
}

void screen_live_close(struct screen_live *live, struct control *c)
{
	if (!live)
		return;
	control_watch(c, -1);
	log_divert(NULL, NULL);
	top_view_close(live->view);
	for (u32 i = 0; i < SCREEN_MESSAGES; i++)
		if (live->screen.messages[i].level <= LOG_WARN && live->screen.messages[i].text[0])
			log_line(live->screen.messages[i].level, "%s", live->screen.messages[i].text);
	top_screen_fini(&live->lines);
	pthread_mutex_destroy(&live->lock);
	free(live);
}

enum screen_action screen_live_keys(struct screen_live *live, const struct system_state *s, bool is_ready)
{
	enum screen_action most = SCREEN_NOTHING;
	bool is_any = false;
	int key;

	while (most != SCREEN_QUIT && (key = top_view_key(live->view))) {
		enum screen_action action = screen_key(&live->screen, s, key);

		is_any = true;
		most = action > most ? action : most;
	}
	live->nr_empty_inputs = is_ready && !is_any ? live->nr_empty_inputs + 1 : 0;
	return live->nr_empty_inputs > MAX_EMPTY_INPUTS ? SCREEN_QUIT : most;
}

void screen_live_draw(struct screen_live *live, const struct system_state *s)
{
	int err;

	top_view_size(live->view, &live->screen.columns, &live->screen.lines);
	pthread_mutex_lock(&live->lock);
	err = screen_draw(&live->screen, s, &live->lines);
	pthread_mutex_unlock(&live->lock);
	if (!err)
		top_view_draw(live->view, &live->lines);
}
