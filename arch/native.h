/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs of which this build has tables: all, and in the agent only its own and those that run the same programs. */
#pragma once

#if !defined(ONLY_NATIVE_CPUS) || defined(__x86_64__) || defined(__i386__)
#define HAS_X86
#endif
#if !defined(ONLY_NATIVE_CPUS) || defined(__aarch64__) || defined(__arm__)
#define HAS_ARM
#endif
#if !defined(ONLY_NATIVE_CPUS) || defined(__riscv)
#define HAS_RISCV
#endif
#if !defined(ONLY_NATIVE_CPUS) || defined(__mips__)
#define HAS_MIPS
#endif
#if !defined(ONLY_NATIVE_CPUS) || defined(__powerpc__)
#define HAS_POWERPC
#endif
#if !defined(ONLY_NATIVE_CPUS) || defined(__aarch64__)
#define HAS_AARCH64
#endif

/* May a call leave its return address in a register? Of these CPUs only x86 has none for it. */
#if !defined(ONLY_NATIVE_CPUS) || !(defined(__x86_64__) || defined(__i386__))
#define HAS_LINK_CPUS 1
#else
#define HAS_LINK_CPUS 0
#endif
