/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates on stacks that cannot be walked to their end, whose call frame information lies, or that are very deep. */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "tests/targets/stack_truth.h"

enum { DEEP_LEVELS = 1000000, EDGE_BYTES = 1 << 16 };

static const size_t deep_stack_bytes = (size_t)1 << 30;

FN void t_allocates(size_t bytes)
{
	ENTER();
	ALLOCATE(bytes);
	LEAVE();
}

/* The rest of a chain told here is unknown to a walk that ends as @end says. */
FN static void begin_chain(struct shadow *s, const char *end)
{
	s->end = end;
	shadow = s;
}

#ifdef __x86_64__
#define BEGIN(name)    ".text\n.type " name ", @function\n" name ":\n.cfi_startproc\n"
#define FINISH(name)   ".cfi_endproc\n.size " name ", . - " name "\n"
#define CALL_ALLOCATES "mov $5, %edi\ncall t_allocates\n"

__asm__(
	/* The caller's stack pointer, it says, is in a word that leads back down. */
	BEGIN("t_shrinks") "sub $0x48, %rsp\n"
			   "lea 0x10(%rsp), %rax\nmov %rax, 0x20(%rsp)\nmov %rax, 8(%rsp)\n"
			   "lea -0x40(%rsp), %rax\nmov %rax, (%rsp)\n"
			   ".cfi_escape 0xf, 3, 0x77, 0, 6\n" /* CFA = [rsp] */
	CALL_ALLOCATES "add $0x48, %rsp\n.cfi_def_cfa rsp, 8\nret\n" FINISH("t_shrinks")
	/* No frame at all, it says: it is its own caller. */
	BEGIN("t_stays") "sub $8, %rsp\n"
			 ".cfi_def_cfa rsp, 0\n" CALL_ALLOCATES
			 "add $8, %rsp\n.cfi_def_cfa rsp, 8\nret\n" FINISH("t_stays")
	/* The return address leads into the same function, 300 times. */
	BEGIN("t_repeats") "push %rbx\n"
			   "mov $300, %ecx\n"
			   "lea 2f(%rip), %rax\n"
			   "1: push %rax\ndec %ecx\njne 1b\n"
			   ".cfi_def_cfa rsp, 8\n" CALL_ALLOCATES "2: add $2400, %rsp\n.cfi_def_cfa rsp, 16\n"
			   "pop %rbx\n.cfi_def_cfa rsp, 8\nret\n" FINISH("t_repeats")
	/* On a stack that ends where its caller's return address should be. */
	BEGIN("t_leaves") "push %rbx\n"
			  "mov %rsp, %rbx\n"
			  "lea -16(%rdi), %rsp\n"
			  ".cfi_def_cfa rsp, 24\n" CALL_ALLOCATES "mov %rbx, %rsp\n.cfi_def_cfa rsp, 16\n"
			  "pop %rbx\n.cfi_def_cfa rsp, 8\nret\n" FINISH("t_leaves")
	/* Without a caller, when it is asked so: then t_floats is the first function of a stack. */
	BEGIN("t_starts") "push %rbx\n.cfi_def_cfa_offset 16\n"
			  "test %edi, %edi\n"
			  "je 1f\n"
			  "push $0\n"
			  "jmp t_floats\n"
			  "1: call t_floats\n"
			  "2: pop %rbx\n.cfi_def_cfa_offset 8\nret\n" FINISH("t_starts")
				  BEGIN("t_floats") "sub $8, %rsp\n.cfi_def_cfa_offset 16\n" CALL_ALLOCATES
						    "add $8, %rsp\n.cfi_def_cfa_offset 8\n"
						    "cmpq $0, (%rsp)\n"
						    "je 1f\n"
						    "ret\n"
						    "1: add $8, %rsp\n"
						    "jmp 2b\n" FINISH("t_floats"));
void t_shrinks(void);
void t_stays(void);
void t_repeats(void);
void t_leaves(char *top);
void t_starts(int is_first);

/* Two stacks with equal frames at equal addresses, which differ only in the word where they end. */
FN static void t_takes_turns(void)
{
	static struct shadow first, called;

	begin_chain(&first, NULL);
	shadow_push("t_floats");
	begin_chain(&called, NULL);
	shadow_push("main");
	ENTER();
	shadow_push("t_starts");
	shadow_push("t_floats");
	for (int i = 0; i < 20; i++) {
		shadow = i % 2 ? &called : &first;
		t_starts(i % 2 == 0);
	}
}

static void lie(void)
{
	static struct shadow shrinking, staying, repeating, leaving;
	char *edge = mmap(NULL, EDGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(edge + EDGE_BYTES / 2, EDGE_BYTES / 2, PROT_NONE);
	for (int i = 0; i < 3; i++) {
		begin_chain(&shrinking, "not-growing");
		shadow_push("t_shrinks");
		t_shrinks();
		shadow_pop();
		begin_chain(&staying, "not-growing");
		shadow_push("t_stays");
		t_stays();
		shadow_pop();
		begin_chain(&leaving, "unreadable");
		shadow_push("t_leaves");
		t_leaves(edge + EDGE_BYTES / 2);
		shadow_pop();
	}
	begin_chain(&repeating, NULL);
	for (int i = 0; i < 300; i++)
		shadow_push("t_repeats");
	t_repeats();
}
#else
static void lie(void)
{
}
#endif

static sigjmp_buf back;

FN static void t_on_fault(int sig)
{
	(void)sig;
	ENTER();
	t_allocates(6);
	LEAVE();
	siglongjmp(back, 1);
}

/* A call of no function: its caller is not known, and address 0 is not where the process began. */
static void call_nothing(void)
{
	static struct shadow falling = { .end = "unmapped" };
	void (*volatile nothing)(void) = NULL;
	struct sigaction action = { .sa_handler = t_on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	shadow = &falling;
	if (!sigsetjmp(back, 1))
		nothing();
	falling.nr = 0;
}

/* Only what the report can show is noted. */
FN static void t_goes_down(long n)
{
	if (n > 1)
		t_goes_down(n - 1);
	else
		for (int i = 0; i < 3; i++)
			t_allocates(7);
	keep(n);
}

FN static void *t_goes_deep(void *arg)
{
	static struct shadow deep = { .outside = OUTSIDE_THREAD };

	(void)arg;
	begin_chain(&deep, NULL);
	for (int i = 0; i < 300; i++)
		shadow_push("t_goes_down");
	t_goes_down(DEEP_LEVELS);
	return NULL;
}

static void go_deep(void)
{
	pthread_attr_t attr;
	pthread_t id;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, deep_stack_bytes);
	if (pthread_create(&id, &attr, t_goes_deep, NULL) || pthread_join(id, NULL))
		abort();
}

int main(void)
{
	chains_begin();
	t_takes_turns();
	lie();
	call_nothing();
	go_deep();
	chains_print();
	return 0;
}
