/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the signal stacks of threads from the kernel by a BPF iterator, for the roots of leak scans. */
#include "user/source/alt_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <linux/bpf.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "user/lib/cleanup.h"
#include "user/source/caps.h"
#include "user/source/listed_words.h"
#include "user/source/programs.h"
#include "user/source/task_types.h"

/* The program writes this for each thread that has a signal stack. */
struct alt_stack {
	u64 start;
	u32 tgid, reserved;
};

struct alt_stacks {
	int prog; /* owned */
	bool is_other_ns;
};

/* The part of union bpf_iter_link_info for tasks (Linux 6.1), and as many bytes as the kernel knows. */
struct task_choice {
	u32 tid, pid, pid_fd, reserved;
};

enum { HELPER_SEQ_WRITE = 127, NR_INSNS = 17, READ_RECORDS = 64 };

#define INSN(c, d, s, o, i)                                                                                  \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define LOAD(size, d, s, o)  INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)
#define STORE(size, d, o, s) INSN(BPF_STX | BPF_MEM | (size), d, s, o, 0)

/* struct bpf_iter__task: a pointer to the metadata, whose first word is the file; a pointer to the task, or NULL. */
static int alt_stacks_load(const struct alt_stack_fields *f)
{
	const struct bpf_insn insns[NR_INSNS] = {
		LOAD(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
		LOAD(BPF_DW, BPF_REG_7, BPF_REG_1, 8),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_7, 0, 12, 0),
		LOAD(BPF_DW, BPF_REG_8, BPF_REG_7, (s16)f->start),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_8, 0, 10, 0),
		STORE(BPF_DW, BPF_REG_10, -16, BPF_REG_8),
		LOAD(BPF_W, BPF_REG_8, BPF_REG_7, (s16)f->tgid),
		STORE(BPF_W, BPF_REG_10, -8, BPF_REG_8),
		INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -(s32)sizeof(struct alt_stack)),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, sizeof(struct alt_stack)),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, HELPER_SEQ_WRITE),
		INSN(BPF_JMP | BPF_JA, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_ITER,
		    .attach_btf_id = f->iterator);
	int fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "alt_stacks", "GPL", insns, NR_INSNS, &opts);

	return fd < 0 ? -errno : fd;
}

int alt_stacks_new(struct alt_stacks **out, const struct alt_stack_fields *fields, bool is_other_ns)
{
	auto_free struct alt_stacks *a = fields->iterator ? calloc(1, sizeof(*a)) : NULL;

	if (!a)
		return fields->iterator ? -ENOMEM : -ENOENT;
	a->prog = alt_stacks_load(fields);
	if (a->prog < 0)
		return a->prog;
	a->is_other_ns = is_other_ns;
	*out = take_ptr(a);
	return 0;
}

void alt_stacks_free(struct alt_stacks *a)
{
	if (!a)
		return;
	close(a->prog);
	free(a);
}

/* An iterator over the threads of @pid, or of all processes where the kernel cannot choose. */
static int open_iterator(const struct alt_stacks *a, pid_t pid)
{
	struct task_choice choice = { .pid = (u32)pid };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = (union bpf_iter_link_info *)(void *)&choice,
		    .iter_info_len = sizeof(choice));
	auto_close int link = bpf_link_create(a->prog, 0, BPF_TRACE_ITER, &opts);
	int fd;

	if (link < 0 && !a->is_other_ns)
		link = bpf_link_create(a->prog, 0, BPF_TRACE_ITER, NULL);
	if (link < 0)
		return -errno;
	fd = bpf_iter_create(link);
	return fd < 0 ? -errno : fd;
}

int alt_stacks_read(const struct alt_stacks *a, pid_t pid, int (*add)(void *ctx, taddr_t start), void *ctx)
{
	auto_close int fd = open_iterator(a, pid);
	struct alt_stack list[READ_RECORDS];
	ssize_t len;
	int err = 0;

	if (fd < 0)
		return fd;
	/* The kernel hands out whole records only if there is room: it gives as many bytes as were asked for. */
	while (!err && (len = read(fd, list, sizeof(list))) > 0) {
		if (len % (ssize_t)sizeof(*list))
			return -EPROTO;
		for (size_t i = 0; i < (size_t)len / sizeof(*list) && !err; i++)
			if (a->is_other_ns || list[i].tgid == (u32)pid)
				err = add(ctx, list[i].start);
	}
	return !err && len < 0 ? -errno : err;
}

static int alt_stacks_open(struct alt_stacks **out)
{
	struct source_config config = { .pid_ns_ino = 0 };
	struct kernel_facts_file facts;
	struct caps_env env;

	caps_read_env(&env);
	/* CAP_BPF and CAP_PERFMON: without them the kernel's types need not be read. */
	if (!caps_has_privilege(&env, &caps_privileges[0]) || !caps_has_privilege(&env, &caps_privileges[1]))
		return -EPERM;
	kernel_facts_read(&facts, &env, KERNEL_FACTS_BASE);
	if (!facts.now.has_types)
		kernel_facts_add_types(&facts.now);
	kernel_facts_keep(&facts, KERNEL_FACTS_BASE);
	programs_find_pid_namespace(&config);
	return alt_stacks_new(out, &facts.now.alt_stack, config.pid_ns_ino != 0);
}

struct alt_stacks_listing {
	struct listed_words *list;
	pid_t pid;
};

static int alt_stacks_add(void *ctx, taddr_t start)
{
	struct alt_stacks_listing *l = ctx;
	const struct listed_word word = { start, LISTED_SIGNAL_STACK, l->pid };

	return listed_words_add(l->list, &word);
}

int alt_stacks_list(struct listed_words *list, const pid_t *pids, size_t nr)
{
	struct alt_stacks *a = NULL;
	int err = alt_stacks_open(&a);

	for (size_t i = 0; i < nr && !err; i++) {
		struct alt_stacks_listing l = { list, pids[i] };

		err = alt_stacks_read(a, pids[i], alt_stacks_add, &l);
	}
	alt_stacks_free(a);
	return err;
}
