/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The compiled piece of code (inline/), inside heaptap itself. */
	.section .rodata
	.balign 8
	.global piece_object_start, piece_object_end
piece_object_start:
#ifdef OBJECT
	.incbin OBJECT
#endif
piece_object_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
