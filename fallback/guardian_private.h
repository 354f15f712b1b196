/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the two halves of the guardian. */
#pragma once

#include "fallback/command.h"

/* Given to the guardian at its fork. */
struct guardian_start {
	struct tracer_options options;
	struct ring *ring;
	struct guardian_state *state;
	int fd;	 /* of the socket */
	int end; /* that of the changer; -1 = none */
	pid_t parent;
};

/* The process; does not return. */
void guardian_main(const struct guardian_start *start) __attribute__((noreturn));
