/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stack walks: of this program against what it knows of its own calls, and of made-up stacks by each rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>

#include "arch/cpu.h"
#include "arch/unwind.h"
#include "tests/unit/elf_files.h"
#include "user/unwind/cfi.h"
#include "user/lib/elf.h"
#include "fallback/unwind.h"
#include "tests/unit/skip.h"

enum { MAX_OBJECTS = 64, MAX_FRAMES = 200, DEPTH = 50 };

struct object {
	u64 bias, start, end; /* of its executable part */
	struct cfi_table *table;
};

/* This process, as a target. */
static struct {
	struct object objects[MAX_OBJECTS];
	size_t nr;
	int mem;
	bool has_no_tables;
} self;

static int open_object(const struct dl_phdr_info *info, u64 end)
{
	u64 vdso = getauxval(AT_SYSINFO_EHDR);

	if (vdso && vdso >= info->dlpi_addr && vdso < end)
		return elf_files_memory((const void *)(uintptr_t)vdso,
					4096 * (size_t)((end - vdso + 4095) / 4096));
	return open(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static int add_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct object *o = &self.objects[self.nr];
	struct elf *elf;
	int fd;

	(void)size;
	(void)ctx;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		*o = (struct object){ info->dlpi_addr, info->dlpi_addr + p->p_vaddr,
				      info->dlpi_addr + p->p_vaddr + p->p_memsz, NULL };
	}
	fd = open_object(info, o->end);
	if (fd >= 0 && elf_open(&elf, fd) == 0) {
		if (cfi_build(&o->table, elf))
			print_message("# no unwind information: %s\n", info->dlpi_name);
		elf_close(elf);
	}
	if (fd >= 0)
		close(fd);
	return ++self.nr == MAX_OBJECTS;
}

static int open_self(void **state)
{
	(void)state;
	self.mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	dl_iterate_phdr(add_object, NULL);
	return self.mem < 0;
}

static int close_self(void **state)
{
	(void)state;
	while (self.nr)
		cfi_free(self.objects[--self.nr].table);
	close(self.mem);
	return 0;
}

static int read_self(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	return pread(self.mem, buf, len, (off_t)addr) == (ssize_t)len ? 0 : -EFAULT;
}

static bool find_self(void *ctx, taddr_t pc, struct unwind_place *place)
{
	(void)ctx;
	for (size_t i = 0; i < self.nr; i++) {
		const struct object *o = &self.objects[i];

		if (pc < o->start || pc >= o->end)
			continue;
		place->table = self.has_no_tables ? NULL : o->table;
		place->bias = o->bias;
		return true;
	}
	return false;
}

/* Two opinions of one stack. */
struct captured {
	taddr_t ips[MAX_FRAMES];
	size_t nr, max;
	enum stack_end end;
	void *by_libc[MAX_FRAMES]; /* by backtrace(): this function first */
	void **want;		   /* the part of it that begins with the caller */
	size_t nr_want;
};

static struct captured captured;
static void *truth[DEPTH]; /* return addresses, outermost first */

/* Not inlined and not a tail call, so that there is a frame. */
static __attribute__((noinline)) void capture(struct captured *c)
{
	struct unwinder u = { .read = read_self, .find = find_self };
	struct unwind_regs regs = { 0 };

#if defined(__x86_64__)
	u.arch = unwind_arch(EM_X86_64, 8);
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=r"(regs.pc), "=r"(regs.sp), "=r"(regs.fp));
#elif defined(__aarch64__)
	u.arch = unwind_arch(EM_AARCH64, 8);
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
			 : "=r"(regs.pc), "=r"(regs.sp), "=r"(regs.fp), "=r"(regs.lr));
#endif
	if (!u.arch)
		skip_because("this CPU's registers are not known to the test");
	c->nr = unwind_walk(&u, &regs, c->ips, c->max ? c->max : MAX_FRAMES, &c->end);
	/* A sanitizer has a backtrace() of its own, which adds itself. */
	c->nr_want = (size_t)backtrace(c->by_libc, MAX_FRAMES);
	for (c->want = c->by_libc; c->nr_want && (uintptr_t)*c->want != c->ips[0]; c->want++)
		c->nr_want--;
}

