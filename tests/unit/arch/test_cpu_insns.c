/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Emulated instructions of every CPU, one by one: the registers and the memory that each one leaves. The effects were
 * worked out by hand from the manuals of the CPUs. The assembler of LLVM made the bytes.
 */
#include "arch/cpu.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * When an instruction begins, the general register n has the value 0x1000 * (n + 1), and so on in the words behind
 * them. The status word is 0, but for the mark of Thumb code. The byte at each address is the lowest of the address.
 */
enum { AT_PC = 0x10000, NR_WORDS = 48, NO_WORD = 255, NR_BYTES = 16, THUMB = 1 };

enum which { ARM, THUMB_CODE, AARCH64, RISCV64, MIPSEL, PPC };

static const struct machine {
	u16 elf;
	u8 word_size;
	bool is_big;
	u8 mark;	      /* of the pc of Thumb code */
	u8 first;	      /* word of the general register 0 */
	u8 nr_words;	      /* those that are looked at */
	u8 status, flags_bit; /* word of the flags, and the lowest of their bits */
	u8 zeroes[2];	      /* more words that are 0 at the beginning */
} machines[] = {
	[ARM] = { EM_ARM, 4, false, 0, 0, 17, 16, 28 },
	[THUMB_CODE] = { EM_ARM, 4, false, THUMB, 0, 17, 16, 28 },
	[AARCH64] = { EM_AARCH64, 8, false, 0, 0, 34, 33, 28 },
	[RISCV64] = { EM_RISCV, 8, false, 0, 0, 32, NO_WORD, 0 },
	[MIPSEL] = { EM_MIPS, 4, false, 0, 6, 41, NO_WORD, 0 },
	[PPC] = { EM_PPC, 4, true, 0, 0, 39, NO_WORD, 0, { 37, 38 } },
};

/*
 * An instruction, its bytes, and what it does: "r1=" a general register, or a word behind them; "flags="; "pc=", if it
 * is not the next instruction; "at=" and "bytes=", if it stores. Everything else stays. "unknown": it is not emulated.
 */
