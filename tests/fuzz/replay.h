/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fuzzer is one function: for libFuzzer (make fuzz), or for the main() of replay.c (make check-fuzz). */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
