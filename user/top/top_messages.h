/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that come while the screen has the terminal. */
#pragma once

#include <pthread.h>

#include "user/lib/log.h"

enum { TOP_MESSAGE_BYTES = 256, TOP_MAX_MESSAGES = 64 };

struct top_messages {
	pthread_mutex_t lock; /* reports are made in another thread */
	char last[TOP_MESSAGE_BYTES];
	enum log_level last_level;
	bool is_new;
	bool is_answer; /* messages answer a key: somebody reads them now */
	struct {
		char text[TOP_MESSAGE_BYTES];
		enum log_level level;
	} kept[TOP_MAX_MESSAGES]; /* warnings and errors */
	size_t nr_kept, nr_dropped;
};

/* Take all messages from now on. */
void top_messages_begin(struct top_messages *m);

/* Copy the last message, if it is newer than the last call. */
bool top_messages_take(struct top_messages *m, char *text, size_t size, enum log_level *level);

/* Print the warnings and errors that no key caused, and all messages from now on. */
void top_messages_end(struct top_messages *m);