static const struct insn {
	enum which which;
	const char *text, *code, *effect;
} insns[] = {
	/* clang-format off */
	{ ARM, "adds r0, r1, r2", "020091e0", "r0=5000 flags=0" },
	{ ARM, "subs r0, r1, r1", "010051e0", "r0=0 flags=6" },
	{ ARM, "rsb r0, r1, #0", "000061e2", "r0=ffffe000" },
	{ ARM, "adc r0, r1, r2", "0200a1e0", "r0=5000" },
	{ ARM, "sbc r0, r2, r1", "0100c2e0", "r0=fff" },
	{ ARM, "rsc r0, r1, r2", "0200e1e0", "r0=fff" },
	{ ARM, "and r0, r1, r2", "020001e0", "r0=2000" },
	{ ARM, "orr r0, r1, r2", "020081e1", "r0=3000" },
	{ ARM, "eor r0, r1, r2", "020021e0", "r0=1000" },
	{ ARM, "bic r0, r2, r1", "0100c2e1", "r0=1000" },
	{ ARM, "mvn r0, r1", "0100e0e1", "r0=ffffdfff" },
	{ ARM, "mov r0, #0xff000000", "ff04a0e3", "r0=ff000000" },
	{ ARM, "lsl r0, r1, #4", "0102a0e1", "r0=20000" },
	{ ARM, "lsr r0, r1, #4", "2102a0e1", "r0=200" },
	{ ARM, "asr r0, r1, #32", "4100a0e1", "r0=0" },
	{ ARM, "ror r0, r1, #16", "6108a0e1", "r0=20000000" },
	{ ARM, "rrx r0, r1", "6100a0e1", "r0=1000" },
	{ ARM, "tst r1, r2", "020011e1", "flags=0" },
	{ ARM, "teq r1, r1", "010031e1", "flags=4" },
	{ ARM, "cmn r1, r2", "020071e1", "flags=0" },
	{ ARM, "cmp r1, r2", "020051e1", "flags=8" },
	{ ARM, "addeq r0, r1, r2", "02008100", "" },
	{ ARM, "addgt r0, r1, r2", "020081c0", "r0=5000" },
	{ ARM, "movw r0, #0x1234", "340201e3", "r0=1234" },
	{ ARM, "movt r0, #0x5678", "780645e3", "r0=56781000" },
	{ ARM, "ldr r0, [r1, #4]", "040091e5", "r0=7060504" },
	{ ARM, "ldrb r0, [r1, #255]", "ff00d1e5", "r0=ff" },
	{ ARM, "ldrsb r0, [r1, #255]", "df0fd1e1", "r0=ffffffff" },
	{ ARM, "ldrh r0, [r1, #2]", "b200d1e1", "r0=302" },
	{ ARM, "ldrsh r0, [r1, #254]", "fe0fd1e1", "r0=fffffffe" },
	{ ARM, "str r2, [r1, #8]", "082081e5", "at=2008 bytes=00300000" },
	{ ARM, "strb r2, [r1], #1", "0120c1e4", "at=2000 bytes=00 r1=2001" },
	{ ARM, "strh r2, [r1, -r0]", "b02001e1", "at=1000 bytes=0030" },
	{ ARM, "ldr r0, [r1, r2, lsl #1]", "820091e7", "r0=3020100" },
	{ ARM, "ldr r0, [r1], #4", "040091e4", "r0=3020100 r1=2004" },
	{ ARM, "ldr r0, [r1, #2]", "020091e5", "unknown" },
	{ ARM, "ldr r0, [r0], #4", "040090e4", "unknown" },
	{ ARM, "ldrd r2, r3, [r1]", "d020c1e1", "unknown" },
	{ ARM, "ldm r1!, {r2, r3}", "0c00b1e8", "r2=3020100 r3=7060504 r1=2008" },
	{ ARM, "ldmdb r1, {r2, r3}", "0c0011e9", "r2=fbfaf9f8 r3=fffefdfc" },
	{ ARM, "stmib r1, {r2, r3}", "0c0081e9", "at=2004 bytes=0030000000400000" },
	{ ARM, "ldm r1, {r2}^", "0400d1e8", "unknown" },
	{ ARM, "blx r1", "31ff2fe1", "pc=2000 r14=10004" },
	{ ARM, "blx #8", "020000fa", "pc=10011 r14=10004" },
	{ ARM, "beq #8", "0200000a", "" },
	{ ARM, "bne #8", "0200001a", "pc=10010" },
	{ ARM, "ldr pc, [r1, #4]", "04f091e5", "pc=7060504" },
	{ ARM, "movs pc, r1", "01f0b0e1", "unknown" },
	{ ARM, "svc #0", "000000ef", "unknown" },
	{ ARM, "nop", "00f020e3", "" },
	{ THUMB_CODE, "lsls r0, r1, #4", "0801", "r0=20000 flags=0" },
	{ THUMB_CODE, "lsrs r0, r1, #4", "0809", "r0=200 flags=0" },
	{ THUMB_CODE, "asrs r0, r1, #4", "0811", "r0=200 flags=0" },
	{ THUMB_CODE, "adds r0, r1, r2", "8818", "r0=5000 flags=0" },
	{ THUMB_CODE, "subs r0, r1, #7", "c81f", "r0=1ff9 flags=2" },
	{ THUMB_CODE, "movs r0, #9", "0920", "r0=9 flags=0" },
	{ THUMB_CODE, "cmp r0, #200", "c828", "flags=2" },
	{ THUMB_CODE, "adds r0, #200", "c830", "r0=10c8 flags=0" },
	{ THUMB_CODE, "subs r0, #200", "c838", "r0=f38 flags=2" },
	{ THUMB_CODE, "ands r0, r1", "0840", "r0=0 flags=4" },
	{ THUMB_CODE, "eors r0, r1", "4840", "r0=3000 flags=0" },
	{ THUMB_CODE, "adcs r0, r1", "4841", "r0=3000 flags=0" },
	{ THUMB_CODE, "sbcs r0, r1", "8841", "r0=ffffefff flags=8" },
	{ THUMB_CODE, "tst r0, r1", "0842", "flags=4" },
	{ THUMB_CODE, "rsbs r0, r1, #0", "4842", "r0=ffffe000 flags=8" },
	{ THUMB_CODE, "cmp r0, r1", "8842", "flags=8" },
	{ THUMB_CODE, "cmn r0, r1", "c842", "flags=0" },
	{ THUMB_CODE, "orrs r0, r1", "0843", "r0=3000 flags=0" },
	{ THUMB_CODE, "bics r0, r1", "8843", "r0=1000 flags=0" },
	{ THUMB_CODE, "mvns r0, r1", "c843", "r0=ffffdfff flags=8" },
	{ THUMB_CODE, "mov r8, r1", "8846", "r8=2000" },
	{ THUMB_CODE, "add r8, r1", "8844", "r8=b000" },
	{ THUMB_CODE, "cmp r8, r1", "8845", "flags=2" },
	{ THUMB_CODE, "mov pc, lr", "f746", "pc=f001" },
	{ THUMB_CODE, "blx r1", "8847", "pc=2000 r14=10003" },
	{ THUMB_CODE, "ldr r0, [pc, #8]", "0248", "r0=f0e0d0c" },
	{ THUMB_CODE, "str r0, [r1, r2]", "8850", "at=5000 bytes=00100000" },
	{ THUMB_CODE, "strh r0, [r1, r2]", "8852", "at=5000 bytes=0010" },
	{ THUMB_CODE, "strb r0, [r1, r2]", "8854", "at=5000 bytes=00" },
	{ THUMB_CODE, "ldrsb r0, [r1, r2]", "8856", "r0=0" },
	{ THUMB_CODE, "ldr r0, [r1, r2]", "8858", "r0=3020100" },
	{ THUMB_CODE, "ldrh r0, [r1, r2]", "885a", "r0=100" },
	{ THUMB_CODE, "ldrb r0, [r1, r2]", "885c", "r0=0" },
	{ THUMB_CODE, "ldrsh r0, [r1, r2]", "885e", "r0=100" },
	{ THUMB_CODE, "str r0, [r1, #8]", "8860", "at=2008 bytes=00100000" },
	{ THUMB_CODE, "ldr r0, [r1, #8]", "8868", "r0=b0a0908" },
	{ THUMB_CODE, "strb r0, [r1, #3]", "c870", "at=2003 bytes=00" },
	{ THUMB_CODE, "ldrb r0, [r1, #3]", "c878", "r0=3" },
	{ THUMB_CODE, "ldrh r0, [r1, #6]", "c888", "r0=706" },
	{ THUMB_CODE, "strh r0, [r1, #6]", "c880", "at=2006 bytes=0010" },
	{ THUMB_CODE, "str r0, [sp, #16]", "0490", "at=e010 bytes=00100000" },
	{ THUMB_CODE, "ldr r0, [sp, #16]", "0498", "r0=13121110" },
	{ THUMB_CODE, "adr r0, #8", "02a0", "r0=1000c" },
	{ THUMB_CODE, "add r0, sp, #8", "02a8", "r0=e008" },
	{ THUMB_CODE, "add sp, #16", "04b0", "r13=e010" },
	{ THUMB_CODE, "sub sp, #16", "84b0", "r13=dff0" },
	{ THUMB_CODE, "cbz r0, #8", "20b1", "" },
	{ THUMB_CODE, "cbnz r0, #8", "20b9", "pc=1000d" },
	{ THUMB_CODE, "sxth r0, r1", "08b2", "r0=2000" },
	{ THUMB_CODE, "uxtb r0, r1", "c8b2", "r0=0" },
	{ THUMB_CODE, "push {r0, r1, lr}", "03b5", "at=dff4 bytes=001000000020000000f00000 r13=dff4" },
	{ THUMB_CODE, "pop {r0, pc}", "01bd", "r0=3020100 r13=e008 pc=7060504" },
	{ THUMB_CODE, "stm r1!, {r0, r2}", "05c1", "at=2000 bytes=0010000000300000 r1=2008" },
	{ THUMB_CODE, "ldm r1!, {r0, r2}", "05c9", "r0=3020100 r2=7060504 r1=2008" },
	{ THUMB_CODE, "beq #8", "04d0", "" },
	{ THUMB_CODE, "bne #8", "04d1", "pc=1000d" },
	{ THUMB_CODE, "b #8", "04e0", "pc=1000d" },
	{ THUMB_CODE, "nop", "00bf", "" },
	{ THUMB_CODE, "svc #1", "01df", "unknown" },
	{ THUMB_CODE, "add.w r0, r1, #0x00ff00ff", "01f1ff10", "r0=ff20ff" },
	{ THUMB_CODE, "and r0, r1, #0xff00ff00", "01f0ff20", "r0=2000" },
	{ THUMB_CODE, "orr r0, r1, #0x01010101", "41f00130", "r0=1012101" },
	{ THUMB_CODE, "mov.w r0, #0x3fc00", "4ff47f30", "r0=3fc00" },
	{ THUMB_CODE, "mvn r0, #1", "6ff00100", "r0=fffffffe" },
	{ THUMB_CODE, "tst.w r0, #0x1000", "10f4805f", "flags=0" },
	{ THUMB_CODE, "teq r0, r0", "90ea000f", "flags=4" },
	{ THUMB_CODE, "cmn.w r0, r1", "10eb010f", "flags=0" },
	{ THUMB_CODE, "cmp.w r0, #0x9000", "b0f5104f", "flags=8" },
	{ THUMB_CODE, "orn r0, r1, r2", "61ea0200", "r0=ffffefff" },
	{ THUMB_CODE, "bic r0, r2, r1", "22ea0100", "r0=1000" },
	{ THUMB_CODE, "eor r0, r2, r1", "82ea0100", "r0=1000" },
	{ THUMB_CODE, "adc r0, r2, r1", "42eb0100", "r0=5000" },
	{ THUMB_CODE, "sbc r0, r2, r1", "62eb0100", "r0=fff" },
	{ THUMB_CODE, "rsb r0, r1, r2", "c1eb0200", "r0=1000" },
	{ THUMB_CODE, "sub.w r0, r2, r1, lsl #1", "a2eb4100", "r0=fffff000" },
	{ THUMB_CODE, "add.w r0, r1, r2, ror #16", "01eb3240", "r0=30002000" },
	{ THUMB_CODE, "pkhbt r0, r1, r2", "c1ea0200", "unknown" },
	{ THUMB_CODE, "addw r0, r1, #0x123", "01f22310", "r0=2123" },
	{ THUMB_CODE, "subw r0, r1, #1", "a1f20100", "r0=1fff" },
	{ THUMB_CODE, "addw r0, pc, #8", "0ff20800", "r0=1000c" },
	{ THUMB_CODE, "movw r0, #0x1234", "41f23420", "r0=1234" },
	{ THUMB_CODE, "movt r0, #0x5678", "c5f27860", "r0=56781000" },
	{ THUMB_CODE, "b.w #0x1000", "01f000b8", "pc=11005" },
	{ THUMB_CODE, "bl #0x1000", "01f000f8", "pc=11005 r14=10005" },
	{ THUMB_CODE, "blx #0x1000", "01f000e8", "pc=11004 r14=10005" },
	{ THUMB_CODE, "beq.w #0x1000", "01f00080", "" },
	{ THUMB_CODE, "bne.w #0x1000", "41f00080", "pc=11005" },
	{ THUMB_CODE, "dmb sy", "bff35f8f", "unknown" },
	{ THUMB_CODE, "tbb [r0, r1]", "d0e801f0", "pc=10005" },
	{ THUMB_CODE, "tbh [r1, r2, lsl #1]", "d1e812f0", "pc=10205" },
	{ THUMB_CODE, "stmdb r1!, {r2, r3}", "21e90c00", "at=1ff8 bytes=0030000000400000 r1=1ff8" },
	{ THUMB_CODE, "ldm.w r1!, {r2, r8}", "b1e80401", "r2=3020100 r8=7060504 r1=2008" },
	{ THUMB_CODE, "ldr.w r0, [r1, #0x104]", "d1f80401", "r0=7060504" },
	{ THUMB_CODE, "ldrb r0, [r1, #-1]", "11f8010c", "r0=ff" },
	{ THUMB_CODE, "ldrsb r0, [r1, #255]", "91f9ff00", "r0=ffffffff" },
	{ THUMB_CODE, "ldrsh r0, [r1, #254]", "b1f9fe00", "r0=fffffffe" },
	{ THUMB_CODE, "ldr.w r0, [r1, r2, lsl #2]", "51f82200", "r0=3020100" },
	{ THUMB_CODE, "ldr r0, [r1], #4", "51f8040b", "r0=3020100 r1=2004" },
	{ THUMB_CODE, "str r0, [r1, #-4]!", "41f8040d", "at=1ffc bytes=00100000 r1=1ffc" },
	{ THUMB_CODE, "ldr.w r0, [pc, #-4]", "5ff80400", "r0=3020100" },
	{ THUMB_CODE, "strh.w r8, [r1, #2]", "a1f80280", "at=2002 bytes=0090" },
	{ THUMB_CODE, "ldr r0, [r0], #4", "50f8040b", "unknown" },
	{ THUMB_CODE, "ldrt r0, [r1, #4]", "51f8040e", "r0=7060504" },
	{ THUMB_CODE, "ldrd r2, r3, [r1, #8]", "d1e90223", "r2=b0a0908 r3=f0e0d0c" },
	{ THUMB_CODE, "strd r2, r3, [r1], #8", "e1e80223", "at=2000 bytes=0030000000400000 r1=2008" },
	{ THUMB_CODE, "ldrex r0, [r1]", "51e8000f", "unknown" },
	{ THUMB_CODE, "nop.w", "aff30080", "" },
	{ AARCH64, "b.eq #8", "40000054", "" },
	{ AARCH64, "b.ne #8", "41000054", "pc=10008" },
	{ AARCH64, "cbz x0, #8", "400000b4", "" },
	{ AARCH64, "cbnz w0, #8", "40000035", "pc=10008" },
	{ AARCH64, "tbz x0, #12, #8", "40006036", "" },
	{ AARCH64, "tbnz x0, #12, #8", "40006037", "pc=10008" },
	{ AARCH64, "b #-8", "feffff17", "pc=fff8" },
	{ AARCH64, "br x1", "20001fd6", "pc=2000" },
	{ AARCH64, "blr x1", "20003fd6", "pc=2000 r30=10004" },
	{ AARCH64, "adr x0, #8", "40000010", "r0=10008" },
	{ AARCH64, "adrp x0, #4096", "000000b0", "r0=11000" },
	{ AARCH64, "add x0, x1, #1, lsl #12", "20044091", "r0=3000" },
	{ AARCH64, "subs x0, x1, x1", "200001eb", "r0=0 flags=6" },
	{ AARCH64, "adds w0, w1, w2", "2000022b", "r0=5000 flags=0" },
	{ AARCH64, "subs w0, w1, #1", "20040071", "r0=1fff flags=2" },
	{ AARCH64, "sub x0, x1, x2", "200002cb", "r0=fffffffffffff000" },
	{ AARCH64, "cmp x1, x2", "3f0002eb", "flags=8" },
	{ AARCH64, "add sp, sp, #16", "ff430091", "r31=20010" },
	{ AARCH64, "add x0, x1, x2, lsl #4", "2010028b", "r0=32000" },
	{ AARCH64, "sub x0, x2, x1, lsr #4", "401041cb", "r0=2e00" },
	{ AARCH64, "add w0, w1, w2, asr #4", "2010820b", "r0=2300" },
	{ AARCH64, "and x0, x1, x2", "2000028a", "r0=2000" },
	{ AARCH64, "orr x0, x1, x2", "200002aa", "r0=3000" },
	{ AARCH64, "eor x0, x1, x2", "200002ca", "r0=1000" },
	{ AARCH64, "bic x0, x2, x1", "4000218a", "r0=1000" },
	{ AARCH64, "ands x0, x1, x0", "200000ea", "r0=0 flags=4" },
	{ AARCH64, "eor x0, x1, x2, ror #4", "2010c2ca", "r0=2300" },
	{ AARCH64, "mvn x0, x1", "e00321aa", "r0=ffffffffffffdfff" },
	{ AARCH64, "and x0, x1, #0xff00ff00ff00ff00", "209c0892", "r0=2000" },
	{ AARCH64, "orr w0, w1, #1", "20000032", "r0=2001" },
	{ AARCH64, "eor x0, x1, #0x8000000000000001", "200441d2", "r0=8000000000002001" },
	{ AARCH64, "movz x0, #0x1234, lsl #16", "8046a2d2", "r0=12340000" },
	{ AARCH64, "movn x0, #1", "20008092", "r0=fffffffffffffffe" },
	{ AARCH64, "movk x0, #0x5678, lsl #48", "00cfeaf2", "r0=5678000000001000" },
	{ AARCH64, "movn w0, #0", "00008012", "r0=ffffffff" },
	{ AARCH64, "lsl x0, x1, #4", "20ec7cd3", "r0=20000" },
	{ AARCH64, "lsr x0, x1, #4", "20fc44d3", "r0=200" },
	{ AARCH64, "asr w0, w1, #4", "207c0413", "r0=200" },
	{ AARCH64, "uxth w0, w1", "203c0053", "r0=2000" },
	{ AARCH64, "sxtw x0, w1", "207c4093", "r0=2000" },
	{ AARCH64, "ubfx x0, x1, #12, #4", "203c4cd3", "r0=2" },
	{ AARCH64, "sbfx x0, x1, #12, #2", "20344c93", "r0=fffffffffffffffe" },
	{ AARCH64, "bfi x0, x1, #4, #4", "200c7cb3", "unknown" },
	{ AARCH64, "csel x0, x1, x2, eq", "2000829a", "r0=3000" },
	{ AARCH64, "csinc x0, x1, x2, eq", "2004829a", "r0=3001" },
	{ AARCH64, "csinv x0, x1, x2, eq", "200082da", "r0=ffffffffffffcfff" },
	{ AARCH64, "csneg x0, x1, x2, eq", "200482da", "r0=ffffffffffffd000" },
	{ AARCH64, "csel x0, x1, x2, ne", "2010829a", "r0=2000" },
	{ AARCH64, "ldp x0, x1, [sp, #16]", "e00741a9", "r0=1716151413121110 r1=1f1e1d1c1b1a1918" },
	{ AARCH64, "ldp w0, w1, [x2], #8", "4004c128", "r0=3020100 r1=7060504 r2=3008" },
	{ AARCH64, "stp x0, x1, [x2]", "400400a9", "at=3000 bytes=00100000000000000020000000000000" },
	{ AARCH64, "ldpsw x0, x1, [x2]", "40044069", "unknown" },
	{ AARCH64, "ldp x0, x1, [x0], #16", "0004c1a8", "unknown" },
	{ AARCH64, "str w1, [x2, #4]", "410400b9", "at=3004 bytes=00200000" },
	{ AARCH64, "ldrb w0, [x1, #255]", "20fc4339", "r0=ff" },
	{ AARCH64, "ldrsb x0, [x1, #255]", "20fc8339", "r0=ffffffffffffffff" },
	{ AARCH64, "ldrsb w0, [x1, #255]", "20fcc339", "r0=ffffffff" },
	{ AARCH64, "ldrsh x0, [x1, #254]", "20fc8179", "r0=fffffffffffffffe" },
	{ AARCH64, "ldrsw x0, [x1, #252]", "20fc80b9", "r0=fffffffffffefdfc" },
	{ AARCH64, "ldur x0, [x1, #-8]", "20805ff8", "r0=fffefdfcfbfaf9f8" },
	{ AARCH64, "ldr x0, [x1], #8", "208440f8", "r0=706050403020100 r1=2008" },
	{ AARCH64, "str x0, [x1, #-16]!", "200c1ff8", "at=1ff0 bytes=0010000000000000 r1=1ff0" },
	{ AARCH64, "ldr x0, [x0], #8", "008440f8", "unknown" },
	{ AARCH64, "ldr x0, [x1, x2]", "206862f8", "r0=706050403020100" },
	{ AARCH64, "ldr x0, [x1, x2, lsl #3]", "207862f8", "r0=706050403020100" },
	{ AARCH64, "ldr w0, [x1, w2, uxtw]", "204862b8", "r0=3020100" },
	{ AARCH64, "ldr w0, [x1, w2, sxtw #2]", "20d862b8", "r0=3020100" },
	{ AARCH64, "strb w1, [x2]", "41000039", "at=3000 bytes=00" },
	{ AARCH64, "prfm pldl1keep, [x0]", "000080f9", "unknown" },
	{ AARCH64, "svc #0", "010000d4", "unknown" },
	{ AARCH64, "nop", "1f2003d5", "" },
	{ RISCV64, "lb a0, -1(a1)", "0385f5ff", "r10=ffffffffffffffff" },
	{ RISCV64, "lbu a0, -1(a1)", "03c5f5ff", "r10=ff" },
	{ RISCV64, "lh a0, -2(a1)", "0395e5ff", "r10=fffffffffffffffe" },
	{ RISCV64, "lhu a0, -2(a1)", "03d5e5ff", "r10=fffe" },
	{ RISCV64, "lw a0, -4(a1)", "03a5c5ff", "r10=fffffffffffefdfc" },
	{ RISCV64, "lwu a0, -4(a1)", "03e5c5ff", "r10=fffefdfc" },
	{ RISCV64, "ld a0, -8(a1)", "03b585ff", "r10=fffefdfcfbfaf9f8" },
	{ RISCV64, "sb a1, 1(a0)", "a300b500", "at=b001 bytes=00" },
	{ RISCV64, "sh a1, 2(a0)", "2311b500", "at=b002 bytes=00c0" },
	{ RISCV64, "sw a1, 4(a0)", "2322b500", "at=b004 bytes=00c00000" },
	{ RISCV64, "sd a1, 8(a0)", "2334b500", "at=b008 bytes=00c0000000000000" },
	{ RISCV64, "addi a0, a1, -1", "1385f5ff", "r10=bfff" },
	{ RISCV64, "slti a0, a1, -1", "13a5f5ff", "r10=0" },
	{ RISCV64, "sltiu a0, a1, -1", "13b5f5ff", "r10=1" },
	{ RISCV64, "xori a0, a1, -1", "13c5f5ff", "r10=ffffffffffff3fff" },
	{ RISCV64, "ori a0, a1, 1", "13e51500", "r10=c001" },
	{ RISCV64, "andi a0, a1, -1", "13f5f5ff", "r10=c000" },
	{ RISCV64, "slli a0, a1, 4", "13954500", "r10=c0000" },
	{ RISCV64, "srli a0, a1, 4", "13d54500", "r10=c00" },
	{ RISCV64, "srai a0, a1, 4", "13d54540", "r10=c00" },
	{ RISCV64, "addiw a0, a1, -1", "1b85f5ff", "r10=bfff" },
	{ RISCV64, "slliw a0, a1, 16", "1b950501", "r10=ffffffffc0000000" },
	{ RISCV64, "srliw a0, a1, 4", "1bd54500", "r10=c00" },
	{ RISCV64, "sraiw a0, a1, 4", "1bd54540", "r10=c00" },
	{ RISCV64, "add a0, a1, a2", "3385c500", "r10=19000" },
	{ RISCV64, "sub a0, a1, a2", "3385c540", "r10=fffffffffffff000" },
	{ RISCV64, "sll a0, a1, a2", "3395c500", "r10=c000" },
	{ RISCV64, "slt a0, a1, a2", "33a5c500", "r10=1" },
	{ RISCV64, "sltu a0, a2, a1", "3335b600", "r10=0" },
	{ RISCV64, "xor a0, a1, a2", "33c5c500", "r10=1000" },
	{ RISCV64, "srl a0, a1, a2", "33d5c500", "r10=c000" },
	{ RISCV64, "sra a0, a1, a2", "33d5c540", "r10=c000" },
	{ RISCV64, "or a0, a1, a2", "33e5c500", "r10=d000" },
	{ RISCV64, "and a0, a1, a2", "33f5c500", "r10=c000" },
	{ RISCV64, "addw a0, a1, a2", "3b85c500", "r10=19000" },
	{ RISCV64, "subw a0, a1, a2", "3b85c540", "r10=fffffffffffff000" },
	{ RISCV64, "sllw a0, a1, a2", "3b95c500", "r10=c000" },
	{ RISCV64, "srlw a0, a1, a2", "3bd5c500", "r10=c000" },
	{ RISCV64, "mulw a0, a1, a2", "3b85c502", "unknown" },
	{ RISCV64, "lui a0, 0x80000", "37050080", "r10=ffffffff80000000" },
	{ RISCV64, "auipc a0, 1", "17150000", "r10=11000" },
	{ RISCV64, "jalr ra, 8(a0)", "e7008500", "pc=b008 r1=10004" },
	{ RISCV64, "jal ra, 16", "ef000001", "pc=10010 r1=10004" },
	{ RISCV64, "beq a0, a1, 8", "6304b500", "" },
	{ RISCV64, "bne a0, a1, 8", "6314b500", "pc=10008" },
	{ RISCV64, "blt a0, a1, 8", "6344b500", "pc=10008" },
	{ RISCV64, "bge a0, a1, 8", "6354b500", "" },
	{ RISCV64, "bltu a0, a1, 8", "6364b500", "pc=10008" },
	{ RISCV64, "bgeu a0, a1, 8", "6374b500", "" },
	{ RISCV64, "ecall", "73000000", "unknown" },
	{ RISCV64, "c.addi4spn a0, sp, 16", "0808", "r10=3010" },
	{ RISCV64, "c.lw a0, 4(a1)", "c841", "r10=7060504" },
	{ RISCV64, "c.ld a0, 8(a1)", "8865", "r10=f0e0d0c0b0a0908" },
	{ RISCV64, "c.sw a0, 4(a1)", "c8c1", "at=c004 bytes=00b00000" },
	{ RISCV64, "c.sd a0, 8(a1)", "88e5", "at=c008 bytes=00b0000000000000" },
	{ RISCV64, "c.addi a0, -1", "7d15", "r10=afff" },
	{ RISCV64, "c.addiw a0, 1", "0525", "r10=b001" },
	{ RISCV64, "c.li a0, -1", "7d55", "r10=ffffffffffffffff" },
	{ RISCV64, "c.lui a0, 1", "0565", "r10=1000" },
	{ RISCV64, "c.addi16sp sp, 32", "0561", "r2=3020" },
	{ RISCV64, "c.srli a0, 4", "1181", "r10=b00" },
	{ RISCV64, "c.srai a0, 4", "1185", "r10=b00" },
	{ RISCV64, "c.andi a0, 15", "3d89", "r10=0" },
	{ RISCV64, "c.sub a0, a1", "0d8d", "r10=fffffffffffff000" },
	{ RISCV64, "c.xor a0, a1", "2d8d", "r10=7000" },
	{ RISCV64, "c.or a0, a1", "4d8d", "r10=f000" },
	{ RISCV64, "c.and a0, a1", "6d8d", "r10=8000" },
	{ RISCV64, "c.subw a0, a1", "0d9d", "r10=fffffffffffff000" },
	{ RISCV64, "c.addw a0, a1", "2d9d", "r10=17000" },
	{ RISCV64, "c.j 8", "21a0", "pc=10008" },
	{ RISCV64, "c.beqz a0, 8", "01c5", "" },
	{ RISCV64, "c.bnez a0, 8", "01e5", "pc=10008" },
	{ RISCV64, "c.slli a0, 4", "1205", "r10=b0000" },
	{ RISCV64, "c.lwsp a0, 4(sp)", "1245", "r10=7060504" },
	{ RISCV64, "c.ldsp a0, 8(sp)", "2265", "r10=f0e0d0c0b0a0908" },
	{ RISCV64, "c.swsp a1, 4(sp)", "2ec2", "at=3004 bytes=00c00000" },
	{ RISCV64, "c.sdsp a1, 8(sp)", "2ee4", "at=3008 bytes=00c0000000000000" },
	{ RISCV64, "c.jr a0", "0285", "pc=b000" },
	{ RISCV64, "c.jalr a0", "0295", "pc=b000 r1=10002" },
	{ RISCV64, "c.mv a0, a1", "2e85", "r10=c000" },
	{ RISCV64, "c.add a0, a1", "2e95", "r10=17000" },
	{ RISCV64, "c.ebreak", "0290", "unknown" },
	{ MIPSEL, "slti $2, $4, -1", "ffff8228", "r2=0" },
	{ MIPSEL, "sltiu $2, $4, -1", "ffff822c", "r2=1" },
	{ MIPSEL, "andi $2, $4, 0xf000", "00f08230", "r2=5000" },
	{ MIPSEL, "ori $2, $4, 1", "01008234", "r2=5001" },
	{ MIPSEL, "xori $2, $4, 0x1000", "00108238", "r2=4000" },
	{ MIPSEL, "lui $2, 0x1234", "3412023c", "r2=12340000" },
	{ MIPSEL, "lb $2, -1($4)", "ffff8280", "r2=ffffffff" },
	{ MIPSEL, "lbu $2, -1($4)", "ffff8290", "r2=ff" },
	{ MIPSEL, "lh $2, -2($4)", "feff8284", "r2=fffffffe" },
	{ MIPSEL, "lhu $2, -2($4)", "feff8294", "r2=fffe" },
	{ MIPSEL, "lw $2, 4($4)", "0400828c", "r2=7060504" },
	{ MIPSEL, "lw $2, 2($4)", "0200828c", "unknown" },
	{ MIPSEL, "lwl $2, 4($4)", "04008288", "unknown" },
	{ MIPSEL, "sb $4, 1($5)", "0100a4a0", "at=6001 bytes=00" },
	{ MIPSEL, "sh $4, 2($5)", "0200a4a4", "at=6002 bytes=0050" },
	{ MIPSEL, "sw $4, 4($5)", "0400a4ac", "at=6004 bytes=00500000" },
	{ MIPSEL, "sw $4, 1($5)", "0100a4ac", "unknown" },
	{ MIPSEL, "sll $2, $4, 4", "00110400", "r2=50000" },
	{ MIPSEL, "srl $2, $4, 4", "02110400", "r2=500" },
	{ MIPSEL, "sra $2, $4, 4", "03110400", "r2=500" },
	{ MIPSEL, "addu $2, $4, $5", "21108500", "r2=b000" },
	{ MIPSEL, "subu $2, $4, $5", "23108500", "r2=fffff000" },
	{ MIPSEL, "and $2, $4, $5", "24108500", "r2=4000" },
	{ MIPSEL, "or $2, $4, $5", "25108500", "r2=7000" },
	{ MIPSEL, "xor $2, $4, $5", "26108500", "r2=3000" },
	{ MIPSEL, "nor $2, $4, $5", "27108500", "r2=ffff8fff" },
	{ MIPSEL, "slt $2, $5, $4", "2a10a400", "r2=0" },
	{ MIPSEL, "sltu $2, $4, $5", "2b108500", "r2=1" },
	{ MIPSEL, "movz $2, $4, $0", "0a108000", "r2=5000" },
	{ MIPSEL, "movn $2, $4, $5", "0b108500", "r2=5000" },
	{ MIPSEL, "mfhi $2", "10100000", "r2=22000" },
	{ MIPSEL, "mflo $2", "12100000", "r2=21000" },
	{ MIPSEL, "beq $4, $5, 16; nop", "0400851000000000", "pc=10008" },
	{ MIPSEL, "bne $4, $5, 16; nop", "0400851400000000", "pc=10014" },
	{ MIPSEL, "blez $4, 16; nop", "0400801800000000", "pc=10008" },
	{ MIPSEL, "bgtz $4, 16; nop", "0400801c00000000", "pc=10014" },
	{ MIPSEL, "bltz $4, 16; nop", "0400800400000000", "pc=10008" },
	{ MIPSEL, "bgez $4, 16; nop", "0400810400000000", "pc=10014" },
	{ MIPSEL, "bgezal $4, 16; nop", "0400910400000000", "pc=10014 r31=10008" },
	{ MIPSEL, "jalr $4; addu $2, $4, $5", "09f8800021108500", "pc=5000 r31=10008 r2=b000" },
	{ MIPSEL, "teq $4, $5", "34008500", "unknown" },
	{ PPC, "addi 3, 4, -1", "3864ffff", "r3=4fff" },
	{ PPC, "lis 3, 0x1234", "3c601234", "r3=12340000" },
	{ PPC, "ori 3, 4, 1", "60830001", "r3=5001" },
	{ PPC, "oris 3, 4, 1", "64830001", "r3=15000" },
	{ PPC, "xori 3, 4, 0x1000", "68831000", "r3=4000" },
	{ PPC, "andi. 3, 4, 0xf000", "7083f000", "r3=5000 r38=40000000" },
	{ PPC, "cmpwi 4, 0x6000", "2c046000", "r38=80000000" },
	{ PPC, "cmplwi 1, 4, 0x4000", "28844000", "r38=4000000" },
	{ PPC, "cmpw 4, 4", "7c042000", "r38=20000000" },
	{ PPC, "cmplw 4, 5", "7c042840", "r38=80000000" },
	{ PPC, "add. 3, 4, 5", "7c642a15", "r3=b000 r38=40000000" },
	{ PPC, "subf 3, 5, 4", "7c652050", "r3=fffff000" },
	{ PPC, "or 3, 4, 5", "7c832b78", "r3=7000" },
	{ PPC, "and 3, 4, 5", "7c832838", "r3=4000" },
	{ PPC, "rlwinm 3, 4, 4, 0, 27", "54832036", "r3=50000" },
	{ PPC, "rlwinm 3, 4, 0, 20, 15", "5483051e", "r3=0" },
	{ PPC, "lwz 3, 4(4)", "80640004", "r3=4050607" },
	{ PPC, "lbz 3, -1(4)", "8864ffff", "r3=ff" },
	{ PPC, "lhz 3, 2(4)", "a0640002", "r3=203" },
	{ PPC, "lha 3, -2(4)", "a864fffe", "r3=fffffeff" },
	{ PPC, "stw 5, 4(4)", "90a40004", "at=5004 bytes=00006000" },
	{ PPC, "stb 5, 1(4)", "98a40001", "at=5001 bytes=00" },
	{ PPC, "sth 5, 2(4)", "b0a40002", "at=5002 bytes=6000" },
	{ PPC, "lwzu 3, 4(4)", "84640004", "r3=4050607 r4=5004" },
	{ PPC, "lwzu 4, 4(4)", "84840004", "unknown" },
	{ PPC, "stmw 30, 8(4)", "bfc40008", "at=5008 bytes=0001f00000020000" },
	{ PPC, "lmw 30, 8(4)", "bbc40008", "r30=8090a0b r31=c0d0e0f" },
	{ PPC, "lmw 4, 8(4)", "b8840008", "unknown" },
	{ PPC, "mflr 3", "7c6802a6", "r3=25000" },
	{ PPC, "mtctr 3", "7c6903a6", "r35=4000" },
	{ PPC, "mfspr 3, 256", "7c6042a6", "unknown" },
	{ PPC, "ba 0x100", "48000102", "pc=100" },
	{ PPC, "bc 12, 2, 8", "41820008", "" },
	{ PPC, "bc 4, 2, 8", "40820008", "pc=10008" },
	{ PPC, "bdnz 8", "42000008", "pc=10008 r35=23fff" },
	{ PPC, "bdz 8", "42400008", "r35=23fff" },
	{ PPC, "bclrl 20, 0", "4e800021", "pc=25000 r36=10004" },
	{ PPC, "bctrl", "4e800421", "pc=24000 r36=10004" },
	{ PPC, "trap", "7fe00008", "unknown" },
	/* clang-format on */
};

