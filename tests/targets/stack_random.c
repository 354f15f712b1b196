/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_random SEED [ALLOCATIONS [THREADS [LEVELS]]]: goes up and down a random tree of calls through functions of many
 * frame layouts, which allocate at random, and tells its call chains. A level is one frame or two.
 */
#include <alloca.h>

#include "tests/targets/stack_truth.h"

/* noipa is gcc's alone. */
#define CALL __attribute__((noinline, used))

enum {
	MAX_NODES = 800,
	NODES_PER_LEVEL = 6,
	MAX_CHILDREN = 3,
	MOST_LEVELS = 50, /* unless others are asked for */
	MAX_THREADS = 8,
	MAX_KEPT = 64,
	STACK_BYTES = 16 << 20
};

struct random {
	uint64_t state;
};

struct node;
typedef void visit_fn(struct node *n);

/* A place in the tree of calls: its function always calls these children, so that its chain is its own. */
struct node {
	visit_fn *visit;
	struct node *children[MAX_CHILDREN];
	unsigned nr_children;
	unsigned level;
};

/* The work of one thread. */
struct traveller {
	struct random random;
	struct shadow shadow;
	struct node nodes[MAX_NODES];
	unsigned nr_nodes;
	long nr_left; /* allocations */
	void *kept[MAX_KEPT];
};

static struct traveller travellers[MAX_THREADS];
static unsigned most_levels, is_deep; /* is_deep, 0 or 1: calls go on to nearly all levels */
static __thread struct traveller *me;

/* xorshift64* */
static unsigned random_next(struct random *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return (r->state * 0x2545f4914f6cdd1dULL) >> 33;
}

static unsigned below(unsigned n)
{
	return random_next(&me->random) % n;
}

/* Allocate once in a while, and keep some blocks for long. */
#define ALLOCATE_SOME()                                                                                      \
	do {                                                                                                 \
		unsigned kept_ = below(MAX_KEPT);                                                            \
                                                                                                             \
		me->nr_left--;                                                                               \
		free(me->kept[kept_]);                                                                       \
		me->kept[kept_] = malloc(note(1 + below(500)));                                              \
		keep(me->kept[kept_]);                                                                       \
	} while (0)

#define GO_ON(n)                                                                                             \
	do {                                                                                                 \
		struct node *node_ = (n);                                                                    \
                                                                                                             \
		for (unsigned i_ = below(4) + is_deep; i_ > 0 && me->nr_left > 0; i_--)                      \
			if (below(3 + 9 * is_deep) == 0 || !node_->nr_children)                              \
				ALLOCATE_SOME();                                                             \
			else                                                                                 \
				call(node_->children[below(node_->nr_children)]);                            \
	} while (0)

/* Through a pointer, so that each function has one place where it calls. */
#define call(n)                                                                                              \
	do {                                                                                                 \
		struct node *callee_ = (n);                                                                  \
                                                                                                             \
		callee_->visit(callee_);                                                                     \
		__asm__ volatile("" : : : "memory");                                                         \
	} while (0)

/* ---- layouts that compilers make ---- */

#define PLAIN(name)                                                                                          \
	CALL void name(struct node *n)                                                                       \
	{                                                                                                    \
		ENTER();                                                                                     \
		GO_ON(n);                                                                                    \
		LEAVE();                                                                                     \
	}

/* A frame of fixed size. */
#define ARRAY(name, bytes)                                                                                   \
	CALL void name(struct node *n)                                                                       \
	{                                                                                                    \
		volatile char array[bytes];                                                                  \
                                                                                                             \
		ENTER();                                                                                     \
		array[0] = array[sizeof(array) - 1] = 1;                                                     \
		GO_ON(n);                                                                                    \
		LEAVE();                                                                                     \
	}

/* Another size at each call. */
#define ALLOCA(name, most)                                                                                   \
	CALL void name(struct node *n)                                                                       \
	{                                                                                                    \
		char *room = alloca(1 + below(most));                                                        \
                                                                                                             \
		keep(room);                                                                                  \
		ENTER();                                                                                     \
		GO_ON(n);                                                                                    \
		LEAVE();                                                                                     \
	}

/* Another size while the function runs. */
#define GROWING(name, most)                                                                                  \
	CALL void name(struct node *n)                                                                       \
	{                                                                                                    \
		ENTER();                                                                                     \
		for (int i = 0; i < 3; i++) {                                                                \
			char *room = alloca(1 + below(most));                                                \
                                                                                                             \
			keep(room);                                                                          \
			GO_ON(n);                                                                            \
		}                                                                                            \
		LEAVE();                                                                                     \
	}

#define ALIGNED(name, alignment)                                                                             \
	CALL void name(struct node *n)                                                                       \
	{                                                                                                    \
		_Alignas(alignment) volatile char array[alignment];                                          \
                                                                                                             \
		ENTER();                                                                                     \
		array[0] = array[sizeof(array) - 1] = 1;                                                     \
		keep(*array);                                                                                \
		GO_ON(n);                                                                                    \
		LEAVE();                                                                                     \
	}

