/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals by their names. */
#pragma once

/* "TERM" for SIGTERM; NULL: it has no name here, as real-time signals. */
const char *signal_name(int number);

/* The number of "TERM" or "SIGTERM"; 0: no signal has that name. */
int signal_number(const char *name);