/* The bytes that an instruction has stored. */
struct stored {
	taddr_t at;
	u8 bytes[NR_BYTES];
	size_t len;
};

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	for (size_t i = 0; i < len; i++)
		((u8 *)buf)[i] = (u8)(addr + i);
	return 0;
}

static int write_memory(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	struct stored *s = ctx;

	assert_true(!s->len && len <= sizeof(s->bytes));
	s->at = addr;
	s->len = len;
	memcpy(s->bytes, buf, len);
	return 0;
}

static int no_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	(void)addr;
	(void)buf;
	(void)len;
	return -EFAULT;
}

static int no_memory_to_write(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	(void)ctx;
	(void)addr;
	(void)buf;
	(void)len;
	return -EFAULT;
}

static const struct cpu *cpu_of(const struct machine *m)
{
	return cpu_find(m->elf, m->word_size, m->is_big);
}

static u8 *word_at(const struct machine *m, struct cpu_regs *regs, size_t word)
{
	return regs->bytes + word * m->word_size;
}

/* Registers are in the byte order of this machine, whichever CPU they belong to. */
static void put_word(const struct machine *m, struct cpu_regs *regs, size_t word, u64 value)
{
	u32 low = (u32)value;

	memcpy(word_at(m, regs, word), m->word_size == 8 ? (void *)&value : (void *)&low, m->word_size);
}