static void check_captured(const struct captured *c)
{
	assert_int_equal(c->end, STACK_COMPLETE);
	assert_int_equal(c->nr, c->nr_want);
	for (size_t i = 0; i < c->nr; i++)
		assert_int_equal(c->ips[i], (uintptr_t)c->want[i]);
}

/* Frames of changing size, with the frame pointer in use where alloca() is. */
static __attribute__((noinline)) int recurse(int depth, void (*leaf)(void))
{
	volatile char *room = NULL;
	volatile int result;

	truth[DEPTH - 1 - depth] = __builtin_return_address(0);
	if (depth % 3 == 1) {
		room = alloca(16 + (size_t)depth * 24);
		room[0] = (char)depth;
	}
	if (depth == 0)
		leaf();
	else
		recurse(depth - 1, leaf);
	result = room ? room[0] : 0;
	return result;
}

static __attribute__((noinline)) void capture_leaf(void)
{
	capture(&captured);
	__asm__ volatile("" ::: "memory");
}

static void test_recursion(void **state)
{
	(void)state;
	recurse(DEPTH - 1, capture_leaf);
	check_captured(&captured);
	/* ips: into capture_leaf, into recurse(0), then what each recurse() knows of its caller. */
	for (size_t i = 0; i < DEPTH; i++)
		assert_int_equal(captured.ips[2 + i], (uintptr_t)truth[DEPTH - 1 - i]);
}

/* A walk ends at the depth that was asked for (C3). */
static void test_depth_limit(void **state)
{
	(void)state;
	captured.max = 10;
	recurse(DEPTH - 1, capture_leaf);
	captured.max = 0;
	assert_int_equal(captured.nr, 10);
	assert_int_equal(captured.end, STACK_DEPTH);
	assert_int_equal(captured.ips[9], (uintptr_t)truth[DEPTH - 1 - 7]);
}

static int compare_ints(const void *left, const void *right)
{
	capture(&captured);
	return *(const int *)left - *(const int *)right;
}

/* Through the C library, which has no frame pointers. */
static void test_callback(void **state)
{
	int numbers[] = { 3, 1, 2 };

	(void)state;
	qsort(numbers, 3, sizeof(int), compare_ints);
	check_captured(&captured);
}

static void *thread_main(void *ctx)
{
	recurse(20, capture_leaf);
	return ctx;
}

static void test_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	check_captured(&captured);
}

static void on_signal(int signo)
{
	(void)signo;
	capture(&captured);
}

static void raise_leaf(void)
{
	raise(SIGUSR1);
	__asm__ volatile("" ::: "memory");
}

static bool is_interrupted_by_one(taddr_t ip, void *want)
{
	return ip == (uintptr_t)want + 1;
}

static void check_signal(int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
	size_t nr_exact = 0;

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	recurse(DEPTH - 1, raise_leaf);
	assert_int_equal(captured.end, STACK_COMPLETE);
	assert_int_equal(captured.nr, captured.nr_want);
	for (size_t i = 0; i < captured.nr; i++) {
		/* Where the signal interrupted, ours is one more: it stands for the byte before. */
		if (is_interrupted_by_one(captured.ips[i], captured.want[i]))
			nr_exact++;
		else
			assert_int_equal(captured.ips[i], (uintptr_t)captured.want[i]);
	}
	assert_int_equal(nr_exact, 1);
}

static void test_signal(void **state)
{
	(void)state;
	check_signal(0);
}

static void test_signal_stack(void **state)
{
	stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 }, none = { .ss_flags = SS_DISABLE };

	(void)state;
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	check_signal(SA_ONSTACK);
	assert_int_equal(sigaltstack(&none, NULL), 0);
	free(stack.ss_sp);
}

