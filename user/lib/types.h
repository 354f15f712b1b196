/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fixed-width names shared by every part of user space. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

/* An address in a target, of 32 or 64 bits. Never a pointer of this process. */
typedef u64 taddr_t;

/* The agent (user/agent/agent.mk) has smaller limits. */
#ifndef IS_AGENT
#define IS_AGENT false
#endif

/* A row of a table, and the end of a message, that the agent has not. */
#if IS_AGENT
#define OF_HOST(...)
#define TEXT_OF_HOST(text) ""
#else
#define OF_HOST(...)	   __VA_ARGS__,
#define TEXT_OF_HOST(text) text
#endif

#define ARRAY_SIZE(a)  (sizeof(a) / sizeof((a)[0]))
#define __must_check   __attribute__((warn_unused_result))
#define __printf(f, a) __attribute__((format(printf, f, a)))
