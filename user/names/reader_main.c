/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader: opens files that are passed to it, and answers questions on them. Whatever goes wrong ends it. */
#include "user/names/reader_main.h"

#include <errno.h>
#include <gelf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/helper_process.h"
#include "user/names/demangle.h"
#include "user/names/file_names.h"
#include "user/names/reader_jail.h"
#include "user/names/reader_wire.h"

/* Checks what libelf and libdw trust in a file. Runs in the reader. */

enum { SECTIONS_MAX = 1 << 20 };

static void file_check_add(u64 *sum, u64 size)
{
	*sum = size > UINT64_MAX - *sum ? UINT64_MAX : *sum + size;
}

/* The old way of GNU: ".zdebug_info" begins with "ZLIB" and the size in 8 bytes, the highest one first. */
static u64 zdebug_size(int fd, const GElf_Shdr *shdr)
{
	u8 head[12];
	u64 size = 0;

	if (pread(fd, head, sizeof(head), (off_t)shdr->sh_offset) != sizeof(head) || memcmp(head, "ZLIB", 4))
		return 0;
	for (size_t i = 4; i < sizeof(head); i++)
		size = size << 8 | head[i];
	return size;
}

/* Count the section if it is compressed. @name may be NULL. */
static int count_unpacked(int fd, Elf_Scn *scn, const GElf_Shdr *shdr, const char *name, u64 *sizes)
{
	bool is_old = name && !strncmp(name, ".zdebug", 7);
	bool is_debug = is_old || (name && !strncmp(name, ".debug", 6));
	GElf_Chdr chdr = { 0 };

	if (shdr->sh_type == SHT_NOBITS || (!is_old && !(shdr->sh_flags & SHF_COMPRESSED)))
		return 0;
	if (shdr->sh_flags & SHF_COMPRESSED && !gelf_getchdr(scn, &chdr))
		return -ENOEXEC;
	file_check_add(&sizes[is_debug ? READER_SIZE_DEBUG : READER_SIZE_TABLES],
		       is_old ? zdebug_size(fd, shdr) : chdr.ch_size);
	if (is_debug)
		file_check_add(&sizes[READER_SIZE_PACKED], shdr->sh_size);
	return 0;
}

/* Check the values that libelf and libdw trust: ends of string tables, sizes of compressed sections. */
static int check_sections(int fd, Elf *elf, u64 *sizes)
{
	Elf_Scn *scn = NULL;
	size_t nr, names;
	char last;

	if (elf_kind(elf) != ELF_K_ELF || elf_getshdrnum(elf, &nr) != 0 || nr > SECTIONS_MAX)
		return -ENOEXEC;
	if (elf_getshdrstrndx(elf, &names))
		names = 0;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) ||
		    count_unpacked(fd, scn, &shdr, names ? elf_strptr(elf, names, shdr.sh_name) : NULL,
				   sizes))
			return -ENOEXEC;
		if (shdr.sh_type == SHT_STRTAB && shdr.sh_size > 0) {
			if (shdr.sh_offset > INT64_MAX - shdr.sh_size ||
			    pread(fd, &last, 1, shdr.sh_offset + shdr.sh_size - 1) != 1 || last != '\0')
				return -ENOEXEC;
		}
	}
	return 0;
}

/*
 * Check the ends of string tables, and add the sizes of compressed sections to @sizes. 0, or -ENOEXEC: libdw must not
 * read the file.
 */
static int file_check(int fd, u64 sizes[NR_READER_SIZES])
{
	Elf *elf;
	int err;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	err = check_sections(fd, elf, sizes);
	elf_end(elf);
	return err;
}

enum { FILES_MAX = 1 << 20, PATH_ROOM = 2 * 4096, STACK_BYTES = 8 << 20, STACK_GUARD = 1 << 20 };

struct reader_state {
	int fd; /* socket */
	struct reader_jail jail;
	struct file_names **files; /* owned; by number; NULL = not open */
	size_t nr_files, max_files;
	/* The reply that is being made. */
	char *bytes; /* owned */
	size_t len, max;
};

static void __attribute__((noreturn)) reader_main_die(enum reader_exit status)
{
	_exit((int)status);
}

static void add_bytes(struct reader_state *r, const void *bytes, size_t len)
{
	if (array_reserve(r->bytes, r->max, r->len + len))
		reader_main_die(READER_EXIT_NO_MEMORY);
	if (len)
		memcpy(r->bytes + r->len, bytes, len);
	r->len += len;
}

