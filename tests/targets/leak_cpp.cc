/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks of C++ with known verdicts: only pointers into their middle exist, as compilers and libraries make them. */
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/targets/truth.h"

struct Base1 {
	virtual ~Base1() {}
	long a = 1;
};

struct Base2 {
	virtual ~Base2() {}
	long b = 2;
};

struct Both : Base1, Base2 {
	long c[4] = {};
};

struct Counted {
	~Counted() {}
	long value[3] = {};
};

Base2 *second_base;
Counted *array;
std::string *text;
std::map<int, std::vector<int>> *table;
std::vector<std::string *> *names;

FN static void by_second_base() { second_base = new Both; }
FN static void by_array() { array = new Counted[7]; }
FN static void by_text() { text = new std::string(100, 'x'); }

FN static void by_table()
{
	table = new std::map<int, std::vector<int>>;
	for (int i = 0; i < 20; i++)
		(*table)[i] = std::vector<int>(10, i);
}

FN static void lose_string()
{
	auto *s = new std::string(200, 'y');

	keep(s);
}

FN static void lose_map()
{
	auto *m = new std::map<int, int>;

	for (int i = 0; i < 30; i++)
		(*m)[i] = i;
	keep(m);
}

FN static void lose_derived()
{
	Base2 *b = new Both;

	keep(b);
}

/* Two owners that hold each other. */
struct Peer {
	std::shared_ptr<Peer> other;
};

FN static void lose_shared_cycle()
{
	auto a = std::make_shared<Peer>();
	auto b = std::make_shared<Peer>();

	a->other = b;
	b->other = a;
}

int main()
{
	truth_begin();
	by_second_base();
	by_array();
	by_text();
	by_table();
	lose_string();
	lose_map();
	lose_derived();
	lose_shared_cycle();
	scrub();
	expect("reachable 1 %zu by_second_base", sizeof(Both));
	expect("reachable 1 %zu by_array", 7 * sizeof(Counted) + sizeof(size_t));
	expect("reachable 2 %zu by_text", sizeof(std::string) + 101);
	expect("definite 1 %zu lose_string", sizeof(std::string));
	expect("indirect 1 201 lose_string");
	expect("definite 1 %zu lose_map", sizeof(std::map<int, int>));
	expect("definite 1 %zu lose_derived", sizeof(Both));
	expect("possible 0 0 by_table");
	expect("definite 0 0 by_table");
	fflush(stdout);
	_exit(0);
}
