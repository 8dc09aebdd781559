/* SPDX-License-Identifier: MIT
 *
 * isobit, the command line: finds the subcommand and leaves the rest to it. Exit codes: 0 done,
 * 1 failed, 2 wrong usage. Results go to stdout, everything else to stderr.
 */
#include "cli.h"

#include <signal.h>
#include <string.h>

enum {
    OPT_GENERATION = OPT_MODEL | OPT_BEAM | OPT_MAX_LENGTH | OPT_THREADS | OPT_ISA | OPT_SCORES |
                     OPT_JSON | OPT_DIGEST | OPT_ATTENTION | OPT_LAYER | OPT_INPUT | OPT_SAMPLING |
                     OPT_STREAM | OPT_MAP | OPT_COMPUTE | OPT_POSITIONS
};

static int cmd_version(const struct options *options);

static const struct command commands[] = {
    {"run", "[TEXT...]", "text in, text out: one output line for each line",
     "Each TEXT is a line; without any, lines are read from --input or standard input.\n"
     "Sequences of a line are joined by a space, an empty line stays empty. Of a decoder alone a\n"
     "line is a prompt, and the output is both; line breaks in it are written \\n, but with\n"
     "--stream. Characters that the\n"
     "vocabulary lacks become its unknown token; stderr has the number of those that cannot.",
     OPT_GENERATION | OPT_STRICT | OPT_LANGUAGES | OPT_STOP, true, cmd_run, NULL},
    {"generate", "[IDS...]", "the same on token ids",
     "Lines of source ids separated by spaces (EOS included, where the model wants it) become\n"
     "lines of target ids. Each argument is a line; without any, standard input is read.",
     OPT_GENERATION, true, cmd_generate, NULL},
    {"score", "[PAIR...]", "how probable given targets are",
     "Each line holds source ids, a TAB, and target ids without the decoder start token. The\n"
     "output line holds one natural logarithm for each target id. With --text a line is a text, a\n"
     "TAB, and its target, and the output is the sum of the logarithms, a TAB, how many there "
     "are,\n"
     "a TAB, and the perplexity, which is exp(-sum / count). The end token of a target counts, "
     "its\n"
     "language does not. A decoder alone goes on with what precedes the TAB, to which nothing is\n"
     "added; both may be missing, and all of the line counts then.",
     OPT_MODEL | OPT_THREADS | OPT_ISA | OPT_HEX | OPT_JSON | OPT_DIGEST | OPT_INPUT | OPT_AS_TEXT |
         OPT_STRICT | OPT_LANGUAGES | OPT_MAP | OPT_COMPUTE | OPT_POSITIONS,
     true, cmd_score, NULL},
    {"embed", "[TEXT...]", "text to vectors, with an encoder like BERT: one for each line",
     "Each TEXT is a line; without any, lines are read from --input or standard input. A vector "
     "is\n"
     "a JSON array on a line of its own; its numbers give the floats back exactly. An empty line\n"
     "has a vector too. White space around a line does not count. Lines that are longer than the\n"
     "model takes are cut, as sentence-transformers does; stderr has their number. Dense modules\n"
     "of the folder stay between pooling and length, whatever --pooling and --normalize say;\n"
     "where it has a module that isobit lacks, these two together replace all of them.",
     OPT_MODEL | OPT_THREADS | OPT_ISA | OPT_INPUT | OPT_STRICT | OPT_HEX | OPT_DIGEST |
         OPT_POOLING | OPT_NPY | OPT_ATTENTION | OPT_LAYER | OPT_MAP | OPT_COMPUTE,
     true, cmd_embed, NULL},
    {"fill", "[TEXT...]", "which tokens fit where a text has [MASK] or <mask>",
     "Each TEXT is a line with at least one mask token, as the tokenizer of the model writes it;\n"
     "without any, lines are read from --input or standard input. For each mask the output has "
     "its\n"
     "most probable tokens, then the text with the best ones. An empty line stays empty.",
     OPT_MODEL | OPT_THREADS | OPT_ISA | OPT_INPUT | OPT_STRICT | OPT_JSON | OPT_DIGEST | OPT_TOP |
         OPT_MAP | OPT_COMPUTE,
     true, cmd_fill, NULL},
    {"demo", "", "one text on every instruction set of this machine: speed and hash",
     "Shows what the model makes of a text, then computes it with each instruction set and\n"
     "compares the hashes of all outputs and scores. Exit code 1 when they differ.",
     OPT_MODEL | OPT_THREADS | OPT_ISA | OPT_TEXT | OPT_ATTENTION | OPT_LAYER | OPT_ALSO |
         OPT_COMPUTE,
     false, cmd_demo, NULL},
    {"bench", "", "how fast a model is, and how fast it could be at best",
     "Encodes and decodes made-up sequences, and compares with what this machine can do: fused\n"
     "multiply-adds, and reading as many bytes as the decoder has weights.",
     OPT_MODEL | OPT_BASE | OPT_SECONDS | OPT_THREADS | OPT_ISA | OPT_JSON | OPT_COMPUTE, false,
     cmd_bench, NULL},
    {"explain", "OPERATION SHAPE", "how an operation is computed here, why, and what limits it",
     "OPERATION and SHAPE are gemm MxNxK (C [M][N] = A [M][K] B [K][N]), linear MxNxK (the same "
     "with\n"
     "packed weights) or attention BATCHxHEADSxQUERIESxKEYSxWIDTH. The bound is the longer of the\n"
     "multiply-adds and of reading the operands once from where so many bytes lie.",
     OPT_EXPLAIN | OPT_ISA | OPT_THREADS | OPT_SECONDS | OPT_JSON, true, cmd_explain, NULL},
    {"quantize", "", "a model once more, with fewer bits: a folder that loads as it is",
     "bf16 and f16 are for linear layers, logits and embeddings, int8 and int4 for all of these "
     "that\n"
     "is multiplied; other tensors stay as they are. int8 has a scale for each output, and "
     "computes\n"
     "what --compute int8 computes; int4 has one for each --group of numbers, and its logits 8 "
     "bits.\n"
     "The table has the largest error of each tensor, and the root mean square of its errors, as "
     "a\n"
     "part of that of its numbers. The folder appears when it is complete; until then it is\n"
     "DIR.partial.",
     OPT_MODEL | OPT_QUANTIZE | OPT_THREADS | OPT_ISA | OPT_JSON, false, cmd_quantize, NULL},
    {"info", "", "the machine, its instruction sets, and which one was chosen and why", NULL,
     OPT_ABOUT | OPT_JSON | OPT_COMPUTE, false, cmd_info, NULL},
    {"check", "", "every kernel on every instruction set, against the truth", NULL, 0, false, NULL,
     cmd_check},
    {"version", "", "the version of the library", NULL, 0, false, cmd_version, NULL},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static int cmd_version(const struct options *options) {
    (void)options;
    const char *numerics = iso_numerics(NULL);
    if (numerics == NULL)
        return wrong_numerics();
    printf("isobit %s (numerics %s)\n", iso_version(), numerics);
    return 0;
}

static void print_help(FILE *out) {
    fputs("isobit: Transformers on the CPU, the same bits on every instruction set\n\n"
          "usage: isobit COMMAND [OPTION...]\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fputs("\nisobit COMMAND --help explains the options of a command.\n"
          "ISOBIT_ISA=NAME in the environment chooses the instruction set, as --isa does,\n"
          "ISOBIT_NUMERICS=native lets BF16 weights be multiplied with other bits, and faster;\n"
          "isobit info --env lists all such variables.\n",
          out);
}

static int help(void) {
    print_help(stdout);
    return output_flush();
}

static int unknown_command(const char *name) {
    char names[200] = "";
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", commands[i].name);
    }
    return usage("there is no command '%s'; the commands are: %s", name, names);
}

int main(int argc, char **argv) {
    /* A closed pipe and a limit of file sizes are errors like a full disk, and said so. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) { /* who types the name alone wants to know what there is */
        print_help(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help();
    if (strcmp(name, "--version") == 0)
        name = "version";
    if (name[0] == '-')
        return usage("unknown option '%s'; see isobit --help", name);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        struct options options;
        int code = 0;
        if (commands[i].run_raw != NULL)
            code = commands[i].run_raw(argc - 1, argv + 1);
        else if (options_parse(&options, &commands[i], argc - 1, argv + 1, &code))
            code = commands[i].run(&options);
        int lost = output_flush();
        return code != 0 ? code : lost;
    }
    return unknown_command(name);
}