static struct cpu_regs beginning(const struct machine *m)
{
	const struct cpu *cpu = cpu_of(m);
	struct cpu_regs regs = { .size = cpu->regs_size };

	for (size_t w = m->first; w < m->nr_words; w++)
		put_word(m, &regs, w, 0x1000 * (w - m->first + 1));
	if (m->status != NO_WORD)
		put_word(m, &regs, m->status, 0);
	for (size_t i = 0; i < ARRAY_SIZE(m->zeroes); i++)
		if (m->zeroes[i])
			put_word(m, &regs, m->zeroes[i], 0);
	cpu_set(cpu, &regs, CPU_PC, AT_PC | m->mark);
	return regs;
}

static size_t bytes_of(const char *text, u8 *bytes)
{
	size_t nr = 0;

	for (; text[0] && text[0] != ' '; text += 2) {
		unsigned int byte;

		assert_int_equal(sscanf(text, "%2x", &byte), 1);
		bytes[nr++] = (u8)byte;
	}
	return nr;
}

/* The number behind @name in @effect. */
static bool find(const char *effect, const char *name, u64 *value)
{
	const char *at = strstr(effect, name);

	if (at)
		*value = strtoull(at + strlen(name), NULL, 16);
	return at;
}

static void check_registers(const struct insn *i, struct cpu_regs *before, struct cpu_regs *after)
{
	const struct machine *m = &machines[i->which];
	const struct cpu *cpu = cpu_of(m);

	for (size_t w = m->first; w < m->nr_words; w++) {
		char name[8];
		u64 value;

		if (w == cpu->words[CPU_PC] || w == m->status)
			continue;
		snprintf(name, sizeof(name), "r%zu=", w - m->first);
		if (find(i->effect, name, &value))
			put_word(m, before, w, value);
		assert_memory_equal(word_at(m, after, w), word_at(m, before, w), m->word_size);
	}
}