/* Many values alive over the calls: every callee-saved register is in use. */
#define BUSY(name)                                                                                           \
	CALL void name(struct node *n)                                                                       \
	{                                                                                                    \
		uint64_t a = below(9), b = below(9), c = below(9), d = below(9), e = below(9), f = below(9); \
                                                                                                             \
		ENTER();                                                                                     \
		GO_ON(n);                                                                                    \
		keep(a);                                                                                     \
		keep(b);                                                                                     \
		keep(c);                                                                                     \
		keep(d);                                                                                     \
		keep(e);                                                                                     \
		keep(f);                                                                                     \
		LEAVE();                                                                                     \
	}

PLAIN(t_plain_1)
PLAIN(t_plain_2)
PLAIN(t_plain_3)
PLAIN(t_plain_4)
ARRAY(t_array_1, 40)
ARRAY(t_array_2, 200)
ARRAY(t_array_3, 2040)
ARRAY(t_array_4, 5000)
ARRAY(t_array_5, 70000)
ALLOCA(t_alloca_1, 64)
ALLOCA(t_alloca_2, 300)
ALLOCA(t_alloca_3, 3000)
GROWING(t_growing_1, 40)
GROWING(t_growing_2, 500)
ALIGNED(t_aligned_1, 32)
ALIGNED(t_aligned_2, 64)
ALIGNED(t_aligned_3, 256)
BUSY(t_busy_1)
BUSY(t_busy_2)
BUSY(t_busy_3)

/* ---- layouts of hand-written code; each calls t_within, which does what the others do ---- */

CALL void t_within(struct node *n)
{
	ENTER();
	GO_ON(n);
	LEAVE();
}

#define ASM_BEGIN(name) ".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n"
#define ASM_END(name)	".cfi_endproc\n.size " #name ", . - " #name "\n"

#ifdef __x86_64__
#define NR_ASM 7
__asm__(
	/* rbp as a general register, with an address of the stack in it */
	ASM_BEGIN(t_asm_general) "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
				 "lea -8(%rsp), %rbp\n"
				 "call *asm_body(%rip)\n"
				 "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\nret\n" ASM_END(
					 t_asm_general)
	/* the same with nonsense in it, saved in the middle of the frame */
	ASM_BEGIN(t_asm_middle) "sub $0x88, %rsp\n.cfi_def_cfa_offset 144\n"
				"mov %rbp, 0x40(%rsp)\n.cfi_offset rbp, -80\n"
				"mov $0x7ffd12345679, %rbp\n"
				"call *asm_body(%rip)\n"
				"mov 0x40(%rsp), %rbp\n.cfi_restore rbp\n"
				"add $0x88, %rsp\n.cfi_def_cfa_offset 8\nret\n" ASM_END(t_asm_middle)
	/* a frame pointer */
	ASM_BEGIN(t_asm_pointer) "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
				 "mov %rsp, %rbp\n.cfi_def_cfa_register rbp\n"
				 "sub $0x30, %rsp\n"
				 "call *asm_body(%rip)\n"
				 "leave\n.cfi_def_cfa rsp, 8\n.cfi_restore rbp\nret\n" ASM_END(t_asm_pointer)
	/* a frame pointer that points into the middle, and a frame of 64 to 1088 bytes */
	ASM_BEGIN(t_asm_shifted) "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
				 "lea -0x20(%rsp), %rbp\n.cfi_def_cfa rbp, 48\n"
				 "mov %rdi, %rax\nand $0x400, %eax\nadd $0x40, %eax\nsub %rax, %rsp\n"
				 "call *asm_body(%rip)\n"
				 "lea 0x20(%rbp), %rsp\n.cfi_def_cfa rsp, 16\n"
				 "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\nret\n" ASM_END(
					 t_asm_shifted)
	/* arguments pushed around the call */
	ASM_BEGIN(t_asm_pushes) "push $1\n.cfi_adjust_cfa_offset 8\npush $2\n.cfi_adjust_cfa_offset 8\npush "
				"$3\n.cfi_adjust_cfa_offset 8\n"
				"call *asm_body(%rip)\n"
				"add $24, %rsp\n.cfi_adjust_cfa_offset -24\nret\n" ASM_END(t_asm_pushes)
	/* realigned; the address of the frame is kept in it */
	ASM_BEGIN(t_asm_realigned) "lea 8(%rsp), %r10\n.cfi_def_cfa r10, 0\n"
				   "and $-64, %rsp\n"
				   "push -8(%r10)\n"
				   "push %rbp\n.cfi_escape 0x10, 6, 2, 0x76, 0\n"
				   "mov %rsp, %rbp\n"
				   "push %r10\n.cfi_escape 0xf, 3, 0x76, 0x78, 6\n"
				   "sub $0x28, %rsp\n"
				   "call *asm_body(%rip)\n"
				   "mov -8(%rbp), %r10\n.cfi_def_cfa r10, 0\n"
				   "leave\n"
				   "lea -8(%r10), %rsp\n.cfi_def_cfa rsp, 8\n.cfi_restore rbp\nret\n" ASM_END(
					   t_asm_realigned)
	/* the caller's stack pointer lies on the stack, rbp is free again */
	ASM_BEGIN(t_asm_saved_sp) "mov %rsp, %rax\n.cfi_def_cfa rax, 8\n"
				  "sub $0x100, %rsp\nand $-128, %rsp\n"
				  "mov %rax, 0x10(%rsp)\n.cfi_escape 0xf, 5, 0x77, 0x10, 6, 0x23, 8\n"
				  "call *asm_body(%rip)\n"
				  "mov 0x10(%rsp), %rsp\n.cfi_def_cfa rsp, 8\nret\n" ASM_END(
					  t_asm_saved_sp) ".data\n.balign 8\nasm_body: .quad "
							  "t_within\n.text\n");
