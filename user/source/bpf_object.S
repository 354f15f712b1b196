/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The compiled BPF programs, inside heaptap itself. */
	.section .rodata
	.balign 8
	.global bpf_object_start, bpf_object_end
bpf_object_start:
	.incbin OBJECT
bpf_object_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
