/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Emulated instructions against the CPU that this runs on: instructions of real code, with registers that are made up,
 * are carried out by both, and must come to the same. Needs no single step and libc only: runs in small guests. For x86
 * tests/unit/arch/test_cpu.c does so, by single steps.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/cpu_x86.h"

enum {
	PAGE = 4096,
	AREA = 8 * PAGE, /* code, then data */
	DATA = 4 * PAGE,
	MAX_WRITES = 4,
	WRITE_BYTES = 128,
	MAX_PRINTED = 20,
};

/* The random input and the compared output, as words in the kernel's order. */
struct shape {
	u16 machine;
	u8 word_size;
	u8 general[2]; /* may hold anything */
	u8 special[4]; /* too: 0 ends the list */
	u8 flags;      /* this word, */
	u64 flag_bits; /* in these bits */
	u8 kept;       /* a word that only the kernel writes: never compared (0 = none) */
	u8 step;       /* instructions begin at multiples of this */
	u32 syscall_mask, syscall_value;
};

static const struct shape shapes[] = {
	{ EM_AARCH64, 8, { 0, 30 }, { 0 }, 33, 0xf0000000, 0, 4, 0xff00001f, 0xd4000001 },
	{ EM_ARM, 4, { 0, 12 }, { 14 }, 16, 0xf0000000, 17, 4, 0x0f000000, 0x0f000000 },
	{ EM_RISCV, 8, { 1, 31 }, { 0 }, 0, 0, 0, 2, 0x7f, 0x73 },
	{ EM_MIPS, 4, { 7, 37 }, { 38, 39 }, 0, 0, 0, 4, 0xfc00003f, 0x0c },
	{ EM_PPC, 4, { 0, 31 }, { 35, 36, 38 }, 37, 0xe0000000, 0, 4, 0xfc000000, 0x44000000 },
};

struct world {
	pid_t pid;
	const struct cpu *cpu;
	const struct shape *shape;
	bool is_thumb;
	u8 *area;	       /* shared with the child, at the same address */
	struct cpu_regs start; /* of the child */
	size_t nr_writes;
	struct {
		taddr_t addr;
		size_t len;
		u8 bytes[WRITE_BYTES];
	} writes[MAX_WRITES];
	u64 seed;
	size_t nr_tried, nr_emulated, nr_gone_on, nr_unknown, nr_wrong;
};

static u64 made_up(struct world *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed;
}

static u8 *place(struct world *w, taddr_t addr, size_t len)
{
	taddr_t begin = (uintptr_t)w->area;

	return addr >= begin && addr + len <= begin + AREA ? w->area + (addr - begin) : NULL;
}

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const u8 *from = place(ctx, addr, len);

	if (!from)
		return -EFAULT;
	memcpy(buf, from, len);
	return 0;
}

static int note_write(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	struct world *w = ctx;

	if (place(w, addr, len) < w->area + DATA || w->nr_writes == MAX_WRITES || len > WRITE_BYTES)
		return -EFAULT;
	w->writes[w->nr_writes].addr = addr;
	w->writes[w->nr_writes].len = len;
	memcpy(w->writes[w->nr_writes++].bytes, buf, len);
	return 0;
}

static void child(const struct world *w)
{
	/* An instruction that is not emulated may write anywhere. */
	mprotect(w->area, DATA, PROT_READ | PROT_EXEC);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	alarm(300);
	raise(SIGSTOP);
	_exit(1);
}

static u64 word_of(const struct world *w, const struct cpu_regs *regs, u8 index)
{
	u64 wide = 0;
	u32 word = 0;

	if (w->cpu->word_size == 8)
		memcpy(&wide, regs->bytes + index * 8, 8);
	else
		memcpy(&word, regs->bytes + index * 4, 4);
	return w->cpu->word_size == 8 ? wide : word;
}

