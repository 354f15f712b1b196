/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a table of metrics as OpenMetrics text. */
#pragma once

#include <stdio.h>

struct metrics_table;

/* The name of this text in HTTP. */
#define EXPOSITION_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Write @t to @out. Errors of the file show at its end. */
void exposition_write(FILE *out, const struct metrics_table *t);