static void check_flags(const struct insn *i, const struct cpu_regs *after)
{
	const struct machine *m = &machines[i->which];
	u64 flags = 0;

	find(i->effect, "flags=", &flags);
	if (m->status != NO_WORD)
		assert_int_equal(cpu_get_word(cpu_of(m), after, m->status) >> m->flags_bit & 15, flags);
}

static void check_stored(const struct insn *i, const struct stored *s)
{
	const char *text = strstr(i->effect, "bytes=");
	u8 bytes[NR_BYTES];
	u64 at = 0;

	find(i->effect, "at=", &at);
	assert_int_equal(s->at, at);
	assert_int_equal(s->len, text ? bytes_of(text + strlen("bytes="), bytes) : 0);
	assert_memory_equal(s->bytes, bytes, s->len);
}

/* A word of Thumb code has its mark, also behind the instruction. */
static taddr_t pc_behind(const struct insn *i, size_t length)
{
	u64 pc = AT_PC + length;

	pc |= machines[i->which].mark;
	find(i->effect, "pc=", &pc);
	return pc;
}

static void check(const struct insn *i)
{
	const struct machine *m = &machines[i->which];
	const struct cpu *cpu = cpu_of(m);
	struct stored stored = { 0 };
	const struct cpu_memory memory = { &stored, read_memory, write_memory };
	struct cpu_regs before = beginning(m), after = before;
	u8 code[CPU_CODE_BYTES] = { 0 };
	size_t nr = bytes_of(i->code, code);
	int err = cpu_emulate(cpu, &after, code, sizeof(code), &memory);

	print_message("%s: %s\n", cpu->name, i->text);
	if (!strcmp(i->effect, "unknown")) {
		assert_int_equal(err, -ENOTSUP);
		assert_memory_equal(&after, &before, sizeof(after));
		return;
	}
	assert_int_equal(err, 0);
	assert_int_equal(cpu_get(cpu, &after, CPU_PC), pc_behind(i, nr));
	check_registers(i, &before, &after);
	check_flags(i, &after);
	check_stored(i, &stored);
}

