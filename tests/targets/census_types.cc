/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects of classes for the census, some of them lost. Prints how many, then waits until standard input ends. */
#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

namespace zoo
{

struct Animal {
	virtual ~Animal()
	{
	}
	long legs = 4;
};

struct Cat : Animal {
	char name[100];
};

template <class T> struct Cage : Animal {
	T inside;
};

/* Two base classes: pointers to the second one lead into the object. */
struct Named {
	virtual ~Named()
	{
	}
	long number = 0;
};

struct Dog : Animal, Named {
};

} /* namespace zoo */

enum { CATS = 300, LOST_CATS = 9, CAGES = 70, DOGS = 21 };

std::vector<zoo::Animal *> all;
std::vector<zoo::Named *> named;
zoo::Cat *favourite;

__attribute__((noipa)) static void lose(zoo::Cat *cat)
{
	cat->legs = 3;
}

__attribute__((noipa)) static void clear_stack()
{
	volatile char bytes[4096];

	for (volatile char &byte : bytes)
		byte = 0;
}

int main()
{
	char byte;

	for (int i = 0; i < CATS; i++)
		all.push_back(new zoo::Cat);
	for (int i = 0; i < CAGES; i++)
		all.push_back(new zoo::Cage<std::string>);
	for (int i = 0; i < DOGS; i++)
		named.push_back(new zoo::Dog);
	for (int i = 0; i < LOST_CATS; i++)
		lose(new zoo::Cat);
	favourite = new zoo::Cat;
	clear_stack();
	printf("favourite %p\nready\n</malloc>\n", (void *)favourite);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
