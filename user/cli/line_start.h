/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Begins on a new line what is written behind the output of another program. */
#pragma once

/*
 * If a program has left the terminal @fd, or the regular file, within a line, begin a new one. Elsewhere that cannot be
 * known, and nothing is written.
 */
void line_start(int fd);
