/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shapes of C++: "shapes_cpp NAME" builds one, "shapes_cpp" lists them. */
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "tests/verdicts/roles.h"

/* Not static: the compiler would drop what is never read. */
void *global;

/* Memory by a role; never freed. */
template <class T, void *(*role)(size_t)> struct by_role {
	using value_type = T;
	template <class U> struct rebind {
		using other = by_role<U, role>;
	};
	by_role() = default;
	template <class U> by_role(const by_role<U, role> &)
	{
	}
	T *allocate(size_t nr)
	{
		return static_cast<T *>(role(nr * sizeof(T)));
	}
	void deallocate(T *, size_t)
	{
	}
	template <class U> bool operator==(const by_role<U, role> &) const
	{
		return true;
	}
	template <class U> bool operator!=(const by_role<U, role> &) const
	{
		return false;
	}
};

/* Has a destructor, so that new[] keeps the number before the first one. */
struct counted {
	long value;
	~counted()
	{
		keep(global);
	}
	static void *operator new[](size_t size)
	{
		return held(size);
	}
	static void operator delete[](void *)
	{
	}
};

static void array()
{
	global = new counted[10];
}

static void empty_array()
{
	global = new counted[0];
}

struct first {
	long a;
	virtual ~first() = default;
};
struct second {
	long b;
	virtual ~second() = default;
};
struct both : first, second {
	static void *operator new(size_t size)
	{
		return held(size);
	}
	static void operator delete(void *)
	{
	}
};

static void second_base()
{
	global = static_cast<second *>(new both);
}

/* The vector is a lost block, and its elements another one. */
static void lost_vector()
{
	using elements = std::vector<int, by_role<int, behind>>;
	auto *v = new (leader(sizeof(elements))) elements(100);

	keep(v);
}

struct ring {
	std::shared_ptr<ring> next;
};

/* One block for the object and its counts. Each holds the other, by a pointer into its middle. */
static void shared_cycle()
{
	auto a = std::allocate_shared<ring>(by_role<ring, leader>());
	auto b = std::allocate_shared<ring>(by_role<ring, behind>());

	a->next = b;
	b->next = a;
}

static void throw_with(void *p)
{
	keep(p);
	throw std::runtime_error("no owner");
}

/* The exception passes the only pointer. */
static void passed_by_exception()
{
	try {
		throw_with(leader(10));
	} catch (const std::runtime_error &) {
	}
}

static std::vector<int, by_role<int, held>> numbers;

static void static_vector()
{
	numbers.resize(100);
}

static void unique_released()
{
	std::unique_ptr<char> p(static_cast<char *>(leader(10)));
	char *lost = p.release();

	keep(lost);
}

static const struct shape shapes[] = {
	{ "array", array },
	{ "empty_array", empty_array },
	{ "second_base", second_base },
	{ "lost_vector", lost_vector },
	{ "shared_cycle", shared_cycle },
	{ "passed_by_exception", passed_by_exception },
	{ "static_vector", static_vector },
	{ "unique_released", unique_released },
};

int main(int argc, char **argv)
{
	return build_shape(shapes, sizeof(shapes) / sizeof(*shapes), argc, argv);
}
