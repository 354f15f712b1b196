/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that come while the screen has the terminal. */
#include "user/top/top_messages.h"

#include <stdio.h>

static void top_messages_take_line(void *ctx, enum log_level level, const char *line)
{
	struct top_messages *m = ctx;

	pthread_mutex_lock(&m->lock);
	snprintf(m->last, sizeof(m->last), "%s", line);
	m->last_level = level;
	m->is_new = true;
	if (!m->is_answer && level <= LOG_WARN && m->nr_kept < TOP_MAX_MESSAGES) {
		snprintf(m->kept[m->nr_kept].text, sizeof(m->kept->text), "%s", line);
		m->kept[m->nr_kept++].level = level;
	} else if (!m->is_answer && level <= LOG_WARN) {
		m->nr_dropped++;
	}
	pthread_mutex_unlock(&m->lock);
}

void top_messages_begin(struct top_messages *m)
{
	*m = (struct top_messages){ .lock = PTHREAD_MUTEX_INITIALIZER };
	log_divert(top_messages_take_line, m);
}

bool top_messages_take(struct top_messages *m, char *text, size_t size, enum log_level *level)
{
	bool is_new;

	pthread_mutex_lock(&m->lock);
	is_new = m->is_new;
	if (is_new) {
		snprintf(text, size, "%s", m->last);
		*level = m->last_level;
	}
	m->is_new = false;
	pthread_mutex_unlock(&m->lock);
	return is_new;
}

void top_messages_end(struct top_messages *m)
{
	log_divert(NULL, NULL);
	for (size_t i = 0; i < m->nr_kept; i++)
		log_line(m->kept[i].level, "%s", m->kept[i].text);
	if (m->nr_dropped)
		warn("top: %zu more messages", m->nr_dropped);
}
