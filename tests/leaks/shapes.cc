/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shapes of blocks for random programs: lists, trees, rings, tables, containers, objects with two bases, graphs. */
#include "tests/leaks/shapes.h"

#include <atomic>
#include <malloc.h>
#include <map>
#include <new>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "tests/targets/truth.h"

#define SHAPES(X)                                                                                            \
	X(plain)                                                                                             \
	X(list)                                                                                              \
	X(deep) X(tree) X(ring) X(table) X(rows) X(bytes) X(text) X(vector) X(map) X(bases) X(array)         \
		X(counted) X(sized) X(graph) X(handle)

enum shape {
#define X(shape) SHAPE_##shape,
	SHAPES(X)
#undef X
		NR_SHAPES
};

static struct {
	std::atomic<size_t> blocks, bytes;
} sums[NR_SHAPES][NR_VERDICTS];

static thread_local size_t made_here;

enum { MAX_LISTED = 1 << 24 };

/* One block of the list. Its address is inverted, so that the list holds no pointers. */
struct listed {
	uint64_t inverted;
	enum verdict verdict;
};

static struct listed *list; /* mapped; NULL = no list */
static std::atomic<size_t> nr_listed;

static inline void *add_to_list(void *p, enum verdict verdict)
{
	size_t i = list ? nr_listed++ : 0;

	if (list && i < MAX_LISTED)
		list[i] = { ~(uint64_t)p, verdict };
	return p;
}

/* Allocate in one of several ways. */
static inline __attribute__((always_inline)) void *ask(struct rng *r, size_t size)
{
	void *p = NULL;

	switch (rng_below(r, 8)) {
	case 0:
		return calloc(1, size);
	case 1:
		return realloc(malloc(size / 2 + 1), size);
	case 2:
		return posix_memalign(&p, 64, size) ? NULL : p;
	case 3:
		return ::operator new(size);
	case 4:
		return ::operator new[](size);
	case 5:
		return calloc(size, 1);
	default:
		return malloc(size);
	}
}

/* Programs write nearly all bytes of their blocks. In one block of twenty a part keeps its old contents. */
static inline __attribute__((always_inline)) void *allocate(struct rng *r, size_t size)
{
	void *p = ask(r, size);

	return rng_chance(r, 95) ? memset(p, 0, size) : p;
}

