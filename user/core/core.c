/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stops a process for its core, and writes the headers of the file. */
#include "user/core/core_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/file_at.h"
#include "user/scan/snapshot_make.h"

#define STOP_NS (2 * 1000000000ULL)

static int core_read_regs(const struct core *c, pid_t tid, struct arch_regs *regs)
{
	const struct snapshot_holder *holder = c->options.holder;

	return holder ? holder->read_regs(holder->ctx, tid, regs) : arch_regs_read(regs, tid);
}

static bool is_first(const struct core *c, pid_t tid)
{
	return tid == (c->options.first_tid ? c->options.first_tid : c->held.pid);
}

/* Add a thread, unless it has been killed since the stop. */
static int core_add_thread(struct core *c, pid_t tid)
{
	auto_free struct arch_regs *regs = malloc(sizeof(*regs));

	if (!regs)
		return -ENOMEM;
	if (core_read_regs(c, tid, regs))
		return 0;
	if (regs->word_size != 8)
		return -EOPNOTSUPP;
	c->threads[c->nr_threads++] = (struct core_thread){ tid, take_ptr(regs) };
	return 0;
}

/* gdb takes the first thread of the file for the one of interest. */
static int read_threads(struct core *c)
{
	const struct stopped_threads *h = &c->held;
	int err = 0;

	c->threads = calloc(h->nr + 1, sizeof(*c->threads));
	if (!c->threads)
		return -ENOMEM;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < h->nr && !err; i++)
			if (stop_all_has(&h->threads[i]) && is_first(c, h->threads[i].tid) == !pass)
				err = core_add_thread(c, h->threads[i].tid);
	c->sums.nr_threads = c->nr_threads;
	c->sums.nr_unstopped = stop_all_running(h);
	return err || c->nr_threads ? err : -ESRCH;
}

int core_stop(struct core **out, pid_t pid, const struct core_options *options)
{
	struct core *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->options = *options;
	c->held.pid = c->snapshot.pid = pid;
	c->held.by = options->holder ? STOP_BY_OTHER : STOP_BY_US;
	c->stopped_ns = clock_now_ns();
	err = core_machine() ? stop_all_begin(&c->held, c->stopped_ns + STOP_NS) : -EOPNOTSUPP;
	c->is_stopped = !err;
	if (!err)
		err = read_threads(c);
	if (!err) {
		c->snapshot.mem_tid = c->threads[0].tid;
		err = snapshot_read_maps(&c->snapshot);
	}
	if (!err)
		err = core_choose_memory(c);
	if (err) {
		core_free(c);
		return err;
	}
	*out = c;
	return 0;
}

static Elf64_Phdr core_describe(const struct core_map *m, u64 skip, u64 len, bool is_in_file)
{
	const struct snapshot_map *map = m->map;

	return (Elf64_Phdr){ .p_type = PT_LOAD,
			     .p_flags = (map->is_readable ? PF_R : 0) | (map->is_writable ? PF_W : 0) |
					(map->is_executable ? PF_X : 0),
			     .p_offset = m->offset + skip,
			     .p_vaddr = m->start + skip,
			     .p_filesz = is_in_file ? len : 0,
			     .p_memsz = len,
			     .p_align = 1 };
}

/*
 * A segment that is not in the file, or the part of one, reads as zeros unless gdb finds it in a file of the program.
 * So memory that was left out has no segment: gdb says that it cannot be read.
 */
static size_t describe_map(const struct core_map *m, Elf64_Phdr out[2])
{
	bool is_in_program =
		m->part == PART_HEAD || (m->part == PART_NONE && m->map->ino && !m->map->is_shared);
	u64 len = m->end - m->start;
	size_t nr = 0;

	if (m->file_bytes)
		out[nr++] = core_describe(m, 0, m->file_bytes, true);
	if (m->file_bytes < len && is_in_program && m->map->is_readable)
		out[nr++] = core_describe(m, m->file_bytes, len - m->file_bytes, false);
	return nr;
}

/* Room for the headers of all segments. */
static u64 headers_bytes(const struct core *c)
{
	return (2 * c->nr_maps + 1) * sizeof(Elf64_Phdr);
}

static int write_segments(const struct core *c, int fd, u64 notes_at, u64 notes_len, size_t *nr)
{
	auto_free Elf64_Phdr *list = calloc(1, headers_bytes(c));

	if (!list)
		return -ENOMEM;
	list[0] =
		(Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = notes_at, .p_filesz = notes_len, .p_align = 4 };
	*nr = 1;
	for (size_t i = 0; i < c->nr_maps; i++)
		*nr += describe_map(&c->maps[i], &list[*nr]);
	return file_write_at(fd, list, *nr * sizeof(*list), sizeof(Elf64_Ehdr));
}

/* More segments than 16 bits can count are counted by a section header at @section_at. */
static int write_header(int fd, size_t nr, u64 section_at)
{
	bool is_long = nr >= PN_XNUM;
	const Elf64_Shdr section = { .sh_info = (u32)nr };
	Elf64_Ehdr head = { .e_type = ET_CORE,
			    .e_machine = core_machine(),
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(head),
			    .e_shoff = is_long ? section_at : 0,
			    .e_ehsize = sizeof(head),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = is_long ? PN_XNUM : (u16)nr,
			    .e_shentsize = is_long ? sizeof(section) : 0,
			    .e_shnum = is_long };
	int err = is_long ? file_write_at(fd, &section, sizeof(section), section_at) : 0;

	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	return err ? err : file_write_at(fd, &head, sizeof(head), 0);
}

/* The headers come last, when it is known how much memory there is. A file that is cut off has none, and is no core. */
int core_write(struct core *c, int fd)
{
	u64 section_at = sizeof(Elf64_Ehdr) + headers_bytes(c);
	u64 notes_at = section_at + sizeof(Elf64_Shdr);
	auto_free char *notes = NULL;
	size_t len = 0, nr;
	int err = core_notes(c, &notes, &len);

	if (!err)
		err = file_write_at(fd, notes, len, notes_at);
	if (!err)
		err = core_write_memory(c, fd, notes_at + len);
	if (!err)
		err = write_segments(c, fd, notes_at, len, &nr);
	return err ? err : write_header(fd, nr, section_at);
}

void core_resume(struct core *c)
{
	if (!c->is_stopped)
		return;
	stop_all_end(&c->held);
	c->is_stopped = false;
	c->sums.pause_ns = clock_now_ns() - c->stopped_ns;
}

struct core_sums core_sums(const struct core *c)
{
	return c->sums;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	core_resume(c);
	for (size_t i = 0; i < c->nr_threads; i++)
		free(c->threads[i].regs);
	free(c->threads);
	free(c->maps);
	snapshot_fini(&c->snapshot);
	free(c);
}
