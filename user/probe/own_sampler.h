/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that sample their blocks themselves, and tell of them by notes of the provider otel_memory, a contract of
 * OpenTelemetry: alloc(block, bytes, bytes that it stands for) and free(block).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define OWN_SAMPLER_PROVIDER "otel_memory"

/* Has the ELF file of @fd such notes? False also if it cannot be read. */
bool own_sampler_in_file(int fd);

/* Has a file that process @pid maps such notes? False also if its mappings cannot be read. Does not stop it. */
bool own_sampler_in_process(pid_t pid);