/* One function per shape and verdict. */
#define SITE(shape, verdict, number)                                                                         \
	FN static void *shape##_##verdict(struct rng *r, size_t size)                                        \
	{                                                                                                    \
		made_here++;                                                                                 \
		sums[SHAPE_##shape][number].blocks++;                                                        \
		sums[SHAPE_##shape][number].bytes += size;                                                   \
		return add_to_list(allocate(r, size), number);                                               \
	}
#define X(shape)                                                                                             \
	SITE(shape, definite, DEFINITE)                                                                      \
	SITE(shape, indirect, INDIRECT) SITE(shape, possible, POSSIBLE) SITE(shape, reachable, REACHABLE)
SHAPES(X)
#undef X

static void *(*const sites[NR_SHAPES][NR_VERDICTS])(struct rng *r, size_t size) = {
#define X(shape) { shape##_definite, shape##_indirect, shape##_possible, shape##_reachable },
	SHAPES(X)
#undef X
};

static const char *const shape_names[] = {
#define X(shape) #shape,
	SHAPES(X)
#undef X
};
static const char *const verdict_names[] = { "definite", "indirect", "possible", "reachable" };

size_t shapes_made_here(void)
{
	return made_here;
}

void shapes_forget(void)
{
	for (auto &shape : sums)
		for (auto &sum : shape)
			sum.blocks = sum.bytes = 0;
}

void shapes_tell(void)
{
	for (int i = 0; i < NR_SHAPES; i++)
		for (int v = 0; v < NR_VERDICTS; v++)
			if (sums[i][v].blocks)
				expect("%s %zu %zu %s_%s", verdict_names[v], sums[i][v].blocks.load(),
				       sums[i][v].bytes.load(), shape_names[i], verdict_names[v]);
}

bool shapes_list_begin(void)
{
	void *p = mmap(NULL, MAX_LISTED * sizeof(*list), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	list = p == MAP_FAILED ? NULL : (struct listed *)p;
	return list;
}

void shapes_list_tell(void)
{
	size_t nr = nr_listed.load();

	for (size_t i = 0; i < nr && i < MAX_LISTED; i++)
		printf("block 0x%llx %zu %s\n", (unsigned long long)~list[i].inverted,
		       malloc_usable_size((void *)~list[i].inverted), verdict_names[list[i].verdict]);
}

/* The shape that is being built. */
struct build {
	struct rng *r;
	enum shape shape;
	enum fate fate;
	size_t blocks; /* about so many blocks */

	void *get(enum verdict kept, enum verdict lost, size_t size)
	{
		enum verdict v = fate == FATE_LOST ? lost : fate == FATE_MIDDLE ? POSSIBLE : kept;

		return sites[shape][v](r, size);
	}
	void *head(size_t size)
	{
		return get(REACHABLE, DEFINITE, size);
	}
	void *inner(size_t size)
	{
		return get(REACHABLE, INDIRECT, size);
	}
	/* The pointer that a root shall hold. If it points to the middle, no heuristic takes it for the start. */
	void *held(void *p)
	{
		return fate == FATE_MIDDLE ? (char *)p + 5 : p;
	}
};

struct node {
	struct node *next, *other;
	char text[40];
};

static struct node *fill(struct build *b, void *p, struct node *next, struct node *other)
{
	struct node *n = (struct node *)p;

	n->next = next;
	n->other = other;
	snprintf(n->text, sizeof(n->text), "%zu of many", rng_below(b->r, 100000));
	return n;
}

static size_t node_size(struct build *b)
{
	return sizeof(struct node) + rng_below(b->r, 4) * 24;
}

FN static void *build_plain(struct build *b)
{
	size_t size = rng_chance(b->r, 2) ? 100000 + rng_below(b->r, 200000) : 8 + rng_below(b->r, 500);
	char *p = (char *)b->head(size);

	memset(p, 'x', size < 48 ? size : 48);
	return p;
}

FN static void *build_list(struct build *b)
{
	bool is_double = rng_chance(b->r, 50);
	struct node *head = fill(b, b->head(sizeof(*head)), NULL, NULL), *last = head;

	for (size_t i = 1; i < b->blocks; i++)
		last = last->next = fill(b, b->inner(node_size(b)), NULL, is_double ? last : NULL);
	return head;
}

/* One long list in place of many: a recursive search would overflow its stack. */
FN static void *build_deep(struct build *b)
{
	b->blocks *= 8;
	return build_list(b);
}

FN static struct node *grow_tree(struct build *b, size_t blocks)
{
	struct node *n = fill(b, b->inner(node_size(b)), NULL, NULL);
	size_t left = blocks / 2;

	if (left)
		n->next = grow_tree(b, left);
	if (blocks > left + 1)
		n->other = grow_tree(b, blocks - left - 1);
	return n;
}

FN static void *build_tree(struct build *b)
{
	struct node *head = fill(b, b->head(node_size(b)), NULL, NULL);

	head->next = grow_tree(b, b->blocks / 2);
	head->other = grow_tree(b, b->blocks / 2);
	return head;
}

FN static void *build_ring(struct build *b)
{
	struct node *head = fill(b, b->head(node_size(b)), NULL, NULL), *last = head;

	for (size_t i = 1; i < b->blocks; i++)
		last = last->next = fill(b, b->inner(node_size(b)), NULL, head);
	last->next = head;
	return head;
}

/* Buckets with chains, grown once by realloc like real tables. */
FN static void *build_table(struct build *b)
{
	size_t nr = b->blocks / 4 + 1;
	struct node **buckets = (struct node **)b->head(nr * sizeof(*buckets));

	memset(buckets, 0, nr * sizeof(*buckets));
	for (size_t i = 0; i < b->blocks; i++) {
		size_t k = rng_below(b->r, nr);

		buckets[k] = fill(b, b->inner(node_size(b)), buckets[k], NULL);
	}
	return buckets;
}

/* An array of structs, each with blocks of its own. */
FN static void *build_rows(struct build *b)
{
	struct row {
		long id;
		char *name;
		double value;
		void *data;
	};
	size_t nr = b->blocks / 2 + 1;
	struct row *rows = (struct row *)b->head(nr * sizeof(*rows));

	for (size_t i = 0; i < nr; i++) {
		rows[i].id = (long)i;
		rows[i].name = strcpy((char *)b->inner(24), "a name");
		rows[i].data = memset(b->inner(16 + rng_below(b->r, 64)), 1, 16);
	}
	return rows;
}

/* A buffer behind a small struct. */
FN static void *build_bytes(struct build *b)
{
	struct buffer {
		size_t used, capacity;
		char *data;
	} *p = (struct buffer *)b->head(sizeof(*p));

	p->capacity = 64 << rng_below(b->r, 8);
	p->used = p->capacity / 4;
	p->data = (char *)memset(b->inner(p->capacity), 'b', p->used);
	return p;
}

/* Containers of the C++ library allocate here. */
static thread_local struct build *building;

template <class T> struct told {
	typedef T value_type;
	told() = default;
	template <class U> told(const told<U> &)
	{
	}
	T *allocate(size_t n)
	{
		return (T *)building->inner(n * sizeof(T));
	}
	void deallocate(T *p, size_t)
	{
		free(p);
	}
	bool operator==(const told &) const
	{
		return true;
	}
	bool operator!=(const told &) const
	{
		return false;
	}
};

typedef std::basic_string<char, std::char_traits<char>, told<char>> text;

FN static void *build_text(struct build *b)
{
	return new (b->head(sizeof(text))) text(20 + rng_below(b->r, 200), 't');
}

FN static void *build_vector(struct build *b)
{
	typedef std::vector<void *, told<void *>> pointers;
	size_t nr = b->blocks;
	pointers *v = new (b->head(sizeof(pointers))) pointers();

	v->reserve(nr);
	for (size_t i = 0; i < nr; i++)
		v->push_back(fill(b, b->inner(node_size(b)), NULL, NULL));
	return v;
}

FN static void *build_map(struct build *b)
{
	typedef std::map<long, text, std::less<long>, told<std::pair<const long, text>>> texts;
	texts *m = new (b->head(sizeof(texts))) texts();

	for (size_t i = 0; i < b->blocks / 2 + 1; i++)
		m->emplace(rng_next(b->r) >> 1, text(30, 'm'));
	return m;
}

struct first {
	virtual ~first() = default;
	long one = 1;
};
struct second {
	virtual ~second() = default;
	void *mine = NULL;
};
struct both : first, second {
	long three = 3;
};

/* Objects that are held by a pointer to their second base class. */
FN static void *build_bases(struct build *b)
{
	both *p = new (b->head(sizeof(both))) both();

	p->mine = fill(b, b->inner(node_size(b)), NULL, NULL);
	return b->fate == FATE_MIDDLE ? (void *)p : static_cast<second *>(p);
}

/* new T[n] of a T with a destructor: the pointer is behind the number of elements. */
FN static void *build_array(struct build *b)
{
	size_t nr = 1 + rng_below(b->r, 20), *p = (size_t *)b->head(sizeof(*p) + nr * 24);

	memset(p, 0, sizeof(*p) + nr * 24);
	p[0] = nr;
	for (size_t i = 0; i < nr; i += 4)
		p[1 + 3 * i] = (size_t)fill(b, b->inner(node_size(b)), NULL, NULL);
	return b->fate == FATE_MIDDLE ? p : p + 1;
}

/* A string of the old C++ library: length, capacity, counter, then the text, to which the pointer points. */
FN static void *build_counted(struct build *b)
{
	size_t capacity = 20 + rng_below(b->r, 200), *p = (size_t *)b->head(3 * sizeof(*p) + capacity + 1);

	p[0] = capacity / 2;
	p[1] = capacity;
	p[2] = 0;
	memset(p + 3, 's', capacity + 1);
	return b->fate == FATE_MIDDLE ? p : p + 3;
}

/* The pointer is behind 8 bytes that hold the size of the rest. */
FN static void *build_sized(struct build *b)
{
	size_t size = 16 + rng_below(b->r, 300);
	uint64_t *p = (uint64_t *)b->head(size + 8);

	memset(p, 0, size + 8);
	p[0] = size;
	return b->fate == FATE_MIDDLE ? p : p + 1;
}

/* A chain that reaches all blocks, and pointers from each to random others, also to the middle. */
FN static void *build_graph(struct build *b)
{
	std::vector<struct node *> all;
	struct node *head = fill(b, b->head(node_size(b)), NULL, NULL), *last = head;

	all.push_back(head);
	for (size_t i = 1; i < b->blocks; i++) {
		last = last->next = fill(b, b->inner(node_size(b)), NULL, NULL);
		all.push_back(last);
	}
	for (struct node *n : all)
		n->other = (struct node *)((char *)all[rng_below(b->r, all.size())] + rng_below(b->r, 2) * 9);
	/* Cleared, because freed memory would keep the address of every block. */
	if (rng_chance(b->r, 90))
		memset(all.data(), 0, all.size() * sizeof(all[0]));
	return head;
}

/* A pointer to a pointer to the head. */
FN static void *build_handle(struct build *b)
{
	void **p = (void **)b->head(sizeof(*p)), **q = (void **)b->inner(4096);

	*p = q;
	memset(q, 0, 512);
	q[17] = fill(b, b->inner(node_size(b)), NULL, NULL);
	return p;
}

static void *(*const builders[])(struct build *b) = {
#define X(shape) build_##shape,
	SHAPES(X)
#undef X
};

void *shape_build(struct rng *r, enum fate fate, size_t blocks)
{
	struct build b = { r, (enum shape)rng_below(r, NR_SHAPES), fate, 2 + rng_below(r, blocks) };

	building = &b;
	return b.held(builders[b.shape](&b));
}
