/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between heaptap and its reader of names, over a socket. Each request has one reply. */
#pragma once

#include "user/lib/types.h"

/* The reader is heaptap itself by this name, with the socket as its standard input. Argument: seconds of CPU time. */
#define READER_COMM "heaptap-names"

/* Sanitizers need terabytes of address space, and files and stderr when they find something. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { READER_IS_SANITIZED = 1 };
#else
enum { READER_IS_SANITIZED = 0 };
#endif

enum reader_request_kind {
	READER_CHECK, /* can this file be read by libdw? With the file. Reply: values, see enum reader_size */
	READER_OPEN,  /* @file is this file. With it */
	READER_LOOK_UP,	 /* the names at the address @value of @file. Reply: @nr symbols */
	READER_DATA,	 /* the variable at @value of @file. Reply: its readable name, values[0] its offset */
	READER_DEMANGLE, /* bytes: a linker symbol. Reply: its readable name */
	READER_DEBUG_FILE, /* answer to READER_WANTS_DEBUG: with the file, or @err */
};

enum reader_request_flags {
	READER_PLAIN = 1, /* READER_OPEN: leave debug information alone */
	READER_TLS = 2,	  /* READER_DATA: thread-local */
};

struct reader_request {
	u32 kind, file;
	u64 value;
	s32 err;
	u32 flags;
	u32 len; /* of the bytes that follow */
	u32 pad;
};

enum reader_reply_kind {
	READER_DONE,
	READER_WANTS_DEBUG, /* in place of the reply to READER_OPEN: bytes: the link; values[0] its checksum */
};

/* Sizes of the compressed sections of a file when they are unpacked, and of those of debug information now. */
enum reader_size { READER_SIZE_DEBUG, READER_SIZE_TABLES, READER_SIZE_PACKED, NR_READER_SIZES };

struct reader_reply {
	u32 kind;
	s32 err;
	u32 nr, len; /* of symbols; of the bytes that follow */
	u64 cpu_ns;  /* used so far */
	u64 values[NR_READER_SIZES];
};

/* A symbol in a reply, before its texts, which have no ends: function, linked, file. */
struct reader_symbol {
	u32 line, start_line;
	u32 function_len, linked_len, file_len; /* 0 = none */
	u32 is_inlined;
};

enum {
	READER_TEXT_MAX = 16 << 10,    /* bytes of one text; longer ones are cut */
	READER_REPLY_MAX = 4 << 20,    /* bytes behind a reply */
	READER_REQUEST_MAX = 64 << 10, /* bytes behind a request */
	READER_WANTS_MAX = 4,	       /* separate files that one READER_OPEN may ask for */
};

/* How the reader ends by itself; other ends are crashes. */
enum reader_exit { READER_EXIT_DONE, READER_EXIT_NO_MEMORY = 3, READER_EXIT_CONFUSED };

/* Send @head, then @len bytes, with the descriptor @passed (-1 = none). 0; -EPIPE: nobody is there; -errno. */
int reader_wire_send(int fd, const void *head, size_t size, const void *bytes, size_t len,
		     int passed) __must_check;

/* Receive @size bytes; *@passed is the caller's, -1 = none came. NULL: none is wanted. As reader_wire_send(). */
int reader_wire_take(int fd, void *head, size_t size, int *passed) __must_check;
