/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of reports for the console, so that it shows the numbers of reports. */
#pragma once

#include "user/lib/json.h"
#include "user/report/report.h"
#include "user/report/frames.h"
#include "user/scan/scan_result.h"

struct heap_block;
struct thread_row;

/* Write parts of the text on each process: the head; the callers, with leaks and wrong releases. */
int report_text_head(FILE *out, const struct report *r) __must_check;
int report_text_callers(FILE *out, const struct report *r) __must_check;
/* Write one line for each process: its live blocks, and how it ended. */
int report_text_processes(FILE *out, const struct report *r) __must_check;

/* Do the filters of @r let the live block @b through? */
bool report_has_block(const struct report *r, const struct heap_block *b);

/*
 * The place that row @id of the heap is named by (user/report/own_code.h), and its caller, escaped: "make_node <
 * add_node". A function without a name is "ls+0x18032". "" if there is no stack. 0 or -ENOMEM.
 */
int report_callers(const struct report *r, const struct report_process *p, u32 id, char *text,
		   size_t size) __must_check;

/* That place with its line, and all functions further out, as many as fit: "make_node (list.c:42) < main". */
int report_own_callers(const struct report *r, const struct report_process *p, u32 id, char *text,
		       size_t size) __must_check;

/* All functions on that stack, from the innermost one, as many as fit. Otherwise as report_callers(). */
int report_all_callers(const struct report *r, const struct report_process *p, u32 id, char *text,
		       size_t size) __must_check;

/* As report_callers(), of the stack with the id @stack. */
int report_stack_callers(const struct report *r, const struct report_process *p, u64 stack, char *text,
			 size_t size) __must_check;

/*
 * The recursion that begins at frame @i of @s, before @end: frames are alike if they have the same functions and lines.
 * And the line below one turn of it, which took @nr_lines: how many more there are; none without recursion.
 */
struct turns report_turns(const struct report *r, const struct stack *s, size_t i, size_t end);
void report_turns_more(FILE *out, const char *indent, size_t nr_lines, struct turns turns);

/* The name of thread @row of @p, borrowed; NULL = not known. */
const char *report_thread_name(const struct report_process *p, const struct thread_row *row);

/* Write a process as "redis-server (pid 26933)", and the name of allocator function @fn. Both escaped. */
void report_name(FILE *out, const struct target *t);
void report_function(FILE *out, const struct report_process *p, u16 fn);