/* Whatever the frame pointer holds, no frame may be invented and the end must not claim to be complete. */
static void test_without_tables(void **state)
{
	(void)state;
	self.has_no_tables = true;
	recurse(DEPTH - 1, capture_leaf);
	self.has_no_tables = false;
	for (size_t i = 0; i < captured.nr; i++) {
		bool is_real = false;

		for (size_t j = 0; j < captured.nr_want; j++)
			is_real |= captured.ips[i] == (uintptr_t)captured.want[j];
		assert_true(is_real);
	}
	assert_true(captured.end == STACK_GUESSED || captured.end == STACK_NO_INFO);
}

/* A made-up stack: words at 0x1000, code at 0x400000 with one rule per 16 bytes. */
enum { STACK_AT = 0x1000, NR_WORDS = 80, CODE_AT = 0x400000 };

struct made {
	const struct unwind_arch *arch;
	bool is_big;
	struct cfi_row rows[4];
	size_t nr_rows;
	bool has_signal_code;	 /* at CODE_AT + 0x200, which has no row */
	bool has_calls;		 /* before each return address */
	bool has_coroutine_code; /* at CODE_AT + 0x200 */
	taddr_t start_sp;
	u64 words[NR_WORDS];
	struct cfi_table table;
};

static int read_made(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const struct made *m = ctx;
	size_t word = m->arch->word_size;

	if (addr == CODE_AT + 0x200 && (m->has_signal_code || m->has_coroutine_code)) {
		u64 code = m->has_signal_code ? m->arch->signal_code : m->arch->coroutine_code;

		for (size_t i = 0; i < len; i++)
			((u8 *)buf)[i] = (u8)(code >> 8 * i);
		return 0;
	}
	if (addr >= CODE_AT && m->has_calls && len <= 8) {
		memcpy(buf, &"\0\0\0\xe8\0\0\0\0"[8 - len], len);
		return 0;
	}
	if (addr < STACK_AT || (addr - STACK_AT) / word >= NR_WORDS || addr % word || len != word)
		return -EFAULT;
	for (size_t i = 0; i < len; i++)
		((u8 *)buf)[m->is_big ? len - 1 - i : i] =
			(u8)(m->words[(addr - STACK_AT) / word] >> (8 * i));
	return 0;
}

static bool find_made(void *ctx, taddr_t pc, struct unwind_place *place)
{
	struct made *m = ctx;

	place->table = m->nr_rows ? &m->table : NULL;
	place->bias = 0;
	return pc >= CODE_AT && pc < CODE_AT + 0x1000;
}

static size_t walk_made(struct made *m, const struct unwind_regs *regs, taddr_t *ips, size_t max,
			enum stack_end *end)
{
	struct unwinder u = { .arch = m->arch,
			      .is_big = m->is_big,
			      .start_sp = m->start_sp,
			      .ctx = m,
			      .read = read_made,
			      .find = find_made };

	u.address_mask = cpu_find(m->arch->machine, m->arch->word_size, m->is_big)->code_mask;
	m->table = (struct cfi_table){ .text_base = CODE_AT, .rows = m->rows, .nr_rows = m->nr_rows };
	return unwind_walk(&u, regs, ips, max, end);
}

/* One step by @rule from sp 0x1000 + 4 words, fp 0x1000 + 8 words; words hold code addresses by their number. */
struct rule_case {
	const char *name;
	u16 machine;
	u32 kind;
	s32 cfa_words;
	u32 save, save_words;
	s32 want_word; /* number of the word with the return address; -1: lr; -2: none */
	enum stack_end want_end;
};

