/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The compiled BPF programs, inside heaptap itself. */
	.section .rodata
	.balign 8
	.global bpf_object_start, bpf_object_end
bpf_object_start:
	.incbin OBJECT
bpf_object_end:
	.byte 0
	.balign 8
	.global uring_object_start, uring_object_end
uring_object_start:
	.incbin URING_OBJECT
uring_object_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
