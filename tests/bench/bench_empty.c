/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a program with empty BPF programs where heaptap would put its own on malloc and free: the measure of them. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "user/lib/elf.h"
#include "user/probe/probe.h"

/* linux/bpf.h of Debian 12 has no uprobe_multi yet; values of Linux 6.6. */
enum { TRACE_UPROBE_MULTI = 48, UPROBE_MULTI_RETURN = 1 };

struct bench {
	char path[64]; /* of libc, by descriptor */
	int prog;
	pid_t pid;
};

static int load_empty(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)TRACE_UPROBE_MULTI);
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "empty", "GPL", insns, ARRAY_SIZE(insns), &opts);
}

/* The link stays until this process ends. */
static int add_link(const struct bench *b, u64 offset, bool is_return)
{
	/* union bpf_attr of Linux 6.6, link_create.uprobe_multi. */
	struct {
		u32 prog_fd, target_fd, attach_type, flags;
		u64 path, offsets, ref_ctr_offsets, cookies;
		u32 cnt, multi_flags, pid, pad;
	} attr = { 0 };

	attr.prog_fd = b->prog;
	attr.attach_type = TRACE_UPROBE_MULTI;
	attr.path = (uintptr_t)b->path;
	attr.offsets = (uintptr_t)&offset;
	attr.cnt = 1;
	attr.multi_flags = is_return ? UPROBE_MULTI_RETURN : 0;
	attr.pid = b->pid;
	return syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static int add_site(const struct bench *b, const struct elf *elf, const struct probe_site *site)
{
	const struct alloc_fn *fn = site->row;
	u64 offset;
	int err = elf_vaddr_to_offset(elf, site->place, &offset);

	if (!err && !strcmp(fn->name, "malloc"))
		err = add_link(b, offset, true);
	else if (strcmp(fn->name, "free"))
		return err;
	return err ? err : add_link(b, offset, false);
}

/* In the C library that this program, like the one to run, is linked with. */
static int add_links(struct bench *b)
{
	const struct probe_options options = { 0 };
	struct probe_list list = { 0 };
	struct elf *elf = NULL;
	Dl_info info;
	int fd, err;

	if (!dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info))
		return -ENOENT;
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(b->path, sizeof(b->path), "/proc/self/fd/%d", fd);
	err = elf_open(&elf, fd);
	if (!err)
		err = probe_list_init(&list, elf, "libc", &options);
	b->prog = err ? err : load_empty();
	if (b->prog < 0)
		err = b->prog;
	for (size_t i = 0; i < list.nr && !err; i++)
		err = add_site(b, elf, &list.sites[i]);
	probe_list_fini(&list);
	elf_close(elf);
	return err;
}

/* Exec when told to. */
static pid_t start(char **argv, int go[2])
{
	char byte;
	pid_t pid = fork();

	if (pid)
		return pid;
	close(go[1]);
	if (read(go[0], &byte, 1) != 1)
		exit(1);
	execv(argv[0], argv);
	exit(127);
}

/* bench_empty PROGRAM [ARG...] */
int main(int argc, char **argv)
{
	struct bench b = { 0 };
	int go[2], status, err;

	if (argc < 2 || pipe2(go, O_CLOEXEC))
		return 2;
	b.pid = start(argv + 1, go);
	err = b.pid < 0 ? -errno : add_links(&b);
	if (err)
		fprintf(stderr, "bench_empty: %s\n", strerror(-err));
	else if (write(go[1], "g", 1) != 1)
		err = -errno;
	close(go[1]);
	if (waitpid(b.pid, &status, 0) < 0 || err)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
