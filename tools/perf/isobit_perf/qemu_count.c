/* SPDX-License-Identifier: MIT */
/*
 * A plugin for qemu-user: the instructions from the first call of a function to its return.
 * usage: qemu-aarch64 -d plugin -D /dev/null -plugin qemu_count.so,function=NAME,out=FILE PROGRAM
 *
 * Debian's QEMU can load plugins and has no header for them; what is declared here is the part of
 * version 1 of the interface that is used. QEMU reads the symbols of the program only if something
 * is logged, hence -d.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;
typedef void (*on_block)(plugin_id id, struct qemu_plugin_tb *block);
typedef void (*on_instruction)(unsigned int cpu, void *data);
typedef void (*on_exit)(plugin_id id, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, on_block callback);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, on_instruction callback,
                                            int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int operation,
                                                void *counter, uint64_t addend);
void qemu_plugin_register_atexit_cb(plugin_id id, on_exit callback, void *data);
enum { NO_REGISTERS = 0, ADD = 0 };
#define ARM64_RET 0xd65f03c0u

int qemu_plugin_version = 1;
int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

static char function[128], out[512];
static uint64_t entry;             /* where the function begins; 0: not called yet */
static uint64_t executed, counted; /* without the instruction that is about to be executed */
static uint64_t before;            /* executed, as the function was called */
static int called;

static void on_entry(unsigned int cpu, void *data) {
    (void)cpu, (void)data;
    if (!called) /* a loop may lead back to the first instruction */
        before = executed;
    called = 1;
}

/* The function may not return in other ways: it is ours. */
static void on_return(unsigned int cpu, void *data) {
    (void)cpu, (void)data;
    if (!counted)
        counted = executed - before + 1;
}

static void translated(plugin_id id, struct qemu_plugin_tb *block) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
        const char *symbol = qemu_plugin_insn_symbol(insn);
        if (symbol && !strcmp(symbol, function)) {
            uint32_t code;
            memcpy(&code, qemu_plugin_insn_data(insn), sizeof code);
            if (!entry)
                entry = qemu_plugin_insn_vaddr(insn);
            if (qemu_plugin_insn_vaddr(insn) == entry)
                qemu_plugin_register_vcpu_insn_exec_cb(insn, on_entry, NO_REGISTERS, NULL);
            if (code == ARM64_RET)
                qemu_plugin_register_vcpu_insn_exec_cb(insn, on_return, NO_REGISTERS, NULL);
        }
        qemu_plugin_register_vcpu_insn_exec_inline(insn, ADD, &executed, 1);
    }
}

static void at_exit(plugin_id id, void *data) {
    (void)id, (void)data;
    FILE *file = fopen(out, "w");
    if (!file)
        return; /* whoever reads it sees that it is not there */
    fprintf(file, "%llu\n", (unsigned long long)counted);
    fclose(file);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "function=", 9))
            snprintf(function, sizeof function, "%s", argv[i] + 9);
        if (!strncmp(argv[i], "out=", 4))
            snprintf(out, sizeof out, "%s", argv[i] + 4);
    }
    if (!function[0] || !out[0]) {
        fputs("qemu_count: needs function=NAME,out=FILE\n", stderr);
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
