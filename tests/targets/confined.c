/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * confined filter|strict|undumpable|no-fork: allocates under seccomp that allows no more than to write and to end (from
 * memory that it has already); or, until it is killed, without being dumpable, or with a filter that kills it for a
 * fork: then it loses 20,000 blocks of 2,000 bytes for each line from stdin, and says so.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/targets/truth.h"

enum { NR = 50 };

static void *kept[NR];

static void enter(struct sock_filter *filter, size_t nr)
{
	struct sock_fprog program = { (unsigned short)nr, filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void forbid_nearly_all(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	enter(filter, sizeof(filter) / sizeof(*filter));
}

static void forbid_forks(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	enter(filter, sizeof(filter) / sizeof(*filter));
}

FN static void allocates(void)
{
	for (int i = 0; i < NR; i++) {
		kept[i] = malloc(100);
		keep(kept[i]);
	}
}

FN static void lose(void)
{
	for (int i = 0; i < 20000; i++) {
		void *lost = malloc(2000);

		keep(lost);
	}
	scrub();
	puts("lost");
	fflush(stdout);
}

static void release(int nr)
{
	for (int i = 0; i < nr; i++)
		free(kept[i]);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "filter";
	char line[16];

	truth_begin();
	if (!strcmp(how, "undumpable")) {
		prctl(PR_SET_DUMPABLE, 0);
		puts("ready");
		fflush(stdout);
		for (;;) {
			allocates();
			release(NR);
			usleep(1000);
		}
	}
	if (!strcmp(how, "no-fork")) {
		forbid_forks();
		allocates();
		puts("ready");
		fflush(stdout);
		while (fgets(line, sizeof(line), stdin))
			lose();
		for (;;)
			pause();
	}
	/* Memory of the system is taken now. */
	allocates();
	release(NR);
	expect("live 20 2000 allocates");
	expect("allocs 100 10000 allocates");
	if (!strcmp(how, "strict"))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else
		forbid_nearly_all();
	allocates();
	release(30);
	fflush(stdout);
	syscall(SYS_exit, 7);
}
