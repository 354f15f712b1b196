/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stream of events as bytes: a recording is one at rest, a connection one in each direction. */
#pragma once

#include "user/lib/types.h"

/*
 * All numbers are little-endian, or varints: seven bits per byte, lowest first, the top bit says that more follow.
 * Signed ones are zigzag varints (0, -1, 1, -2, ...). Strings are a varint length and that many bytes, none of them 0.
 * man/heaptap-recording.5 is this page for others.
 *
 *	preamble  magic[8], u16 major, u16 minor, u32 CRC32C of the 12 bytes before
 *	chunk     u32 CRC32C of the rest of the header and of what is stored
 *	          u32 stored_len: bytes that follow the header
 *	          u32 raw_len: bytes of them when unpacked
 *	          u32 number: 0, 1, 2 ...
 *	          u8 kind: enum stream_chunk; u8 flags: enum stream_chunk_flag; u16 0
 *	          stored bytes
 *
 * The first record of the first chunk is STREAM_HELLO, the last one of the last is STREAM_END. What is written stays
 * readable whatever comes after it; a chunk that is not whole, or damaged, ends the reading.
 *
 * Both sides of a connection send a stream: records of the target one way, commands the other. After a break each
 * begins anew with the preamble.
 */
#define STREAM_MAGIC "\x89HTAP\r\n\x1a"

enum {
	STREAM_MAGIC_LEN = 8,
	STREAM_PREAMBLE_LEN = 16,
	STREAM_MAJOR = 1, /* other than ours: not readable */
	STREAM_MINOR = 0, /* larger than ours: records and fields that we do not know are skipped */
	STREAM_HEADER_LEN = 20,
};

/* What a reader accepts. */
enum {
	STREAM_MAX_RAW = 1 << 20, /* bytes of a chunk, stored or unpacked */
	STREAM_MAX_RECORD = 65536,
	STREAM_MAX_STRING = 4096,
	STREAM_MAX_STACKS = 1 << 21,
	STREAM_MAX_THREADS = 1024, /* known at one time, see STREAM_CONTEXT */
	STREAM_NR_RECENT = 4096,   /* addresses that events refer to */
};

enum stream_chunk {
	STREAM_CHUNK_RECORDS = 1,
	/* To be skipped by who does not know them; 128 to 255 are for connections. */
	STREAM_CHUNK_PRIVATE = 128,
};

enum stream_chunk_flag {
	STREAM_PACKED = 1, /* one zstd frame */
	STREAM_SPLIT =
		2, /* in columns when unpacked (user/stream_split.h); raw_len is without their lengths */
};

/*
 * A record begins with a byte. Its lowest three bits, if not 0, are the kind of a heap event in short form:
 *
 *	byte        op: enum stream_op, then enum stream_op_flag
 *	varint      time since the record before it, in units of 2^time_shift ns (STREAM_HELLO)
 *	[varint]    OP_THREAD: number of its thread's context
 *	varint      address: OP_RECENT: its distance in the list of recent ones, from 1 (the last); else zigzag against
 *		    the address before, in units of 8 bytes
 *	[varint]    OP_STACK: stack, 0 none, 1 lost, else number of a STREAM_STACK; without: the one that followed the
 *		    last stack of its thread when that was met last, frees and others apart; at first none
 *	[varint]    OP_FN: function; without: the last one with this stack, of frees apart from others
 *	[varint]    OP_SIZE: size; without: the last one with this stack, of frees 0
 *
 * Each address in short form joins the list of recent ones. OP_REALLOC_BEGIN gives the old address, OP_REALLOC_END
 * the new one: without OP_STACK the rest is as in its thread's OP_REALLOC_BEGIN, with it the old address is 0.
 * OP_FULL, for what the short forms cannot say: bytes kind and flags (bpf/event.h), then varints time (as above),
 * context, fn, addr, old_addr, size, stack.
 *
 * With three bits of 0 the byte is 0 and another one follows, the enum stream_kind; then a varint length and a body.
 */
enum stream_op {
	OP_RECORD,
	OP_ALLOC,
	OP_FREE,
	OP_FREE_TEMPORARY,
	OP_REALLOC_BEGIN,
	OP_REALLOC_END,
	OP_UNUSED,
	OP_FULL,
	NR_STREAM_OPS
};

enum stream_op_flag {
	OP_THREAD = 8,
	OP_RECENT = 16,
	OP_STACK = 32,
	OP_FN = 64,
	OP_SIZE = 128,
};

/* Records with a body; which struct of stream_record.h is which. Numbers are part of the format: append only. */
enum stream_kind {
	STREAM_HELLO = 1, /* who writes; first of all */
	STREAM_FUNCTION,  /* an allocator function, before the first event that names it */
	STREAM_CONTEXT,	  /* number of a thread for events (only inside the stream) */
	STREAM_STACK,	  /* struct stack_event; others name it by its number, from STACK_FIRST_ID on */
	STREAM_PROCESS, /* a process, a new image of one (after STREAM_EXEC), or a child (after STREAM_FORK) */
	STREAM_MODULE,	/* a file, before the first mapping or allocator that names it */
	STREAM_MAPS,	/* mappings changed: all of them follow */
	STREAM_MAPPING,
	STREAM_ALLOCATOR, /* found in a process */
	STREAM_THREAD,	  /* name of a thread */
	STREAM_EXEC,	  /* struct process_event, as the next two */
	STREAM_FORK,
	STREAM_EXIT,
	STREAM_LOSSES, /* totals, and what follows from them for the books */
	STREAM_SCAN,   /* leak verdicts on a process; its rows and links follow, then STREAM_SCAN_END */
	STREAM_SCAN_ROW,
	STREAM_SCAN_LINK,
	STREAM_SCAN_WHY, /* who holds a block; its steps follow */
	STREAM_SCAN_STEP,
	STREAM_SCAN_END,
	STREAM_MARK, /* a moment worth a name */
	STREAM_END,  /* nothing is missing before it */
	NR_STREAM_RECORDS,

	STREAM_EVENT = 63,    /* not in the stream: how readers hand out heap events */
	STREAM_COMMANDS = 64, /* 64 to 127 are for connections (user/wire*.h) */
	NR_STREAM_KINDS = 128
};
