/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every operator new and delete, each called a different number of times. */
#include "tests/targets/truth.h"

#include <new>

using std::align_val_t;
using std::nothrow;

#define TIMES(n) for (int i = 0; i < (n); i++)

FN static void plain()
{
	TIMES(3) ::operator delete(::operator new(10));
	TIMES(2) ::operator delete(::operator new(11), nothrow);
	TIMES(4) ::operator delete(::operator new(12), (size_t)12);
	TIMES(5) ::operator delete(::operator new(13, nothrow));
	expect("calls _ZnwmRKSt9nothrow_t 5");
	expect("calls _ZdlPvRKSt9nothrow_t 2");
	expect("allocs 14 165 plain");
}

FN static void aligned()
{
	align_val_t a = (align_val_t)64;

	TIMES(2) ::operator delete(::operator new(64, a), a);
	TIMES(3) ::operator delete(::operator new(64, a, nothrow), a, nothrow);
	TIMES(4) ::operator delete(::operator new(64, a), (size_t)64, a);
	expect("calls _ZnwmSt11align_val_t 6");
	expect("calls _ZnwmSt11align_val_tRKSt9nothrow_t 3");
	expect("calls _ZdlPvSt11align_val_tRKSt9nothrow_t 3");
	expect("allocs 9 576 aligned");
}

FN static void arrays()
{
	align_val_t a = (align_val_t)128;

	TIMES(2) ::operator delete[](::operator new[](20));
	TIMES(3) ::operator delete[](::operator new[](21, nothrow), nothrow);
	TIMES(4) ::operator delete[](::operator new[](22), (size_t)22);
	TIMES(5) ::operator delete[](::operator new[](128, a), a);
	TIMES(6) ::operator delete[](::operator new[](128, a, nothrow), a, nothrow);
	TIMES(7) ::operator delete[](::operator new[](128, a), (size_t)128, a);
	expect("calls _ZnamRKSt9nothrow_t 3");
	expect("calls _ZnamSt11align_val_t 12");
	expect("calls _ZnamSt11align_val_tRKSt9nothrow_t 6");
	expect("calls _ZdaPvRKSt9nothrow_t 3");
	expect("calls _ZdaPvSt11align_val_tRKSt9nothrow_t 6");
	expect("allocs 27 2495 arrays");
}

/* Calls between the operators of libstdc++ must not be counted: expect 5 plain deletes, 4 sized ones, and so on. */
FN static void releases()
{
	expect("calls _ZdlPvm 4");
	expect("calls _ZdlPvSt11align_val_t 2");
	expect("calls _ZdlPvmSt11align_val_t 4");
	expect("calls _ZdaPvm 4");
	expect("calls _ZdaPvSt11align_val_t 5");
	expect("calls _ZdaPvmSt11align_val_t 7");
	expect("calls _ZdaPv 2");
	expect("calls _ZdlPv 8");
}

FN static void held()
{
	TIMES(3)
	{
		void *p = ::operator new[](100);

		keep(p);
	}
	expect("live 3 300 held");
}

struct object {
	virtual ~object() {}
	char bytes[56];
};

/* An array with a cookie: its size is in front of it. */
FN static void objects()
{
	object *one = new object, *many = new object[3];

	keep(one);
	keep(many);
	expect("live 2 %zu objects", sizeof(object) * 4 + sizeof(size_t));
}

int main()
{
	truth_begin();
	plain();
	aligned();
	arrays();
	releases();
	expect("live 0 0 plain");
	expect("live 0 0 aligned");
	expect("live 0 0 arrays");
	if (getenv("HEAPTAP_TARGET_HOLD")) {
		held();
		objects();
		expect("calls _Znwm 10");
		expect("calls _Znam 10");
	} else {
		expect("calls _Znwm 9");
		expect("calls _Znam 6");
	}
	expect("failed 0");
	expect("unknown 0");
	return 0;
}