static void reader_main_reply(struct reader_state *r, struct reader_reply *head)
{
	head->len = (u32)r->len;
	head->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (reader_wire_send(r->fd, head, sizeof(*head), r->bytes, r->len, -1))
		reader_main_die(READER_EXIT_DONE);
	r->len = 0;
}

/* The next request, and the file that came with it, or -1. */
static void take_request(struct reader_state *r, struct reader_request *q, int *fd)
{
	if (reader_wire_take(r->fd, q, sizeof(*q), fd))
		reader_main_die(READER_EXIT_DONE);
}

static void reader_main_check(struct reader_state *r, int fd)
{
	struct reader_reply head = { .kind = READER_DONE };
	struct stat st;

	if (!fstat(fd, &st) && st.st_size > 0)
		reader_jail_expect(&r->jail, (u64)st.st_size);
	head.err = file_check(fd, head.values);
	close(fd);
	reader_main_reply(r, &head);
}

/* debug_finder: heaptap knows where the file may be, and has it checked here first. */
static int find_debug(void *ctx, const char *link, u32 crc)
{
	struct reader_state *r = ctx;
	struct reader_reply head = { .kind = READER_WANTS_DEBUG, .values = { crc } };
	struct reader_request q;
	int fd;

	if (link && strlen(link) < READER_TEXT_MAX)
		add_bytes(r, link, strlen(link));
	reader_main_reply(r, &head);
	for (;;) {
		take_request(r, &q, &fd);
		if (q.kind != READER_CHECK)
			break;
		reader_main_check(r, fd);
	}
	if (q.kind != READER_DEBUG_FILE)
		reader_main_die(READER_EXIT_CONFUSED);
	return q.err ? -1 : fd;
}

static void reader_main_open_file(struct reader_state *r, const struct reader_request *q, int fd)
{
	const struct debug_finder finder = { find_debug, r };
	struct reader_reply head = { .kind = READER_DONE };
	struct file_names **place;

	if (fd < 0 || q->file >= FILES_MAX)
		reader_main_die(READER_EXIT_CONFUSED);
	if (array_reserve(r->files, r->max_files, (size_t)q->file + 1))
		reader_main_die(READER_EXIT_NO_MEMORY);
	for (; r->nr_files <= q->file; r->nr_files++)
		r->files[r->nr_files] = NULL;
	place = &r->files[q->file];
	file_names_free(*place);
	*place = NULL;
	head.err = file_names_new(place, fd, q->flags & READER_PLAIN, &finder, &r->jail);
	if (head.err == -ENOMEM)
		reader_main_die(READER_EXIT_NO_MEMORY);
	reader_main_reply(r, &head);
}

static struct file_names *reader_main_file_of(const struct reader_state *r, const struct reader_request *q)
{
	if (q->file >= r->nr_files || !r->files[q->file])
		reader_main_die(READER_EXIT_CONFUSED);
	return r->files[q->file];
}

static u32 length_of(const char *text)
{
	size_t len = text ? strlen(text) : 0;

	return (u32)(len < READER_TEXT_MAX ? len : READER_TEXT_MAX);
}

/* The path of a source file, made absolute where the DWARF says how. */
static const char *reader_main_path_of(const struct dwarf_frame *frame, char path[PATH_ROOM])
{
	if (!frame->file)
		return NULL;
	if (frame->file[0] == '/' || !frame->directory)
		return frame->file;
	snprintf(path, PATH_ROOM, "%s/%s", frame->directory, frame->file);
	return path;
}

static void add_symbol(struct reader_state *r, const struct dwarf_frame *frame, bool is_inlined)
{
	char readable[DEMANGLE_MAX] = "", room[PATH_ROOM];
	const char *linked = frame->function && *frame->function ? frame->function : NULL;
	const char *path = reader_main_path_of(frame, room);
	struct reader_symbol s = { .line = path ? frame->line : 0,
				   .start_line = frame->start_line,
				   .is_inlined = is_inlined };

	if (linked)
		demangle(readable, linked);
	if (linked && !strcmp(readable, linked))
		linked = NULL;
	s.function_len = length_of(readable);
	s.linked_len = length_of(linked);
	s.file_len = length_of(path);
	add_bytes(r, &s, sizeof(s));
	add_bytes(r, readable, s.function_len);
	add_bytes(r, linked, s.linked_len);
	add_bytes(r, path, s.file_len);
}

