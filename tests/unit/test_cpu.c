/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Emulated instructions against the CPU: a real program is stepped through, and both must come to the same. */
#include "arch/cpu.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 150000, MAX_WRITES = 4, SYSCALL_WORD_64 = 15 };

/* Memory of the stepped process; writes are noted, not made. */
struct world {
	pid_t pid;
	struct {
		taddr_t addr;
		u8 bytes[16];
		size_t len;
	} writes[MAX_WRITES];
	size_t nr_writes;
};

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const struct world *w = ctx;
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(w->pid, &to, 1, &from, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

static int note_write(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	struct world *w = ctx;

	assert_true(w->nr_writes < MAX_WRITES && len <= sizeof(w->writes[0].bytes));
	w->writes[w->nr_writes].addr = addr;
	w->writes[w->nr_writes].len = len;
	memcpy(w->writes[w->nr_writes++].bytes, buf, len);
	return 0;
}

static pid_t start_stepped(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/bin/ls", "ls", "-l", "/dev/null", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

/* One instruction both ways. False at the end of the program. *@nr_emulated grows. */
static bool step_both(const struct cpu *cpu, pid_t pid, size_t *nr_emulated)
{
	struct world w = { .pid = pid };
	struct cpu_memory memory = { &w, read_memory, note_write };
	struct cpu_regs before, ours, theirs;
	u8 code[CPU_CODE_BYTES], bytes[16];
	taddr_t pc;
	int status, err;

	assert_int_equal(cpu_regs_read(&before, pid), 0);
	ours = before;
	pc = cpu->get(&before, CPU_PC);
	err = read_memory(&w, pc, code, sizeof(code)) ? -EFAULT
						      : cpu->emulate(&ours, code, sizeof(code), &memory);
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		return false;
	if (err) {
		assert_memory_equal(&ours, &before, sizeof(ours));
		return true;
	}
	++*nr_emulated;
	assert_int_equal(cpu_regs_read(&theirs, pid), 0);
	/* Which system call it was is the kernel's own word, and changes behind it. */
	if (cpu->machine == EM_X86_64)
		memcpy(ours.bytes + SYSCALL_WORD_64 * 8, theirs.bytes + SYSCALL_WORD_64 * 8, 8);
	if (memcmp(ours.bytes, theirs.bytes, ours.size))
		print_error("differs: %02x %02x %02x %02x %02x %02x %02x\n", code[0], code[1], code[2],
			    code[3], code[4], code[5], code[6]);
	assert_memory_equal(ours.bytes, theirs.bytes, ours.size);
	for (size_t i = 0; i < w.nr_writes; i++) {
		assert_int_equal(read_memory(&w, w.writes[i].addr, bytes, w.writes[i].len), 0);
		assert_memory_equal(bytes, w.writes[i].bytes, w.writes[i].len);
	}
	return true;
}

static void test_like_the_cpu(void **state)
{
	pid_t pid = start_stepped();
	const struct cpu *cpu;
	size_t nr_emulated = 0, nr = 0;
	int status;

	(void)state;
	assert_int_equal(cpu_of_thread(&cpu, pid), 0);
	if (!cpu->has_step) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		print_message("skipped: no single step on %s\n", cpu->name);
		skip();
	}
	while (nr < STEPS && step_both(cpu, pid, &nr_emulated))
		nr++;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	print_message("%zu of %zu instructions emulated\n", nr_emulated, nr);
	assert_true(nr_emulated > nr / 4);
}

/* Registers by their meaning, and nothing else touched. */
static void test_registers(void **state)
{
	static const u16 machines[][2] = { { EM_X86_64, 8 }, { EM_386, 4 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		const struct cpu *cpu = cpu_find(machines[i][0], (u8)machines[i][1], false);
		struct cpu_regs regs = { .size = 0 };

		assert_non_null(cpu);
		for (enum cpu_reg r = CPU_PC; r <= CPU_FP; r++)
			cpu->set(&regs, r, 0x1000 + r);
		for (enum cpu_reg r = CPU_PC; r <= CPU_FP; r++)
			assert_int_equal(cpu->get(&regs, r), 0x1000 + r);
	}
	assert_null(cpu_find(EM_NONE, 8, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_the_cpu),
		cmocka_unit_test(test_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