visit_fn t_asm_general, t_asm_middle, t_asm_pointer, t_asm_shifted, t_asm_pushes, t_asm_realigned,
	t_asm_saved_sp;

/* The shadow's side of them. */
#define AROUND(name)                                                                                         \
	CALL void t_##name(struct node *n)                                                                   \
	{                                                                                                    \
		ENTER();                                                                                     \
		shadow_push("t_asm_" #name);                                                                 \
		t_asm_##name(n);                                                                             \
		shadow_pop();                                                                                \
		LEAVE();                                                                                     \
	}

AROUND(general)
AROUND(middle)
AROUND(pointer)
AROUND(shifted)
AROUND(pushes)
AROUND(realigned)
AROUND(saved_sp)
#define ASM_FUNCTIONS t_general, t_middle, t_pointer, t_shifted, t_pushes, t_realigned, t_saved_sp,
#else
#define ASM_FUNCTIONS
#endif

static visit_fn *const functions[] = { t_plain_1,    t_plain_2,	  t_plain_3,   t_plain_4,   t_array_1,
				       t_array_2,    t_array_3,	  t_array_4,   t_array_5,   t_alloca_1,
				       t_alloca_2,   t_alloca_3,  t_growing_1, t_growing_2, t_aligned_1,
				       t_aligned_2,  t_aligned_3, t_busy_1,    t_busy_2,    t_busy_3,
				       ASM_FUNCTIONS };

/* Make a tree: narrow, so that it gets deep. */
static void plant(struct traveller *t)
{
	unsigned nr = NODES_PER_LEVEL * most_levels < MAX_NODES ? NODES_PER_LEVEL * most_levels : MAX_NODES;
	unsigned rarity = 8 * most_levels / MOST_LEVELS;

	while (t->nr_nodes < nr) {
		struct node *n = &t->nodes[t->nr_nodes];
		/* Mostly below one of the newest. */
		unsigned back = t->nr_nodes && below(rarity) ? 1 + below(3) : 1 + below(t->nr_nodes + 1);
		struct node *parent = back <= t->nr_nodes ? n - back : t->nodes;

		if (t->nr_nodes && (parent->nr_children == MAX_CHILDREN || parent->level == most_levels))
			continue;
		n->visit = functions[below(sizeof(functions) / sizeof(*functions))];
		if (t->nr_nodes) {
			parent->children[parent->nr_children++] = n;
			n->level = parent->level + 1;
		}
		t->nr_nodes++;
	}
}

CALL void t_travel(void)
{
	ENTER();
	while (me->nr_left > 0)
		call(&me->nodes[0]);
	LEAVE();
}

static void *t_thread(void *arg)
{
	me = arg;
	shadow = &me->shadow;
	shadow->outside = OUTSIDE_THREAD;
	ENTER();
	plant(me);
	t_travel();
	LEAVE();
	return NULL;
}

int main(int argc, char **argv)
{
	long nr_threads = arg_or(argc, argv, 3, 1);
	pthread_t ids[MAX_THREADS];
	pthread_attr_t attr;

	chains_begin();
	most_levels = arg_or(argc, argv, 4, MOST_LEVELS);
	is_deep = most_levels > MOST_LEVELS;
	if (most_levels < MOST_LEVELS || nr_threads < 1 || nr_threads > MAX_THREADS)
		return 2;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (int i = 0; i < nr_threads; i++) {
		travellers[i].random.state = arg_or(argc, argv, 1, 1) * 0x9e3779b97f4a7c15ULL + i + 1;
		travellers[i].nr_left = arg_or(argc, argv, 2, 100000) / nr_threads;
		pthread_create(&ids[i], &attr, t_thread, &travellers[i]);
	}
	for (int i = 0; i < nr_threads; i++)
		pthread_join(ids[i], NULL);
	chains_print();
	return 0;
}