static void set_word(struct world *w, struct cpu_regs *regs, u8 index, u64 value)
{
	u32 word = (u32)value;

	if (w->cpu->word_size == 8)
		memcpy(regs->bytes + index * 8, &value, 8);
	else
		memcpy(regs->bytes + index * 4, &word, 4);
}

/* A place in the data, in the code, a small number, or anything. */
static u64 made_up_value(struct world *w)
{
	u64 kind = made_up(w) % 8;

	if (kind < 5)
		return (uintptr_t)w->area + DATA + PAGE + made_up(w) % (2 * PAGE) / 8 * 8;
	if (kind == 5)
		return (uintptr_t)w->area + PAGE + made_up(w) % PAGE / 16 * 16;
	return kind < 7 ? made_up(w) % 64 : made_up(w) >> 20; /* addresses may have no more bits */
}

static void make_up_regs(struct world *w, struct cpu_regs *regs, taddr_t pc)
{
	const struct shape *s = w->shape;

	*regs = w->start;
	for (u8 i = s->general[0]; i <= s->general[1]; i++)
		set_word(w, regs, i, made_up_value(w));
	for (size_t i = 0; i < sizeof(s->special) && s->special[i]; i++)
		set_word(w, regs, s->special[i], made_up_value(w));
	if (s->flag_bits)
		set_word(w, regs, s->flags,
			 (word_of(w, regs, s->flags) & ~s->flag_bits) | (made_up(w) & s->flag_bits));
	cpu_set(w->cpu, regs, CPU_SP, (uintptr_t)w->area + DATA + 2 * PAGE + made_up(w) % 64 * 16);
	cpu_set(w->cpu, regs, CPU_PC, pc | w->is_thumb);
}

/* The word whose difference means something? */
static bool is_compared(const struct world *w, u8 index)
{
	const struct shape *s = w->shape;

	if (index == s->flags && s->flag_bits)
		return true;
	for (size_t i = 0; i < sizeof(s->special) && s->special[i]; i++)
		if (s->special[i] == index)
			return true;
	/* The kernel's own registers, which it does not keep. */
	if (s->machine == EM_MIPS && (index == 6 + 26 || index == 6 + 27))
		return false;
	return index >= s->general[0] && index <= s->general[1] && (index != s->kept || !s->kept);
}

static bool is_same(struct world *w, const struct cpu_regs *ours, const struct cpu_regs *theirs)
{
	const struct shape *s = w->shape;
	bool same = true;

	for (u8 i = 0; i < w->start.size / w->cpu->word_size; i++) {
		u64 mask = i == s->flags && s->flag_bits ? s->flag_bits : ~0ULL;

		if (!is_compared(w, i) || !((word_of(w, ours, i) ^ word_of(w, theirs, i)) & mask))
			continue;
		if (w->nr_wrong < MAX_PRINTED)
			printf("# word %u is %llx, emulated %llx\n", i,
			       (unsigned long long)word_of(w, theirs, i),
			       (unsigned long long)word_of(w, ours, i));
		same = false;
	}
	if (cpu_get(w->cpu, ours, CPU_PC) != cpu_get(w->cpu, theirs, CPU_PC)) {
		if (w->nr_wrong < MAX_PRINTED)
			printf("# pc is %llx, emulated %llx\n",
			       (unsigned long long)cpu_get(w->cpu, theirs, CPU_PC),
			       (unsigned long long)cpu_get(w->cpu, ours, CPU_PC));
		same = false;
	}
	for (size_t i = 0; i < w->nr_writes; i++) {
		if (!memcmp(place(w, w->writes[i].addr, w->writes[i].len), w->writes[i].bytes,
			    w->writes[i].len))
			continue;
		if (w->nr_wrong < MAX_PRINTED)
			printf("# memory differs\n");
		same = false;
	}
	return same;
}

