/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two ways into the piece of code: from the stub of a function, and from a function that returns. */

	.macro save
	push	%rax
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	push	%rbp
	.endm

	.macro restore
	pop	%rbp
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	.endm

	.set	FLAG_AC, 1 << 18

/*
 * Have \function see the registers. It reads words that are not aligned, so a program that has such accesses trapped
 * (the flag AC) gets the flag back behind it: nearly none has it set.
 */
	.macro visit function
	save
	mov	%rsp, %rdi
	pushf
	testl	$FLAG_AC, (%rsp)
	lea	8(%rsp), %rsp
	jnz	8f
	call	\function
7:
	.subsection 1
8:
	pushf
	andl	$~FLAG_AC, (%rsp)
	popf
	call	\function
	pushf
	orl	$FLAG_AC, (%rsp)
	popf
	jmp	7b
	.subsection 0
	.endm

	.section .text.head, "ax"
	.hidden	piece_head
	.global	piece_head
piece_head:
	.long	enter - piece_head
	.long	enter_call - piece_head
	.long	piece_returned - piece_head

/* On the stack: where the stub goes on, the index of the function, the return address of the call. */
	.balign	64
enter:
	visit	piece_enter
	restore
	ret

/*
 * A function is entered whose return address may be replaced. The stack is as above, but the stub has jumped to here.
 * The CPU guesses that a ret goes to behind the latest call for which there was no ret. So where the return address is now
 * piece_returned, a call there is made, and its return address dropped. The words below the stack pointer stay as they
 * are: signal handlers leave them alone. Neither pop nor lea changes the flags.
 */
	.balign	64
enter_call:
	visit	piece_enter
	test	%al, %al
	restore
	lea	16(%rsp), %rsp
	jnz	guessed
	jmp	*-16(%rsp)
1:
	lea	8(%rsp), %rsp
	jmp	*-16(%rsp)

/*
 * A call has returned to here, in place of its caller. The word below the stack pointer, where the return address was,
 * gets it again.
 */
	.balign	64
guessed:
	call	1b
	.hidden	piece_returned
	.global	piece_returned
piece_returned:
	lea	-8(%rsp), %rsp
	visit	piece_leave
	mov	%rax, 80(%rsp)
	restore
	ret
	.section .note.GNU-stack,"",@progbits