static const struct rule_case rule_cases[] = {
	{ "sp", EM_X86_64, CFI_SP, 3, CFI_SAME, 0, 6, STACK_COMPLETE },
	{ "fp", EM_X86_64, CFI_FP, 2, CFI_FP_AT_CFA, 2, 9, STACK_COMPLETE },
	{ "fp i386", EM_386, CFI_FP, 2, CFI_FP_AT_CFA, 2, 9, STACK_COMPLETE },
	{ "deref fp", EM_X86_64, CFI_DEREF_FP, -1, CFI_FP_AT_BASE, 0, 11, STACK_COMPLETE },
	{ "deref sp + word", EM_X86_64, CFI_DEREF_SP_WORD, 3, CFI_SAME, 0, 12, STACK_COMPLETE },
	{ "plt", EM_X86_64, CFI_PLT, 1, CFI_SAME, 11, 4, STACK_COMPLETE },
	{ "plt, pushed", EM_X86_64, CFI_PLT, 1, CFI_SAME, 1, 5, STACK_COMPLETE },
	{ "signal", EM_X86_64, CFI_SIGNAL, 5, 0, 0, 10, STACK_COMPLETE },
	{ "leaf", EM_AARCH64, CFI_SP, 0, CFI_SAME, 0, -1, STACK_COMPLETE },
	{ "pair", EM_AARCH64, CFI_SP, 4, CFI_PAIR_AT_CFA, 4, 5, STACK_COMPLETE },
	{ "pair at base", EM_AARCH64, CFI_FP, 8, CFI_PAIR_AT_BASE, 1, 10, STACK_COMPLETE },
	{ "ra alone", EM_AARCH64, CFI_SP, 4, CFI_RA_AT_CFA, 2, 6, STACK_COMPLETE },
	{ "ra alone at sp", EM_AARCH64, CFI_SP_RA_AT_SP, 4, CFI_RA_AT_CFA, 1, 5, STACK_COMPLETE },
	{ "thumb", EM_ARM, CFI_SP, 4, CFI_RA_AT_CFA, 3, 5, STACK_COMPLETE },
	{ "outermost", EM_X86_64, CFI_OUTERMOST, 0, 0, 0, -2, STACK_COMPLETE },
	{ "unsupported", EM_X86_64, CFI_UNSUPPORTED, 0, 0, 0, -2, STACK_UNSUPPORTED },
	{ "same cfa", EM_X86_64, CFI_SP, 0, CFI_SAME, 0, -2, STACK_NOT_GROWING },
	{ "cfa below", EM_X86_64, CFI_SP, -2, CFI_SAME, 0, -2, STACK_NOT_GROWING },
	{ "unreadable", EM_X86_64, CFI_SP, 1000, CFI_SAME, 0, -2, STACK_UNREADABLE },
};

static void fill_words(struct made *m)
{
	for (size_t i = 0; i < NR_WORDS; i++)
		m->words[i] = CODE_AT + 0x20 + i;	  /* in the row that is the outermost */
	m->words[7] = STACK_AT + 12 * m->arch->word_size; /* for the rules that look a CFA up */
}

/* Each kind of rule finds the caller, or ends the walk (C3). */
static void test_each_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rule_cases); i++) {
		const struct rule_case *c = &rule_cases[i];
		bool has_8 = c->machine == EM_X86_64 || c->machine == EM_AARCH64;
		struct made m = { .arch = unwind_arch(c->machine, has_8 ? 8 : 4) };
		u32 rule = cfi_rule(c->kind, c->cfa_words, c->save, c->save_words);
		u64 word = m.arch->word_size, want;
		struct unwind_regs regs = { .pc = CODE_AT + 7,
					    .sp = STACK_AT + 4 * word,
					    .fp = STACK_AT + 8 * word };
		enum stack_end end;
		taddr_t ips[4];
		size_t nr;

		print_message("# %s\n", c->name);
		fill_words(&m);
		m.rows[0] = (struct cfi_row){ 0, rule };
		m.rows[1] = (struct cfi_row){ 16, cfi_rule(CFI_OUTERMOST, 0, 0, 0) };
		m.rows[2] = (struct cfi_row){ 0x100, CFI_NONE };
		m.nr_rows = 3;
		regs.lr = 0x00ab000000000000 | (CODE_AT + 0x50); /* signed */
		nr = walk_made(&m, &regs, ips, 4, &end);
		assert_int_equal(end, c->want_end);
		assert_int_equal(nr, c->want_word == -2 ? 0 : 1);
		if (c->want_word == -2)
			continue;
		want = c->want_word == -1 ? CODE_AT + 0x50 : m.words[c->want_word];
		want &= c->machine == EM_ARM ? ~1ULL : ~0ULL; /* the mark of Thumb code */
		assert_int_equal(ips[0], want + (c->kind == CFI_SIGNAL));
	}
}