static void put_traps(struct world *w, u8 *from, u8 *to)
{
	u8 trap[CPU_BREAKPOINT_BYTES];
	size_t size = cpu_breakpoint(w->cpu, (uintptr_t)from | w->is_thumb, trap);

	for (; from < to; from += size)
		memcpy(from, trap, size);
}

/* Breakpoints everywhere but at the instruction. */
static void put_code(struct world *w, u8 *at, const u8 *code, size_t len)
{
	memcpy(at, code, len);
	put_traps(w, at + len, at + 64);
	__builtin___clear_cache((char *)at, (char *)at + 64);
}

static void make_up_data(struct world *w)
{
	for (u8 *p = w->area + DATA; p < w->area + AREA; p += 8) {
		u64 value = made_up_value(w);

		memcpy(p, &value, 8);
	}
}

/* Run until it stops. The signal, 0 if it is gone; @regs: with pc at the place where it is. */
static int run(struct world *w, struct cpu_regs *regs)
{
	int status;

	if (cpu_regs_write(regs, w->pid) || ptrace(PTRACE_CONT, w->pid, 0, 0) ||
	    waitpid(w->pid, &status, 0) < 0 || !WIFSTOPPED(status) || cpu_regs_read(regs, w->pid))
		return 0;
	if (WSTOPSIG(status) == SIGTRAP)
		cpu_set(w->cpu, regs, CPU_PC, cpu_get(w->cpu, regs, CPU_PC) - w->cpu->trap_skip);
	return WSTOPSIG(status);
}

static void tell_wrong(struct world *w, const u8 *code, const char *why)
{
	if (w->nr_wrong++ < MAX_PRINTED)
		printf("# %s: %02x %02x %02x %02x %02x %02x %02x %02x\n", why, code[0], code[1], code[2],
		       code[3], code[4], code[5], code[6], code[7]);
}

/* One that is not emulated: does it go on to the next one, as cpu_insn_length() says? */
static bool try_length(struct world *w, struct cpu_regs *regs, const u8 *code, taddr_t pc)
{
	size_t length = cpu_insn_length(w->cpu, regs, code, CPU_CODE_BYTES);
	int sig;

	w->nr_unknown += !length;
	if (!length)
		return true;
	sig = run(w, regs);
	if (sig == SIGTRAP && cpu_get(w->cpu, regs, CPU_PC) != ((pc + length) | w->is_thumb))
		tell_wrong(w, code, "does not go on to the next one");
	w->nr_gone_on += sig == SIGTRAP;
	return sig;
}

/* Of the instruction at @code, with that in its delay slot. */
static size_t insn_bytes(const struct world *w, const struct cpu_regs *regs, const u8 *code)
{
	if (w->is_thumb)
		return code[1] >> 3 >= 0x1d ? 4 : 2;
	if (w->shape->machine == EM_RISCV)
		return (code[0] & 3) == 3 ? 4 : 2;
	return w->shape->machine == EM_MIPS && !cpu_insn_length(w->cpu, regs, code, CPU_CODE_BYTES) ? 8 : 4;
}

static bool is_system_call(const struct world *w, const u8 *code)
{
	u32 word = 0;

	if (w->is_thumb)
		return code[1] == 0xdf;
	for (size_t i = 0; i < 4; i++)
		word = word << 8 | code[w->cpu->is_big ? i : 3 - i];
	return (word & w->shape->syscall_mask) == w->shape->syscall_value;
}