static void test_effects(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(insns); i++)
		check(&insns[i]);
}

/* Without memory nothing changes, neither a base register nor the first register of several. */
static void test_without_memory(void **state)
{
	const struct cpu_memory memory = { NULL, no_memory, no_memory_to_write };
	size_t nr_faults = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(insns); i++) {
		const struct machine *m = &machines[insns[i].which];
		struct cpu_regs before = beginning(m), after = before;
		u8 code[CPU_CODE_BYTES] = { 0 };
		int err;

		bytes_of(insns[i].code, code);
		err = cpu_emulate(cpu_of(m), &after, code, sizeof(code), &memory);
		if (strstr(insns[i].effect, "at="))
			assert_int_equal(err, -EFAULT);
		if (err)
			assert_memory_equal(&after, &before, sizeof(after));
		nr_faults += err == -EFAULT;
	}
	assert_true(nr_faults > 100);
}

/* The length is for instructions that go on behind themselves: the bytes, or 0 where that is not sure. */
static void test_lengths(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(insns); i++) {
		const struct machine *m = &machines[insns[i].which];
		const struct cpu_regs regs = beginning(m);
		u8 code[CPU_CODE_BYTES] = { 0 };
		size_t nr = bytes_of(insns[i].code, code);
		size_t length = cpu_insn_length(cpu_of(m), &regs, code, sizeof(code));

		print_message("%s: %zu\n", insns[i].text, length);
		assert_true(length == nr || !length || (strchr(insns[i].text, ';') && length == 4));
		if (strstr(insns[i].effect, "pc="))
			assert_int_equal(length, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_effects),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
