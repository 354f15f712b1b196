/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTML file that `heaptap report --open` shows in the browser of the user. */
#pragma once

#include "user/lib/types.h"

struct output_options;

/* All zero: no file. */
struct page_file {
	const char **names; /* owned; all outputs, NULL at the end */
	const char *path;   /* borrowed; the file to open, one of names */
	char *own;	    /* owned; the same, if it is in a directory of its own */
	pid_t opener; /* owned; a process that waits with all rights of the user, to run the browser; 0 = none */
	int go;	      /* owned, if there is an opener: the pipe that tells it to */
};

/*
 * Choose the first HTML file of @o. If there is none, make a directory that only the user can enter, and add a file in
 * it to the names of @o, which are then those of @f. Starts a process that will run the browser: heaptap may give up
 * rights that a browser needs. 0, -EINVAL or -errno, after one logged line.
 */
int page_file_init(struct page_file *f, struct output_options *o) __must_check;
void page_file_fini(struct page_file *f);

/* Open the file by xdg-open, under sudo as the user who typed the command. 0, or -EIO after one logged line. */
int page_file_open(struct page_file *f) __must_check;
