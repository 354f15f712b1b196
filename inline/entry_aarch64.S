/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ways into the piece of code: from the stub of a function, and from a function that returns. */

/* struct piece_regs of cpu_aarch64.h: x0 to x15, fp, return address, index, where the stub goes on. */
	.set	REGS_BYTES, 160
	.set	REGS_FP, 128
	.set	REGS_RET, 136
	.set	REGS_INDEX, 144
	.set	REGS_STUB, 152

	.macro save
	sub	sp, sp, #REGS_BYTES
	stp	x0, x1, [sp]
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x8, x9, [sp, #64]
	stp	x10, x11, [sp, #80]
	stp	x12, x13, [sp, #96]
	stp	x14, x15, [sp, #112]
	stp	x29, x30, [sp, #REGS_FP]
	.endm

	.macro restore
	ldp	x0, x1, [sp]
	ldp	x2, x3, [sp, #16]
	ldp	x4, x5, [sp, #32]
	ldp	x6, x7, [sp, #48]
	ldp	x8, x9, [sp, #64]
	ldp	x10, x11, [sp, #80]
	ldp	x12, x13, [sp, #96]
	ldp	x14, x15, [sp, #112]
	ldr	x30, [sp, #REGS_RET]
	add	sp, sp, #REGS_BYTES
	.endm

/*
 * A stub has jumped to here. x17 is the address of the index, and behind it the stub goes on. Functions, and those who
 * call them, leave x16 and x17 to whatever lies between (Procedure Call Standard for the Arm 64-bit Architecture).
 */
	.macro visit
	save
	ldr	w16, [x17], #4
	stp	x16, x17, [sp, #REGS_INDEX]
	mov	x0, sp
	bl	piece_enter
	.endm

	.section .text.head, "ax"
	.hidden	piece_head
	.global	piece_head
piece_head:
	.long	enter - piece_head
	.long	enter_call - piece_head
	.long	piece_returned - piece_head

	.balign	64
enter:
	visit
	ldr	x17, [sp, #REGS_STUB]
	restore
	br	x17

/*
 * A function is entered whose return address may be replaced. The CPU guesses that a ret goes to behind the latest call
 * for which there was no ret. So where the return address is now piece_returned, it is set by a call there.
 */
	.balign	64
enter_call:
	visit
	ldr	x17, [sp, #REGS_STUB]
	mov	w16, w0
	restore
	cbnz	w16, guessed
go:
	br	x17

/* A call has returned to here, in place of its caller. */
	.balign	64
guessed:
	bl	go
	.hidden	piece_returned
	.global	piece_returned
piece_returned:
	save
	mov	x0, sp
	bl	piece_leave
	str	x0, [sp, #REGS_RET]
	restore
	ret
	.section .note.GNU-stack,"",@progbits
