/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The format of streams, which recordings and connections use. */
#pragma once

#include "user/lib/types.h"

/*
 * Numbers are little-endian, or varints: seven bits per byte, lowest first; the top bit says that more bytes follow.
 * Signed numbers are zigzag varints (0, -1, 1, -2, ...). A string is a varint length and that many bytes, none of them
 * 0. man/heaptap-recording.5 describes the format for users.
 *
 *	preamble  magic[8], u16 major, u16 minor, u32 CRC32C of the 12 bytes before
 *	chunk     u32 CRC32C of the rest of the header and of what is stored
 *	          u32 stored_len: bytes that follow the header
 *	          u32 raw_len: bytes of them when unpacked
 *	          u32 number: 0, 1, 2 ...
 *	          u8 kind: enum stream_chunk; u8 flags: enum stream_chunk_flag; u16 0
 *	          stored bytes
 *
 * The first record of the first chunk is STREAM_HELLO, the last record of the last chunk is STREAM_END. A reader stops
 * at a chunk that is cut off or damaged, and can use all chunks before it.
 *
 * On a connection the target sends a stream to the host. When the connection is made again, the stream begins again
 * with the preamble.
 */
#define STREAM_MAGIC "\x89HTAP\r\n\x1a"

enum {
	STREAM_MAGIC_LEN = 8,
	STREAM_PREAMBLE_LEN = 16,
	STREAM_MAJOR = 2, /* a reader refuses larger numbers; 1 had no guesses of addresses */
	STREAM_MINOR = 0, /* with larger numbers, a reader skips unknown records and fields */
	STREAM_HEADER_LEN = 20,
};

/* Limits: a reader refuses more. */
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
	STREAM_CHUNK_STATE, /* a piece of a stream of its own: what a reader that begins here must know */
	STREAM_CHUNK_SEEK,  /* behind such pieces: the state is whole (user/stream/seek.h) */
	/* From here on: a reader skips unknown kinds. */
	STREAM_CHUNK_PRIVATE = 128,
};

enum stream_chunk_flag {
	STREAM_PACKED = 1, /* one zstd frame */
	/* In columns when unpacked (user/stream/stream_split.h); raw_len does not count the lengths of columns. */
	STREAM_SPLIT = 2,
	/* Alone, on connections: coded with what the coded chunks before it have (user/stream/stream_coder.h). */
	STREAM_CODED = 4,
};

/*
 * A record begins with a byte. If the lowest three bits of the byte are not 0, they are the op of a heap event:
 *
 *	byte        op: enum stream_op, then enum stream_op_flag
 *	varint      time since the record before it, in units of 2^time_shift ns (STREAM_HELLO)
 *	[varint]    OP_THREAD: number of its thread's context
 *	varint      address. OP_RECENT: distance in the list of recent addresses, from 1 (the last); 0, with OP_ALLOC:
 *		    the one that the size makes likely (user/stream/stream_guess.h). Without: zigzag
 *		    difference to the address before, in units of 8 bytes
 *	[varint]    OP_STACK: stack, 0 none, 1 lost, else number of a STREAM_STACK. Without: the stack that followed
 *		    the last stack of this thread the last time; frees and other events apart; at first none
 *	[varint]    OP_FN: function. Without: the last one with this stack; frees and other events apart
 *	[varint]    OP_SIZE: size. Without: the last one with this stack; 0 for frees
 *
 * Each address in short form joins the list of recent ones. OP_REALLOC_BEGIN gives the old address, OP_REALLOC_END
 * the new one: without OP_STACK the other fields are those of the thread's OP_REALLOC_BEGIN, with it the old address
 * is 0. OP_FULL can say what short forms cannot, also alignments: bytes kind and flags (bpf/event.h), then varints
 * time (as above), context, fn, addr, old_addr or alignment, size, stack. OP_SAMPLED, of a sampled block, has one
 * varint more, its distance with marks (user/heap/heap_sample.h). Readers that know no samples refuse this op.
 *
 * Otherwise the byte is 0, and a byte with enum stream_kind follows; then a varint length and a body.
 */
enum stream_op {
	OP_RECORD,
	OP_ALLOC,
	OP_FREE,
	OP_FREE_TEMPORARY,
	OP_REALLOC_BEGIN,
	OP_REALLOC_END,
	OP_SAMPLED,
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

/* Records with a body: user/stream/stream_record.h. Values are part of the format: append only. */
enum stream_kind {
	STREAM_HELLO = 1, /* the writer; first of all */
	STREAM_FUNCTION,  /* an allocator function, before the first event that names it */
	STREAM_CONTEXT,	  /* a thread gets a number for events; readers do not hand it out */
	STREAM_STACK,	  /* struct stack_event; other records have its number, from STACK_FIRST_ID on */
	STREAM_PROCESS, /* a process, a new image of one (after STREAM_EXEC), or a child (after STREAM_FORK) */
	STREAM_MODULE,	/* a file, before the first mapping or allocator that names it */
	STREAM_MAPS,	/* mappings changed: all of them follow */
	STREAM_MAPPING,
	STREAM_ALLOCATOR, /* found in a process */
	STREAM_THREAD,	  /* name of a thread */
	STREAM_EXEC,	  /* struct process_event, like the next two */
	STREAM_FORK,
	STREAM_EXIT,
	STREAM_LOSSES, /* totals, and what they mean for the heap */
	STREAM_SCAN,   /* leak verdicts on a process; its rows and links follow, then STREAM_SCAN_END */
	STREAM_SCAN_ROW,
	STREAM_SCAN_LINK,
	STREAM_SCAN_WHY, /* the chain that holds a block; its steps follow */
	STREAM_SCAN_STEP,
	STREAM_SCAN_END,
	STREAM_MARK, /* a moment with a name */
	STREAM_END,  /* the last record */
	STREAM_FORGET, /* guesses of addresses begin anew, because readers may begin here; readers do not hand it out */
	NR_STREAM_RECORDS,

	STREAM_EVENT = 63, /* not in the stream: readers hand out heap events with this kind */
	NR_STREAM_KINDS = 128
};
