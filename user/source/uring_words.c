/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the rings among the descriptors of a process, and has a BPF iterator over its files list what they wait for. */
#include "user/source/uring_words.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/bpf.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/uring.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/source/listed_words.h"
#include "user/source/programs.h"

extern const char uring_object_start[], uring_object_end[];

enum { ROOM = 1 << 17 }; /* requests that a list has room for: 1 MiB */

/* The part of union bpf_iter_link_info for tasks (Linux 6.1), and as many bytes as the kernel knows. */
struct uring_choice {
	u32 tid, pid, pid_fd, reserved;
};

struct uring_lister {
	struct bpf_object *obj;	   /* owned */
	struct uring_state *state; /* mapped */
	const u64 *words;	   /* mapped */
};

static bool uring_is_ring(int dir, const char *fd)
{
	static const char wanted[] = "anon_inode:[io_uring]";
	char link[sizeof(wanted)];

	return readlinkat(dir, fd, link, sizeof(link)) == sizeof(wanted) - 1 &&
	       !memcmp(link, wanted, sizeof(wanted) - 1);
}

/* The rings of @pid into @rings. Their number. */
static u32 uring_find(pid_t pid, u32 *rings)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *entry;
	char path[32];
	u32 nr = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && nr < URING_MAX_RINGS && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && uring_is_ring(dirfd(dir), entry->d_name))
			rings[nr++] = (u32)strtoul(entry->d_name, NULL, 10);
	return nr;
}

/* Does a request wait, as far as the ring's description tells? */
static bool uring_waits(pid_t pid, u32 ring)
{
	auto_fclose FILE *f = NULL;
	u32 taken = 0, done = 0;
	char line[128];

	snprintf(line, sizeof(line), "/proc/%d/fdinfo/%u", (int)pid, ring);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "  op=", 5))
			return true;
		if (!strncmp(line, "SqHead:", 7))
			taken = (u32)strtoul(line + 7, NULL, 10);
		if (!strncmp(line, "CqTail:", 7))
			done = (u32)strtoul(line + 7, NULL, 10);
	}
	return (s32)(taken - done) > 0;
}

static void *uring_map(const struct bpf_map *map, size_t size, int prot)
{
	void *mem = map ? mmap(NULL, size, prot, MAP_SHARED, bpf_map__fd(map), 0) : MAP_FAILED;

	return mem == MAP_FAILED ? NULL : mem;
}

static int uring_load(struct uring_lister *l)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "uring");
	struct bpf_map *words;

	programs_log_libbpf();
	l->obj = bpf_object__open_mem(uring_object_start,
				      (uintptr_t)uring_object_end - (uintptr_t)uring_object_start, &opts);
	words = l->obj ? bpf_object__find_map_by_name(l->obj, "words") : NULL;
	if (!words)
		return l->obj ? -ENOENT : -errno;
	if (bpf_map__set_max_entries(words, ROOM) || bpf_object__load(l->obj))
		return -errno;
	l->words = uring_map(words, ROOM * sizeof(u64), PROT_READ);
	l->state = uring_map(bpf_object__find_map_by_name(l->obj, ".bss"), (size_t)sysconf(_SC_PAGESIZE),
			     PROT_READ | PROT_WRITE);
	return l->words && l->state ? 0 : -ENOMEM;
}

static void uring_unload(struct uring_lister *l)
{
	if (l->words)
		munmap((void *)(uintptr_t)l->words, ROOM * sizeof(u64));
	if (l->state)
		munmap(l->state, (size_t)sysconf(_SC_PAGESIZE));
	bpf_object__close(l->obj);
}

/* Have the program look at each file of @pid. */
static int uring_run(const struct uring_lister *l, pid_t pid)
{
	struct uring_choice choice = { .pid = (u32)pid };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = (union bpf_iter_link_info *)(void *)&choice,
		    .iter_info_len = sizeof(choice));
	const struct bpf_program *prog = bpf_object__find_program_by_name(l->obj, "list_requests");
	auto_close int link =
		prog ? bpf_link_create(bpf_program__fd(prog), 0, BPF_TRACE_ITER, &opts) : -ENOENT;
	auto_close int fd = -1;
	char none;

	if (link < 0)
		return link;
	fd = bpf_iter_create(link);
	if (fd < 0)
		return fd;
	return read(fd, &none, sizeof(none)) < 0 ? -errno : 0;
}

static int uring_take(struct listed_words *list, pid_t pid, const u32 *rings, u32 nr)
{
	struct uring_lister l = { .obj = NULL };
	int err = uring_load(&l);

	if (!err) {
		memcpy(l.state->rings, rings, nr * sizeof(*rings));
		l.state->nr_rings = nr;
		err = uring_run(&l, pid);
	}
	for (u32 i = 0; !err && i < l.state->nr && i < ROOM; i++) {
		const struct listed_word word = { l.words[i], LISTED_REQUEST, pid };

		err = listed_words_add(list, &word);
	}
	if (!err && l.state->nr > ROOM)
		err = -E2BIG;
	uring_unload(&l);
	return err;
}

void uring_words_list(struct listed_words *list, pid_t pid, const char *command, bool *is_told)
{
	u32 rings[URING_MAX_RINGS], nr = uring_find(pid, rings);
	bool waits = false;
	int err;

	for (u32 i = 0; i < nr && !waits; i++)
		waits = uring_waits(pid, rings[i]);
	err = waits ? uring_take(list, pid, rings, nr) : 0;
	if (err && !*is_told)
		warn("%s: PID %d: its io_uring requests cannot be listed (%s): blocks that only such a request holds "
		     "are called leaks",
		     command, (int)pid, strerror(-err));
	*is_told |= err != 0;
}