/* Frame pointers alone: three frames, then the ABI's end mark; then each word damaged in turn. */
static void test_frame_pointers(void **state)
{
	static const struct {
		size_t word;
		u64 value;
		size_t nr;
		enum stack_end end;
		bool has_calls;
	} damage[] = {
		{ NR_WORDS - 1, 0, 3, STACK_GUESSED },
		{ 0, STACK_AT + 9, 1, STACK_NO_INFO },
		{ 0, STACK_AT, 0, STACK_NO_INFO },
		{ 0, STACK_AT, 1, STACK_NO_INFO, .has_calls = true },
		{ 1, 0x99, 0, STACK_NO_INFO },
		{ 6, 1ULL << 40, 2, STACK_NO_INFO },
		{ 7, 0, 1, STACK_NO_INFO },
		{ 0, STACK_AT + NR_WORDS * 8, 1, STACK_NO_INFO },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
		struct made m = { .arch = unwind_arch(EM_X86_64, 8) };
		struct unwind_regs regs = { .pc = CODE_AT + 7, .sp = STACK_AT, .fp = STACK_AT };
		enum stack_end end;
		taddr_t ips[8];

		m.words[0] = STACK_AT + 6 * 8;
		m.words[1] = CODE_AT + 0x100;
		m.words[6] = STACK_AT + 10 * 8;
		m.words[7] = CODE_AT + 0x200;
		m.words[10] = 0;
		m.words[11] = CODE_AT + 0x300;
		m.words[damage[i].word] = damage[i].value;
		m.has_calls = damage[i].has_calls;
		assert_int_equal(walk_made(&m, &regs, ips, 8, &end), damage[i].nr);
		assert_int_equal(end, damage[i].end);
	}
}