static void reader_main_look_up(struct reader_state *r, const struct reader_request *q)
{
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	size_t nr = file_names_look_up(reader_main_file_of(r, q), q->value, frames);
	struct reader_reply head = { .kind = READER_DONE, .nr = (u32)nr };

	for (size_t i = 0; i < nr; i++)
		add_symbol(r, &frames[i], i + 1 < nr);
	reader_main_reply(r, &head);
}

static void add_readable(struct reader_state *r, const char *symbol)
{
	char readable[DEMANGLE_MAX];

	demangle(readable, symbol);
	add_bytes(r, readable, strlen(readable));
}

static void reader_main_name_data(struct reader_state *r, const struct reader_request *q)
{
	struct reader_reply head = { .kind = READER_DONE };
	const char *name;

	if (file_names_data(reader_main_file_of(r, q), q->value, q->flags & READER_TLS, &name,
			    &head.values[0]))
		reader_main_die(READER_EXIT_NO_MEMORY);
	if (name)
		add_readable(r, name);
	reader_main_reply(r, &head);
}

static void name_symbol(struct reader_state *r, const struct reader_request *q)
{
	struct reader_reply head = { .kind = READER_DONE };
	char symbol[READER_REQUEST_MAX + 1];

	if (q->len > READER_REQUEST_MAX)
		reader_main_die(READER_EXIT_CONFUSED);
	if (reader_wire_take(r->fd, symbol, q->len, NULL))
		reader_main_die(READER_EXIT_DONE);
	symbol[q->len] = '\0';
	add_readable(r, symbol);
	reader_main_reply(r, &head);
}

static void reader_main_serve(struct reader_state *r)
{
	struct reader_request q;
	int fd;

	take_request(r, &q, &fd);
	switch (q.kind) {
	case READER_CHECK:
		reader_main_check(r, fd);
		break;
	case READER_OPEN:
		reader_main_open_file(r, &q, fd);
		break;
	case READER_LOOK_UP:
		reader_main_look_up(r, &q);
		break;
	case READER_DATA:
		reader_main_name_data(r, &q);
		break;
	case READER_DEMANGLE:
		name_symbol(r, &q);
		break;
	default:
		reader_main_die(READER_EXIT_CONFUSED);
	}
}

static void __attribute__((noreturn)) reader_run(int fd, u64 cpu_s)
{
	struct reader_state r = { .fd = fd };

	prctl(PR_SET_NAME, READER_COMM);
	helper_process_close(STDERR_FILENO + 1, ~0U);
	reader_jail_enter(&r.jail, cpu_s);
	for (;;)
		reader_main_serve(&r);
}

/* Arguments of reader_run(). */
struct reader_start {
	int fd;
	u64 cpu_s;
};

static void reader_on_signal(int signal, siginfo_t *info, void *context)
{
	const struct reader_start *start = info->si_value.sival_ptr;

	(void)signal;
	(void)context;
	reader_run(start->fd, start->cpu_s);
}

/*
 * libdw and the demangler need more stack than a small `ulimit -s` leaves. The stack of a signal handler is ours to
 * choose, on each CPU and with each C library. Below it is as much that cannot be used as the kernel leaves below
 * others.
 * Returns where there is no such stack.
 */
static void reader_run_on_own_stack(struct reader_start *start)
{
	struct sigaction action = { .sa_sigaction = reader_on_signal, .sa_flags = SA_ONSTACK | SA_SIGINFO };
	char *room = mmap(NULL, STACK_GUARD + STACK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	stack_t stack = { .ss_sp = room + STACK_GUARD, .ss_size = STACK_BYTES };
	sigset_t only;

	if (room == MAP_FAILED || mprotect(room, STACK_GUARD, PROT_NONE))
		return;
	sigfillset(&action.sa_mask);
	sigdelset(&action.sa_mask, SIGXCPU);
	sigemptyset(&only);
	sigaddset(&only, SIGUSR1);
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) ||
	    sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_ptr = start }))
		return;
	sigprocmask(SIG_UNBLOCK, &only, NULL);
}

void reader_main(int fd, u64 cpu_s)
{
	struct reader_start start = { fd, cpu_s };
	struct rlimit limit;

	if (!READER_IS_SANITIZED && !getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < STACK_BYTES)
		reader_run_on_own_stack(&start);
	reader_run(fd, cpu_s);
}
