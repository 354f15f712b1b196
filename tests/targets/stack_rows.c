/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates below a function with 240,000 rows of call frame information, and tells its call chains. */
#include "tests/targets/stack_truth.h"

FN void t_allocates(size_t bytes)
{
	ENTER();
	ALLOCATE(bytes);
	LEAVE();
}

#ifdef __x86_64__
/* Calls at four rows, odd and even ones, after a third of them each time. */
#define MANY_ROWS                                                                                            \
	".rept 40000\n"                                                                                      \
	"push %rdi\n.cfi_adjust_cfa_offset 8\npop %rdi\n.cfi_adjust_cfa_offset -8\n"                         \
	".endr\n"                                                                                            \
	"mov $1, %edi\ncall t_allocates\n"                                                                   \
	"sub $16, %rsp\n.cfi_adjust_cfa_offset 16\n"                                                         \
	"mov $2, %edi\ncall t_allocates\n"                                                                   \
	"sub $32, %rsp\n.cfi_adjust_cfa_offset 32\n"                                                         \
	"mov $3, %edi\ncall t_allocates\n"                                                                   \
	"add $48, %rsp\n.cfi_adjust_cfa_offset -48\n"                                                        \
	"mov $4, %edi\ncall t_allocates\n"

__asm__(".text\n.type t_rows, @function\nt_rows:\n.cfi_startproc\n"
	"sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n" MANY_ROWS MANY_ROWS MANY_ROWS
	"add $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size t_rows, . - t_rows\n");
void t_rows(void);
#else
FN void t_rows(void)
{
	t_allocates(1);
	t_allocates(2);
	t_allocates(3);
	t_allocates(4);
}
#endif

FN static void t_calls(void)
{
	ENTER();
	shadow_push("t_rows");
	t_rows();
	shadow_pop();
	LEAVE();
}

int main(void)
{
	chains_begin();
	ENTER();
	t_calls();
	chains_print();
	return 0;
}