/* The bytes at @code by both. False when the child is gone. */
static bool try_one(struct world *w, const u8 *code)
{
	u8 *at = w->area + 2 * PAGE;
	struct cpu_memory memory = { w, read_memory, note_write };
	struct cpu_regs ours, theirs;
	taddr_t pc = (uintptr_t)at;
	int err, sig;

	if (is_system_call(w, code) || (w->is_thumb && code[1] == 0xbf))
		return true; /* and behind an IT instruction breakpoints have conditions */
	make_up_regs(w, &ours, pc);
	put_code(w, at, code, insn_bytes(w, &ours, code));
	theirs = ours;
	w->nr_writes = 0;
	err = cpu_emulate(w->cpu, &ours, code, CPU_CODE_BYTES, &memory);
	if (err == -ENOTSUP)
		return try_length(w, &theirs, code, pc);
	/* Some CPUs would run data, too. */
	if (err || cpu_get(w->cpu, &ours, CPU_PC) == (pc | w->is_thumb) ||
	    place(w, cpu_get(w->cpu, &ours, CPU_PC), 1) >= w->area + DATA)
		return true;
	/* The traps are of one instruction set. */
	if (w->shape->machine == EM_ARM && (cpu_get(w->cpu, &ours, CPU_PC) & 1) != w->is_thumb)
		return true;
	sig = run(w, &theirs);
	/* Where it went there may be no code. */
	if (sig && sig != SIGTRAP && cpu_get(w->cpu, &theirs, CPU_PC) == (pc | w->is_thumb))
		tell_wrong(w, code, strsignal(sig));
	else if (sig && sig != SIGILL && !is_same(w, &ours, &theirs))
		tell_wrong(w, code, "differs");
	w->nr_emulated++;
	return sig;
}

static bool start(struct world *w)
{
	int status;

	/* Above where the heap of a program may begin, below where libraries do. */
	w->area = mmap((void *)0x60000000, AREA, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (w->area == MAP_FAILED || mprotect(w->area + DATA, AREA - DATA, PROT_READ | PROT_WRITE))
		return false;
	w->pid = fork();
	if (!w->pid)
		child(w);
	if (waitpid(w->pid, &status, 0) < 0 || !WIFSTOPPED(status) || cpu_of_thread(&w->cpu, w->pid) ||
	    cpu_regs_read(&w->start, w->pid))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (shapes[i].machine == w->cpu->machine && shapes[i].word_size == w->cpu->word_size)
			w->shape = &shapes[i];
	return w->shape;
}

/* Every @stride-th instruction of the code from @from to @to. */
static bool try_all(struct world *w, const u8 *from, const u8 *to, size_t nr)
{
	size_t step = w->is_thumb ? 2 : w->shape->step;
	size_t stride = (size_t)(to - from) / (nr * step) + 1;

	put_traps(w, w->area, w->area + DATA);
	for (const u8 *p = from; p + CPU_CODE_BYTES <= to; p += step * (1 + made_up(w) % (2 * stride))) {
		if (!(w->nr_tried++ % 128))
			make_up_data(w);
		if (!try_one(w, p))
			return false;
	}
	return true;
}

extern const u8 text_begins[] __asm__("__executable_start"), text_ends[] __asm__("etext");

int main(int argc, char **argv)
{
	struct world w = { .seed = 0x123456789abcdefULL };
	const u8 *from = text_begins + 4 * PAGE, *to = text_ends;
	size_t nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 4000;

	w.is_thumb = argc > 2 && !strcmp(argv[2], "thumb");
	if (!start(&w)) {
		printf("# cannot start: %s\n", strerror(errno));
		return 2;
	}
	/* Only the files of arch/ are compiled to ARM code: from arch/cpu.c to arch/cpu_x86_emulate.c. */
	if (w.shape->machine == EM_ARM && !w.is_thumb) {
		from = (const u8 *)(uintptr_t)cpu_find;
		to = (const u8 *)(uintptr_t)cpu_x86_emulate;
	}
	if (!try_all(&w, from, to, nr))
		printf("# the child is gone\n");
	printf("# %s%s: %zu emulated, %zu go on to the next, %zu unknown, %zu wrong\n", w.cpu->name,
	       w.is_thumb ? " thumb" : "", w.nr_emulated, w.nr_gone_on, w.nr_unknown, w.nr_wrong);
	kill(w.pid, SIGKILL);
	return w.nr_wrong || w.nr_emulated < nr / 8;
}