/* A realigned frame was left by its frame pointer, not where its caller's begins: what is found there is looked at. */
static void test_behind_guess(void **state)
{
	static const struct {
		taddr_t pc; /* taken for the return address of the caller */
		bool has_calls, has_signal_code;
		size_t nr;
		enum stack_end end;
	} cases[] = {
		{ CODE_AT + 0x90, false, false, 1, STACK_NO_INFO },
		{ 0, false, false, 1, STACK_NO_INFO },
		{ CODE_AT + 0x90, true, false, 2, STACK_GUESSED },
		{ CODE_AT + 6, true, false, 2, STACK_NO_INFO }, /* no page before it */
		{ CODE_AT + 6, false, false, 1, STACK_NO_INFO },
		{ CODE_AT + 0x200, false, true, 3,
		  STACK_UNMAPPED }, /* a handler's return, then a call of 0 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made m = { .arch = unwind_arch(EM_X86_64, 8), .nr_rows = 3 };
		struct unwind_regs regs = { .pc = CODE_AT + 7, .sp = STACK_AT, .fp = STACK_AT };
		enum stack_end end;
		taddr_t ips[8];

		m.rows[0] = (struct cfi_row){ 0, CFI_NONE };
		m.rows[1] = (struct cfi_row){ 0x80, cfi_rule(CFI_SP, 2, CFI_SAME, 0) };
		m.rows[2] = (struct cfi_row){ 0x100, CFI_NONE };
		m.words[1] = CODE_AT + 0x90;
		m.words[3] = cases[i].pc;
		m.has_calls = cases[i].has_calls;
		m.has_signal_code = cases[i].has_signal_code;
		assert_int_equal(walk_made(&m, &regs, ips, 8, &end), cases[i].nr);
		assert_int_equal(end, cases[i].end);
	}
}

/* Code before a return address that is a call, and code that is not. */
static void test_call_code(void **state)
{
	static const struct {
		u16 machine;
		bool is_call;
		u8 bytes[8];
	} codes[] = {
		{ EM_X86_64, true, { 0, 0, 0, 0xe8, 1, 2, 3, 4 } },
		{ EM_X86_64, true, { 0, 0, 0, 0, 0, 0, 0xff, 0xd0 } },
		{ EM_X86_64, true, { 0, 0, 0, 0, 0, 0xff, 0x52, 8 } },
		{ EM_X86_64, true, { 0, 0, 0, 0, 0xff, 0x54, 0x24, 8 } },
		{ EM_X86_64, true, { 0, 0, 0xff, 0x15, 1, 2, 3, 4 } },
		{ EM_386, true, { 0, 0xff, 0x94, 0x24, 1, 2, 3, 4 } },
		{ EM_X86_64, false, { 0, 0, 0, 0, 0, 0, 0xff, 0xe0 } },
		{ EM_X86_64, false, { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 } },
		{ EM_AARCH64, true, { 0, 0, 0, 0, 0x02, 0, 0, 0x94 } },
		{ EM_AARCH64, true, { 0, 0, 0, 0, 0x60, 0, 0x3f, 0xd6 } },
		{ EM_AARCH64, true, { 0, 0, 0, 0, 0x1f, 0x08, 0x3f, 0xd6 } },
		{ EM_AARCH64, false, { 0, 0, 0, 0x94, 0, 0, 0x1f, 0xd6 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		const struct unwind_arch *arch =
			unwind_arch(codes[i].machine, codes[i].machine == EM_386 ? 4 : 8);
		u64 code = 0;

		for (size_t k = 8; k-- > 0;)
			code = code << 8 | codes[i].bytes[k];
		assert_int_equal(arch->is_call(code), codes[i].is_call);
	}
}

/* At a function's first instruction no table is needed. */
static void test_entry(void **state)
{
	static const u16 machines[] = { EM_X86_64, EM_386, EM_AARCH64 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		struct made m = { .arch = unwind_arch(machines[i], machines[i] == EM_386 ? 4 : 8) };
		struct unwind_regs regs = { .pc = 0x10, .sp = STACK_AT, .is_at_entry = true };
		enum stack_end end;
		taddr_t ips[2];

		m.rows[0] = (struct cfi_row){ 0, cfi_rule(CFI_OUTERMOST, 0, 0, 0) };
		m.nr_rows = 1;
		regs.lr = m.words[0] = CODE_AT + 0x10;
		assert_int_equal(walk_made(&m, &regs, ips, 2, &end), 1);
		assert_int_equal(ips[0], CODE_AT + 0x10);
		assert_int_equal(end, STACK_COMPLETE);
	}
}

/* A call at the very end of a function returns to where another begins. */
static void test_call_at_the_end(void **state)
{
	struct made m = { .arch = unwind_arch(EM_X86_64, 8), .nr_rows = 3 };
	struct unwind_regs regs = { .pc = CODE_AT + 0x200, .sp = STACK_AT, .is_at_entry = true };
	enum stack_end end;
	taddr_t ips[4];

	(void)state;
	m.rows[0] = (struct cfi_row){ 0, cfi_rule(CFI_SP, 2, CFI_SAME, 0) };
	m.rows[1] = (struct cfi_row){ 0x10, cfi_rule(CFI_UNSUPPORTED, 0, 0, 0) };
	m.rows[2] = (struct cfi_row){ 0x20, cfi_rule(CFI_OUTERMOST, 0, 0, 0) };
	m.words[0] = CODE_AT + 0x10;
	m.words[2] = CODE_AT + 0x28;
	assert_int_equal(walk_made(&m, &regs, ips, 4, &end), 2);
	assert_int_equal(end, STACK_COMPLETE);
	/* But an instruction is where it is. */
	regs = (struct unwind_regs){ .pc = CODE_AT + 0x10, .sp = STACK_AT };
	assert_int_equal(walk_made(&m, &regs, ips, 4, &end), 0);
	assert_int_equal(end, STACK_UNSUPPORTED);
}

/* A handler returns to code without information: its bytes tell what it is. */
static void test_signal_code(void **state)
{
	static const u16 machines[] = { EM_X86_64, EM_386, EM_AARCH64 };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(machines); i++) {
		u16 machine = machines[i / 2];
		struct made m = { .arch = unwind_arch(machine, machine == EM_386 ? 4 : 8), .nr_rows = 2 };
		struct unwind_regs regs = { .pc = CODE_AT + 0x100, .sp = STACK_AT, .is_at_entry = true };
		bool is_on_stack = !m.arch->has_link;
		size_t sp = (size_t)m.arch->signal_sp / m.arch->word_size + is_on_stack;
		size_t pc = sp + (size_t)m.arch->signal_pc / m.arch->word_size;
		enum stack_end end;
		taddr_t ips[4];

		m.has_signal_code = i % 2;
		m.rows[0] = (struct cfi_row){ 0, cfi_rule(CFI_OUTERMOST, 0, 0, 0) };
		m.rows[1] = (struct cfi_row){ 0x100, CFI_NONE };
		regs.lr = m.words[0] = CODE_AT + 0x200;
		m.words[pc] = CODE_AT + 0x42;
		assert_int_equal(walk_made(&m, &regs, ips, 4, &end), 1 + i % 2);
		assert_int_equal(end, i % 2 ? STACK_COMPLETE : STACK_NO_INFO);
		assert_int_equal(ips[0], CODE_AT + 0x200);
		if (i % 2)
			assert_int_equal(ips[1], CODE_AT + 0x43);
	}
}

/*
 * makecontext() lets the first function of a coroutine return to another one: its first instruction, which no call
 * returns to. Before it lies no code with information. A call there would be from the function before.
 */
static void test_coroutine_end(void **state)
{
	static const struct {
		u32 before;
		size_t nr;
		enum stack_end end;
	} cases[] = {
		{ CFI_NONE, 1, STACK_COMPLETE },
		{ CFI_UNSUPPORTED, 1, STACK_UNSUPPORTED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made m = { .arch = unwind_arch(EM_X86_64, 8), .nr_rows = 3 };
		struct unwind_regs regs = { .pc = CODE_AT + 0x10, .sp = STACK_AT, .is_at_entry = true };
		enum stack_end end;
		taddr_t ips[4];

		m.rows[0] = (struct cfi_row){ 0, cfi_rule(CFI_SP, 1, CFI_SAME, 0) };
		m.rows[1] = (struct cfi_row){ 0x10, cases[i].before };
		m.rows[2] = (struct cfi_row){ 0x20, cfi_rule(CFI_SP, 1, CFI_SAME, 0) };
		m.words[0] = CODE_AT + 0x20;
		m.words[1] = CODE_AT + 0x28;
		assert_int_equal(walk_made(&m, &regs, ips, 4, &end), cases[i].nr);
		assert_int_equal(end, cases[i].end);
		assert_int_equal(ips[0], CODE_AT + 0x20);
	}
}

/* Near the stack pointer that the program began with, in code without information, lies no function of the program. */
static void test_program_start(void **state)
{
	static const struct {
		s32 bytes; /* from the frame up to it */
		enum stack_end end;
	} cases[] = { { 48, STACK_COMPLETE },
		      { 0, STACK_COMPLETE },
		      { CFI_START_BYTES, STACK_COMPLETE },
		      { CFI_START_BYTES + 8, STACK_NO_INFO },
		      { -8, STACK_NO_INFO } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made m = { .arch = unwind_arch(EM_X86_64, 8) };
		struct unwind_regs regs = { .pc = CODE_AT + 0x10, .sp = STACK_AT, .is_at_entry = true };
		enum stack_end end;
		taddr_t ips[4];

		m.words[0] = CODE_AT + 0x20;
		m.start_sp = STACK_AT + 8 + (u64)(s64)cases[i].bytes;
		assert_int_equal(walk_made(&m, &regs, ips, 4, &end), 1);
		assert_int_equal(end, cases[i].end);
	}
}

/* i386: makecontext() lets the first function return into code of its own that has no information. */
static void test_coroutine_code(void **state)
{
	struct made m = { .arch = unwind_arch(EM_386, 4) };
	struct unwind_regs regs = { .pc = CODE_AT + 0x10, .sp = STACK_AT, .is_at_entry = true };
	enum stack_end end;
	taddr_t ips[4];

	(void)state;
	m.words[0] = CODE_AT + 0x200;
	assert_int_equal(walk_made(&m, &regs, ips, 4, &end), 1);
	assert_int_equal(end, STACK_NO_INFO);
	m.has_coroutine_code = true;
	assert_int_equal(walk_made(&m, &regs, ips, 4, &end), 1);
	assert_int_equal(end, STACK_COMPLETE);
}

/* A call of address 0 met its signal handler: there is more of the stack, but no way to it. */
static void test_call_of_address_0(void **state)
{
	struct made m = { .arch = unwind_arch(EM_X86_64, 8), .nr_rows = 1 };
	struct unwind_regs regs = { .pc = CODE_AT, .sp = STACK_AT };
	enum stack_end end;
	taddr_t ips[4];

	(void)state;
	m.rows[0] = (struct cfi_row){ 0, cfi_rule(CFI_SIGNAL, 20, 0, 0) };
	m.words[20] = STACK_AT + 40 * 8;
	m.words[21] = 0;
	assert_int_equal(walk_made(&m, &regs, ips, 4, &end), 1);
	assert_int_equal(ips[0], 1);
	assert_int_equal(end, STACK_UNMAPPED);
}

static int read_zeros(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	(void)addr;
	memset(buf, 0, len);
	return 0;
}

/* A stack pointer between words reads nothing, whatever the reader would give. */
static void test_unaligned(void **state)
{
	struct unwinder u = { .arch = unwind_arch(EM_X86_64, 8), .find = find_self };
	struct unwind_regs regs = { .pc = CODE_AT, .sp = STACK_AT + 4, .is_at_entry = true };
	enum stack_end end;
	taddr_t ips[1];

	(void)state;
	u.read = read_zeros;
	assert_int_equal(unwind_walk(&u, &regs, ips, 1, &end), 0);
	assert_int_equal(end, STACK_UNREADABLE);
	regs.sp = STACK_AT;
	assert_int_equal(unwind_walk(&u, &regs, ips, 1, &end), 0);
	assert_int_equal(end, STACK_COMPLETE);
}

/* A word that is not the FP may not be used as one (C3). */
static void test_lost_frame_pointer(void **state)
{
	struct made m = { .arch = unwind_arch(EM_X86_64, 8), .nr_rows = 3 };
	struct unwind_regs regs = { .pc = CODE_AT, .sp = STACK_AT, .fp = STACK_AT + 64 };
	enum stack_end end;
	taddr_t ips[4];

	(void)state;
	m.rows[0] = (struct cfi_row){ 0, cfi_rule(CFI_SP, 1, CFI_FP_LOST, 0) };
	m.rows[1] = (struct cfi_row){ 16, cfi_rule(CFI_SP, 1, CFI_SAME, 0) };
	m.rows[2] = (struct cfi_row){ 32, cfi_rule(CFI_FP, 2, CFI_FP_AT_CFA, 2) };
	m.words[0] = CODE_AT + 20;
	m.words[1] = CODE_AT + 40;
	assert_int_equal(walk_made(&m, &regs, ips, 4, &end), 2);
	assert_int_equal(end, STACK_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recursion),      cmocka_unit_test(test_depth_limit),
		cmocka_unit_test(test_callback),       cmocka_unit_test(test_thread),
		cmocka_unit_test(test_signal),	       cmocka_unit_test(test_signal_stack),
		cmocka_unit_test(test_without_tables), cmocka_unit_test(test_each_rule),
		cmocka_unit_test(test_frame_pointers), cmocka_unit_test(test_entry),
		cmocka_unit_test(test_behind_guess),   cmocka_unit_test(test_call_code),
		cmocka_unit_test(test_program_start),  cmocka_unit_test(test_coroutine_code),
		cmocka_unit_test(test_signal_code),    cmocka_unit_test(test_call_at_the_end),
		cmocka_unit_test(test_coroutine_end),  cmocka_unit_test(test_call_of_address_0),
		cmocka_unit_test(test_unaligned),      cmocka_unit_test(test_lost_frame_pointer),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
