#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutation run: breaks the sources in small ways, one at a time, and looks whether a test fails.

A mutant is one change by one of the rules below. It is compiled in a copy of the sources, its
objects are put before the libraries on the link line of the test programs (so that the linker never
takes the good ones out of the archive), and the programs run, those that have killed most in their
time first, until one fails, crashes or exceeds its time: then the mutant is killed. What does not compile is invalid and not
counted; what compiles to the same object is no change. A mutant that survives shows a gap of the
tests, or changes nothing that anybody could observe: then tests/mutate/equivalent.txt says why.

All validations of the files that read untrusted input are mutated, of the rest a choice that a seed
makes (--all: everything). Results are kept, so a run that was interrupted goes on.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import queue
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EQUIVALENT = os.path.join(HERE, "equivalent.txt")

SETS = ["avx2", "avx512", "scalar"]
KERNELS = ["kernels/templates/" + name + ".h" for name in
           ("attention", "eltwise", "gemm", "gemm_along", "gemm_direct", "gemm_strip", "gemv",
            "lanes", "math", "norm", "rope", "softmax")]
KERNELS += ["kernels/%s/%s.h" % (isa, name) for isa in SETS for name in ("vec", "gemm_tile")]
DISPATCH = ["dispatch/" + name for name in
            ("attention.c", "check.h", "cpu.c", "gemm.c", "gemm/block.c",
             "gemm/narrow.c", "gemm/plan.c", "gemm/run.c", "gemm/streams.c", "gemm/transposed_c.c",
             "gemv.c", "info.c", "linear.c", "pool.c", "rows.c", "select.c", "status.c", "threads.c")]
LOADER = ["model/" + name + ".c" for name in
          ("bin", "checkpoint", "config", "config_reader", "config_rope", "config_search",
           "families", "file", "gguf", "gguf_config", "json", "load", "pickle", "safetensors",
           "weights", "zip")]
LOADER += ["model/config_reader.h"]
LOADER += ["model/text/" + name + ".c" for name in
           ("added", "bpe", "characters", "gguf", "languages", "m2m", "marian", "metaspace",
            "pipeline", "pipeline_added", "pipeline_files", "pipeline_json", "pipeline_model",
            "pipeline_spm", "pipeline_spm_added", "pipeline_spm_model", "pipeline_spm_tokens",
            "pipeline_steps", "scan", "spm_file", "spm_text", "tokenizer", "unigram",
            "vocabulary", "wordpiece")]
CALLS = ["model/" + name + ".c" for name in
         ("batch", "sentence", "text/sentence_text", "text/spelt", "text/stop", "text/target")]
BLAS = ["blas/" + name for name in
        ("errors.c", "gemm.c", "interface.h", "interface_batches.h", "interface_vectors.h",
         "pack.c", "threads.c", "vectors.c")]
AREAS = {"kernels": KERNELS, "dispatch": DISPATCH, "loader": LOADER, "calls": CALLS, "blas": BLAS}
# How many are chosen, besides the validations of the loader, which are all taken.
QUOTA = {"kernels": 90, "dispatch": 60, "loader": 40, "calls": 60, "blas": 60}
TOKENIZERS = ["gpt2", "roberta", "prefix-space", "llama3", "qwen2", "bert", "bert-cased",
              "sequence", "bart", "nllb", "nllb-json", "mbart", "mbart50", "mbart50-json", "t5",
              "t5-bpe", "pegasus", "llama", "llama-json", "marian", "m2m_100"]
# A mutant of such a rule takes a validation away, moves its limit, or spoils its error code.
VALIDATION = {"drop if", "error code", "drop error", "limit", "overflow"}
WANTED = 95.0  # per cent killed


def area_of(path):
    return next(area for area, files in AREAS.items() if path in files)


# ------------------------------------------------------------------------------------- the rules

NUMBER = (r"0[xX][0-9a-fA-F]*(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?\d+)?[uUlLfF]*"
          r"|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?[uUlLfF]*")
TOKEN = re.compile(r"[A-Za-z_]\w*|" + NUMBER +
                   r"|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.", re.S)
SWAPS = {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="],
         "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"],
         "+=": ["-="], "-=": ["+="], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"]}
BINARY = set(SWAPS)
# Names that stand for each other, in kernels.
NAMES = {"vf_add": "vf_sub", "vf_sub": "vf_add", "vf_mul": "vf_add", "vf_div": "vf_mul",
         "vf_max": "vf_min", "vf_min": "vf_max", "vf_lt": "vf_eq", "vm_any": "vm_all",
         "vm_all": "vm_any", "ISO_STRIP_ADD": "ISO_STRIP_ASSIGN",
         "ISO_STRIP_ASSIGN": "ISO_STRIP_ADD", "ISO_STRIP_CONTINUE": "ISO_STRIP_ASSIGN",
         "_CMP_LT_OQ": "_CMP_LE_OQ", "_CMP_EQ_OQ": "_CMP_NEQ_OQ", "vf_exp_neg": "vf_set1"}
PARTS = [("_add_", "_sub_"), ("_sub_", "_add_"), ("_max_", "_min_"), ("_min_", "_max_"),
         ("unpacklo", "unpackhi"), ("unpackhi", "unpacklo"), ("fmadd", "fnmadd"),
         ("srai", "srli")]
MASKS = {"vm_first", "vi_first", "vf_load_n", "vf_store_n", "vf_keep", "load_w", "store_w",
         "keep_w", "vm_bytes"}
OVERFLOW = re.compile(r"__builtin_\w+_overflow|iso_mul_overflows")
LIMITED = re.compile(r"(?:model_)?read_\w+|check_\w+|model_json_\w+|count_limit|skip_either")
KEYWORDS = {"return", "if", "for", "while", "do", "else", "case", "switch", "goto", "sizeof",
            "break", "continue", "typedef", "default"}


def blank(text):
    """The text with comments, strings and directives blanked; of a macro its body stays."""
    out = list(text)

    def wipe(first, end):
        for i in range(first, end):
            if out[i] != "\n":
                out[i] = " "

    for m in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', text,
                         re.S):
        if m.group()[0] == "/":
            wipe(m.start(), m.end())
        else:  # the quotes stay: something is there
            wipe(m.start() + 1, m.end() - 1)
    kept = "".join(out)
    for m in re.finditer(r"^[ \t]*#[ \t]*(\w+)[^\n]*", kept, re.M):
        head = re.match(r"[ \t]*#[ \t]*define[ \t]+\w+(\([^)]*\))?", m.group())
        wipe(m.start(), m.start() + head.end() if head else m.end())
    return re.sub(r"\\\n", " \n", "".join(out))


class Source:
    """One file, and its tokens: (text, first, end), white space left out."""

    def __init__(self, path, text):
        self.path, self.text, self.code = path, text, blank(text)
        self.tokens = [(m.group(), m.start(), m.end()) for m in TOKEN.finditer(self.code)
                       if not m.group().isspace()]
        self.partner = {}
        stack = []
        for i, (t, _, _) in enumerate(self.tokens):
            if t in "([{":
                stack.append(i)
            elif t in ")]}" and stack:
                first = stack.pop()
                self.partner[first], self.partner[i] = i, first

    def arguments(self, opening):
        """The spans of the arguments between a parenthesis and its partner."""
        end, spans, i = self.partner[opening], [], opening + 1
        first = i
        while i <= end:
            if i == end or self.tokens[i][0] == ",":
                if i > first:
                    spans.append((self.tokens[first][1], self.tokens[i - 1][2]))
                first = i + 1
            elif self.tokens[i][0] in "([{" and i in self.partner:
                i = self.partner[i]
            i += 1
        return spans


def is_value(token):
    return bool(re.match(r"[\w)\]\"']", token)) and token not in KEYWORDS


def is_minimum(code, first, operator, end):
    """Whether `a OP b ? a : b` stands here: then OP with or without = gives the same."""
    m = re.match(r"\s*([^?;:]+?)\s*\?\s*([^?:;]+?)\s*:\s*([^;,{}?:]*)", code[end:])
    if not m:
        return False
    right, yes, no = (re.sub(r"\s", "", x) for x in m.groups())
    left = re.sub(r"\s", "", code[:first])
    other = no.rstrip(")")

    def same(a, b):
        return a == b or re.sub(r"\(size_t\)", "", a) == re.sub(r"\(size_t\)", "", b)

    return operator in ("<", "<=", ">", ">=") and (
        (left.endswith(yes) and (same(right, no) or same(right, other))) or
        (same(right, yes) and bool(other) and left.endswith(other)))


def generate(source):
    """Yields (first, end, replacement, rule, validation)."""
    text, code, tokens, partner = source.text, source.code, source.tokens, source.partner
    area = area_of(source.path)
    kernels, loader = area == "kernels", area == "loader"

    # Conditions, and which tokens lie within one that guards a return: a validation.
    guarded = set()
    for i, (t, _, _) in enumerate(tokens):
        if t != "if" or i + 1 not in partner:
            continue
        close = partner[i + 1]
        first, end = tokens[i + 1][2], tokens[close][1]
        body = close + 1
        last = partner.get(body, body) if tokens[body][0] == "{" else body
        while last == body and tokens[last][0] != ";":
            last += 1
            if last >= len(tokens) or tokens[last][0] == "{":
                break
        leaves = any(tokens[j][0] in ("return", "goto", "status") for j in range(body, last))
        if leaves:
            guarded.update(range(i + 2, close))
        condition = text[first:end]
        yield first, end, "(" + condition + ") && 0", "drop if", leaves
        if not leaves:
            yield first, end, "(" + condition + ") || 1", "always if", False

    for i, (t, first, end) in enumerate(tokens):
        before = tokens[i - 1][0] if i else ""
        after = tokens[i + 1][0] if i + 1 < len(tokens) else ""
        spaced = code[first - 1:first] in (" ", "\n") and code[end:end + 1] in (" ", "\n")
        check = i in guarded
        if t in SWAPS and spaced and is_value(before):
            if not is_minimum(code, first, t, end):
                for other in SWAPS[t]:
                    yield first, end, other, "operator", check
        elif re.fullmatch(NUMBER, t):
            digits = t.rstrip("uUlL")
            whole = re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", digits)
            if whole:
                value, rest = int(digits, 0), t[len(digits):]
                beside = before in BINARY or after in BINARY
                if beside and not (before == "[" or after == "]"):
                    for n in ([value + 1, value - 1] if value else [1]):
                        yield first, end, str(n) + rest, "constant", check
                elif before == "return" and after == ";":
                    yield first, end, str(int(not value)), "result", loader
                elif before == "=" and after in ";,":
                    yield first, end, str(value + 1), "initial value", False
                elif before == "," and after == "," and code[first - 3:first] == '", ':
                    yield first, end, str(value + 1), "table", loader
            elif kernels:
                number = t.rstrip("fF") if not t.lower().startswith("0x") or "p" in t.lower() else t
                suffix = t[len(number):]
                x = float.fromhex(number) if number.lower().startswith("0x") else float(number)
                if x:
                    yield first, end, (x * (1 + 1e-5)).hex() + suffix, "perturb", False
        elif OVERFLOW.fullmatch(t) and after == "(" and before not in ("int", "define"):
            last = tokens[partner[i + 1]][2]
            yield first, last, "(" + text[first:last] + " && 0)", "overflow", True
        elif re.fullmatch(r"ISOBIT_E_\w+", t) and before in ("return", ",", "=", "(", "?", ":"):
            yield first, end, "ISOBIT_E_INTERNAL", "error code", loader
        elif t == "status" and before == "(" and after == "=" and not kernels:
            close = partner[i - 1]
            call = text[tokens[i + 1][2]:tokens[close][1]].strip()
            if "(" in call:
                yield first, tokens[close][1], "status = ISOBIT_OK", "drop call", loader
                yield first, tokens[close][1], "%s, status = ISOBIT_OK" % call, "drop error", loader
        elif after == "(" and i + 1 in partner and LIMITED.fullmatch(t) and loader:
            for a, b in source.arguments(i + 1):
                digits = code[a:b].strip()
                if re.fullmatch(r"[01]", digits) and t in ("model_read_real", "check_id") and \
                        b == source.arguments(i + 1)[-1][1]:  # no number but a flag
                    yield a, b, str(1 - int(digits)), "limit", True
                elif re.fullmatch(r"\d+", digits):
                    for n in ([int(digits) + 1, int(digits) - 1] if int(digits) else [1]):
                        yield a, b, str(n), "limit", True
        elif t in ("break", "continue") and after == ";" and not kernels:
            yield first, end, "", "drop jump", False
        if kernels and re.match(r"[A-Za-z_]", t):
            is_call = after == "(" and i + 1 in partner
            spans = source.arguments(i + 1) if is_call else []
            declared = any(re.search(r"\w\s+\**\w+$", code[a:b]) for a, b in spans)
            if t in NAMES and not declared:
                yield first, end, NAMES[t], "swap name", False
            if t.startswith("_mm"):
                for a, b in PARTS:
                    if a in t:
                        yield first, end, t.replace(a, b), "swap name", False
                for a, b in (("loadu_ps", "load_ps"), ("storeu_ps", "store_ps")):
                    if t.endswith(a):
                        yield first, end, t.replace(a, b), "aligned", False
                for a, b in spans[-1:]:
                    if re.fullmatch(r"0x[0-9a-f]+|\d+", code[a:b]) and "setr" not in t:
                        yield a, b, str(int(code[a:b], 0) ^ 1), "shuffle", False
            if is_call and not declared and spans:
                args = [text[a:b] for a, b in spans]
                last = tokens[partner[i + 1]][2]
                if t in MASKS:
                    a, b = spans[-1]
                    for sign in "+-":
                        yield a, b, "(%s) %s 1" % (text[a:b], sign), "mask", False
                if t in ("vf_sub", "vf_mul", "vf_add") and len(args) == 2:
                    yield first, last, args[0], "drop operand", False
                if t in ("vf_max", "vf_min", "vf_fma", "_mm256_max_ps", "_mm512_max_ps"):
                    swapped = ([args[1], args[0]] if len(args) == 2
                               else [args[0], args[2], args[1]])
                    yield first, last, "%s(%s)" % (t, ", ".join(swapped)), "swap operands", False
                if t == "vf_fma" and len(args) == 3:
                    yield (spans[0][0], spans[0][1],
                           "vf_sub(vf_set1(-0.0f), %s)" % args[0], "sign of fma", False)
                    yield (first, last, "vf_add(vf_mul(%s, %s), %s)" % tuple(args),
                           "round twice", False)
                if t == "vf_select" and len(args) == 3:
                    yield (first, last, "vf_select(%s, %s, %s)" % (args[0], args[2], args[1]),
                           "swap operands", False)

    # The limits that files are held to.
    if loader:
        for m in re.finditer(r"^#define [A-Z][A-Z_]+ ([^\n/]*?\d[^\n/]*?)[ ]*(?:/\*.*)?$", text,
                             re.M):
            for sign in "+-" if '"' not in m.group(1) else "":
                yield (m.start(1), m.end(1), "((%s) %s 1)" % (m.group(1), sign), "limit", True)

    # Statements of one line.
    at = 0
    for line, shown in zip(code.split("\n"), text.split("\n")):
        m = re.match(r"\s*(\*?[A-Za-z_]\w*(?:->\w+|\.\w+|\[[^\]]*\])*)\s*"
                     r"(=[^=]|\+=|-=|\|=|&=|<<=|>>=|\+\+|--|\().*;\s*$", line)
        if m and re.match(r"\*?(\w+)", m.group(1)).group(1) not in KEYWORDS:
            body = line.rstrip()
            if (body.count("(") == body.count(")") and body.count(";") == 1 and
                    body.count("{") == body.count("}")):
                yield (at + m.start(1), at + len(body), ";", "drop statement", False)
        at += len(shown) + 1


class Mutant:
    """One change of one file; known by what it changes, not by its place."""

    def __init__(self, source, first, end, replacement, rule, validation):
        self.path, self.rule = source.path, rule
        self.validation = validation and rule in VALIDATION
        self.area = area_of(source.path)
        self.first, self.end, self.replacement = first, end, replacement
        self.line = source.text.count("\n", 0, first) + 1
        a = source.text.rfind("\n", 0, first) + 1
        b = source.text.find("\n", end)
        b = len(source.text) if b < 0 else b
        self.old = " ".join(source.text[a:b].split())
        self.new = " ".join((source.text[a:first] + replacement + source.text[end:b]).split())
        self.again = 0  # the how manieth of those that look the same

    def key(self):
        return (self.path, self.rule, self.old, self.new, self.again)

    def name(self):
        return hashlib.sha256(repr(self.key()).encode()).hexdigest()[:12]

    def entry(self):
        again = "again %d\n" % self.again if self.again else ""
        return "%s: %s\n%s- %s\n+ %s\n" % (self.path, self.rule, again, self.old, self.new)


def mutants_of(path, text):
    source, found, seen = Source(path, text), [], {}
    places = set()
    for change in generate(source):
        if change[:3] in places:
            continue
        places.add(change[:3])
        m = Mutant(source, *change)
        if m.old == m.new:
            continue
        m.again = seen.get(m.key()[:4], 0)
        seen[m.key()[:4]] = m.again + 1
        found.append(m)
    return found


def choose(mutants, seed):
    """All validations of the loader, and of each area its quota, spread over files and rules."""
    chosen = [m for m in mutants if m.area == "loader" and m.validation]
    for area, quota in QUOTA.items():
        groups = {}
        for m in mutants:
            if m.area == area and not (area == "loader" and m.validation):
                groups.setdefault((m.path, m.rule), []).append(m)
        for group in groups.values():
            group.sort(key=lambda m: hashlib.sha256((seed + m.name()).encode()).digest())
        turn, taken = 0, []
        while len(taken) < quota and any(len(g) > turn for g in groups.values()):
            layer = [g[turn] for g in groups.values() if len(g) > turn]
            layer.sort(key=lambda m: hashlib.sha256((seed + m.name()).encode()).digest())
            taken += layer
            turn += 1
        chosen += taken[:quota]
    return chosen


def read_equivalent():
    """key -> reason"""
    known = {}
    if not os.path.exists(EQUIVALENT):
        return known
    with open(EQUIVALENT, encoding="utf-8") as f:
        text = re.sub(r"^#.*\n", "", f.read(), flags=re.M)
    for block in re.split(r"\n\s*\n", text.strip()):
        m = re.fullmatch(r"(\S+): ([^\n]+)\n(?:again (\d+)\n)?- ([^\n]*)\n\+ ([^\n]*)\n(.+)", block,
                         re.S)
        if not m:
            if block.strip():
                sys.exit("mutate: not understood in equivalent.txt:\n" + block)
            continue
        path, rule, again, old, new, reason = m.groups()
        known[(path, rule, old, new, int(again or 0))] = " ".join(reason.split())
    return known


# ------------------------------------------------------------------------------ building, running

def say(text):
    print(text, flush=True)


def command(arguments, cwd, log):
    with open(log, "ab") as out:
        return subprocess.run(arguments, cwd=cwd, stdout=out, stderr=out, check=False).returncode


FAILED = re.compile(rb"^(\[  FAILED  \]|FAIL )", re.M)
PROGRAMS = ["test_kernels", "test_ops", "test_dispatch", "test_threads", "test_loader",
            "test_corpus", "test_checkpoints", "test_faults", "test_model", "test_gguf",
            "test_text", "test_text_families", "test_pipeline", "test_spm", "test_stop",
            "test_batch", "test_blas", "test_text_faults", "test_scan", "fuzz_seeds", "fuzz_safetensors",
            "fuzz_bin", "fuzz_gguf", "fuzz_config", "fuzz_model", "fuzz_tokenizer", "fuzz_spm",
            "fuzz_family", "fuzz_pipeline", "fuzz_ops"]
KINDS = {"plain": ["-DCMAKE_BUILD_TYPE=Release"],
         "asan": ["-DCMAKE_BUILD_TYPE=Debug", "-DISOBIT_SANITIZE=address,undefined"],
         "tsan": ["-DCMAKE_BUILD_TYPE=Debug", "-DISOBIT_SANITIZE=thread"]}
# The thread sanitizer is for the pool alone.
ONLY = {"tsan": ["test_threads", "fuzz_seeds"]}


class Build:
    """A build of the unchanged sources, and how its objects and programs are made."""

    def __init__(self, work, kind, jobs, needed):
        programs = [p for p in ONLY.get(kind, PROGRAMS) if p in needed or p == "fuzz_seeds"]
        self.kind, self.tree = kind, os.path.join(work, "tree")
        # As far from the sources as builds of presets are: a cache of compilers knows the objects.
        self.dir = os.path.join(self.tree, "build", *([] if kind == "plain" else [kind]))
        log = os.path.join(work, kind + ".log")
        say("building the tests (%s)" % kind)
        if command(["cmake", "-S", self.tree, "-B", self.dir, "-G", "Unix Makefiles",
                    "-DISOBIT_BENCH=OFF", "-DISOBIT_TOOLS=OFF"] + KINDS[kind], work, log) or \
           command(["cmake", "--build", self.dir, "-j", str(jobs), "--target"] + programs, work,
                   log):
            sys.exit("mutate: the build failed, see " + log)
        self.seeds = os.path.join(self.dir, "seeds")
        if command([self.program("fuzz_seeds"), self.seeds], work, log):
            sys.exit("mutate: fuzz_seeds failed, see " + log)
        with open(os.path.join(self.dir, "compile_commands.json"), encoding="utf-8") as f:
            # The tests compile some units once more, with other options.
            self.commands = {os.path.relpath(e["file"], self.tree): e for e in json.load(f)
                             if not e["directory"].startswith(self.dir + "/tests")}
        self.links = {}
        for name in programs:
            link = os.path.join(self.dir, "tests/CMakeFiles", name + ".dir", "link.txt")
            with open(link, encoding="utf-8") as f:
                self.links[name] = shlex.split(f.read())

    def program(self, name):
        return os.path.join(self.dir, "bin/tests", name)

    def compile(self, unit, tree, output):
        """The command that compiles a unit of another tree; warnings do not count."""
        e = self.commands[unit]
        words = [w.replace(self.tree + "/", tree + "/") for w in shlex.split(e["command"])]
        words = [w for w in words if w not in ("-Werror", "-g")]
        words = ["-O1" if w == "-O3" else w for w in words]
        words[words.index("-o") + 1] = output
        if unit.startswith("kernels/") and "-DISO_ROLLED" not in words:
            words.append("-DISO_ROLLED")
        return words + ["-w"], e["directory"]

    def link(self, name, objects, output):
        words = list(self.links[name])
        words[words.index("-o") + 1] = output
        # The usual linker takes three times as long, which is most of what many mutants cost.
        fast = ["-fuse-ld=gold"] if self.kind == "plain" and shutil.which("ld.gold") else []
        return words[:1] + objects + words[1:] + fast, os.path.join(self.dir, "tests")


def stages(path):
    """(kind of build, units that are made anew, test runs) from fast to slow."""
    area = area_of(path)
    if area == "kernels":
        units = ["kernels/%s/%s.c" % (isa, isa) for isa in SETS]
        first = path.split("/")[1]
        isa = first if first in SETS else SETS[0]
        if first in SETS:
            units = ["kernels/%s/%s.c" % (isa, isa)]
        yield "plain", ["kernels/%s/%s.c" % (isa, isa)], [
            ["test_kernels", "--quick", "--isa", isa]]
        yield "plain", units, [["test_kernels", "--quick"], ["test_ops", "--quick"],
                               ["test_kernels"],
                               ["test_kernels", "--quick", "--seed", "1", "--iters", "24000"],
                               ["test_ops"]]
    elif area == "dispatch":
        units = ["dispatch/%s.c" % name for name in ("gemm", "rows", "attention")] \
            if path.endswith(".h") else [path]
        quick = [["test_dispatch"], ["test_ops", "--quick"], ["fuzz_ops", "@"], ["test_model"]]
        yield "plain", units, quick + ([["test_threads"]] if path.endswith("/pool.c") else [])
        yield "plain", units, [["@Nehalem"], ["@Haswell"], ["test_threads"], ["test_ops"]]
        yield "asan", units, quick
        if path.endswith("/pool.c"):  # a lock that lacks shows in a plain build by chance only
            yield "tsan", units, [["test_threads"]]
    elif area == "blas":
        units = ["blas/lp64.c", "blas/ilp64.c"] if path.endswith(".h") else [path]
        yield "plain", units, [["test_blas", "--quick"]]
        yield "plain", units, [["test_blas"]]
        yield "asan", units, [["test_blas", "--quick"]]
    elif path == "model/batch.c":
        yield "plain", [path], [["test_batch"]]
        yield "asan", [path], [["test_batch"]]
    elif path == "model/sentence.c":
        yield "plain", [path], [["test_model"]]
        yield "asan", [path], [["test_model"]]
    elif path.startswith("model/gguf"):
        yield "plain", [path], [["fuzz_gguf", "@"], ["test_gguf"]]
        yield "asan", [path], [["fuzz_gguf", "@"], ["test_gguf"]]
    elif path.startswith("model/text/") and not path.endswith("/characters.c"):
        tests = [["test_spm"], ["test_text"] + TOKENIZERS,
                 ["test_text", "gguf", "gpt2", "llama3", "qwen2", "llama"],
                 ["test_text_families", "sentencepiece"]]
        tests += [["test_stop"] + TOKENIZERS]
        slow = [["test_pipeline"]]
        faults = ["test_text_faults"] + TOKENIZERS
        fuzz = [["fuzz_" + name, "@"] for name in ("tokenizer", "spm", "family", "pipeline")]
        if "/pipeline" in path:
            tests, slow = slow, tests
        elif path.endswith(("/gguf.c", "/tokenizer.c")):
            slow += [["test_gguf"], ["fuzz_gguf", "@"]]
        elif path.endswith(("/scan.c", "/bpe.c", "/vocabulary.c")):
            tests.insert(0, ["test_scan"])
        if path.endswith("/pipeline.c") or "/pipeline_spm" in path:
            slow += [["test_gguf"]]
        yield "plain", [path], tests + slow + [faults]
        yield "plain", [path], fuzz + [["test_loader"], ["test_model"]]
        yield "asan", [path], tests[:2] + fuzz + slow
    else:
        fuzz = [["fuzz_" + name, "@"] for name in ("safetensors", "bin", "config", "model", "tokenizer")]
        tests = fuzz[:2] + [["test_checkpoints"], ["test_corpus"], ["test_loader"]]
        tests += fuzz[2:] + [["test_model"]]
        units = ["model/%s.c" % name for name in ("config", "config_rope", "config_search")] \
            if path.endswith(".h") else [path]
        if path.endswith("/characters.c"):
            tests.insert(0, ["test_text_faults"] + TOKENIZERS)
        yield "plain", units, tests + [["test_faults"]]
        yield "plain", units, [["test_loader"]]
        yield "asan", units, fuzz + [["test_checkpoints"], ["test_loader"], ["test_corpus"]]


class Run:
    """Runs test programs, made of a build and some objects of our own."""

    def __init__(self, builds, directory, limits):
        self.builds, self.directory, self.limits = builds, directory, limits
        self.seconds = {}

    @staticmethod
    def label(kind, words):
        return kind + " " + " ".join(words)

    def run(self, kind, program, words, limit):
        """None when the test passes, else what happened. The limit is one of wall time; what
        computes forever is ended by that of CPU time, which a busy machine does not change."""
        build = self.builds[kind]
        env = dict(os.environ, TMPDIR=self.directory, ASAN_OPTIONS="hard_rss_limit_mb=3000",
                   UBSAN_OPTIONS="halt_on_error=1", TSAN_OPTIONS="halt_on_error=1")
        arguments = [program] + [os.path.join(build.seeds, words[0]) if w == "@" else w
                                 for w in words[1:]]
        if words[0].startswith("@"):
            arguments = ["qemu-x86_64", "-cpu", words[0][1:], program]
            env["ISOBIT_EXPECT_ISA"] = "avx2" if words[0] == "@Haswell" else "scalar"
        log = os.path.join(self.directory, "log")

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if kind == "plain":
                resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
            seconds = self.limits.get(self.label(kind, words) + " cpu", 3600)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

        start = time.monotonic()
        with open(log, "wb") as out, subprocess.Popen(
                arguments, cwd=self.directory, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                env=env, start_new_session=True, preexec_fn=limits) as process:
            verdict, pause = None, 0.01
            while True:
                try:
                    code = process.wait(pause)
                    if code not in (0, 77):
                        verdict = "signal %d" % -code if code < 0 else "exit %d" % code
                    break
                except subprocess.TimeoutExpired:
                    pause = min(0.1, pause * 2)
                with open(log, "rb") as f:
                    if FAILED.search(f.read(1 << 20)):
                        verdict = "failed"
                if time.monotonic() - start > limit:
                    verdict = "time"
                if verdict:
                    break
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.seconds[self.label(kind, words)] = time.monotonic() - start
        return verdict

    def test(self, kind, objects, words):
        name = "test_dispatch" if words[0].startswith("@") else words[0]
        program = os.path.join(self.directory, kind + "_" + name)
        if not os.path.exists(program):
            link, cwd = self.builds[kind].link(name, objects, program)
            if subprocess.run(link, cwd=cwd, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode:
                return "link"
        limit = self.limits.get(self.label(kind, words), 600)
        verdict = self.run(kind, program, words, limit)
        # On a busy machine a test may be slow, and test_threads, which measures time, may fail.
        if verdict == "time" or (verdict and words[0] == "test_threads"):
            verdict = self.run(kind, program, words, 3 * limit)
        return verdict


class Order:
    """What kills most mutants of a file in the time that it takes comes first."""

    def __init__(self, limits):
        self.limits, self.kills, self.lock = limits, {}, threading.Lock()

    def add(self, path, by):
        with self.lock:
            key = (path, by.rsplit(": ", 1)[0])
            self.kills[key] = self.kills.get(key, 0) + 1

    def sorted(self, path, kind, tests):
        with self.lock:
            def worth(words):
                label = Run.label(kind, words)
                seconds = max(0.1, (self.limits.get(label, 600) - 10) / 6)
                return self.kills.get((path, label), 0) / seconds
            return sorted(tests, key=worth, reverse=True)


class Worker:
    """A copy of the sources in which one mutant at a time is tried."""

    def __init__(self, number, work, builds, limits, pristine, order):
        self.order = order
        self.tree = os.path.join(work, "worker%d" % number)
        self.directory = os.path.join(work, "run%d" % number)
        self.builds, self.limits, self.pristine = builds, limits, pristine
        shutil.rmtree(self.tree, ignore_errors=True)
        tree = os.path.join(work, "tree")
        for part in ("include", "kernels", "dispatch", "model", "blas"):
            shutil.copytree(os.path.join(tree, part), os.path.join(self.tree, part))

    def compile(self, kind, unit):
        output = os.path.join(self.directory, kind + "_" + unit.replace("/", "_") + ".o")
        if not os.path.exists(output):
            words, cwd = self.builds[kind].compile(unit, self.tree, output)
            try:
                code = subprocess.run(words, cwd=cwd, stdout=subprocess.DEVNULL, timeout=300,
                                      stderr=subprocess.DEVNULL, check=False).returncode
            except subprocess.TimeoutExpired:
                code = 1
            if code:
                return None
        return output

    def try_mutant(self, mutant, text, known):
        """(result, what decided it); `known` is what the first stage gave, or None."""
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        path = os.path.join(self.tree, mutant.path)
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text[:mutant.first] + mutant.replacement + text[mutant.end:])
            return self.try_stages(mutant, known)
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)

    def try_stages(self, mutant, known):
        run = Run(self.builds, self.directory, self.limits)
        same = not known or known["by"] == "same"
        steps = list(stages(mutant.path))
        for kind, units, tests in steps[1:] if known else steps[:1]:
            objects = []
            for unit in units:
                output = self.compile(kind, unit)
                if not output:
                    return "invalid", unit
                # (In objects with sanitizers the paths of sources lie, and those differ.)
                with open(output, "rb") as f:
                    same = same and (kind != "plain" or hashlib.sha256(f.read()).digest() ==
                                     self.pristine[kind, unit])
                objects.append(output)
            if same:
                continue  # these units are as before; others may not be
            for program in os.listdir(self.directory):  # linked with fewer objects
                if re.match("(%s)_test" % "|".join(KINDS), program):
                    if not program.endswith(".o"):
                        os.remove(os.path.join(self.directory, program))
            for words in self.order.sorted(mutant.path, kind, tests):
                verdict = run.test(kind, objects, words)
                if verdict == "link":
                    return "invalid", "link"
                if verdict:
                    by = "%s: %s" % (Run.label(kind, words), verdict)
                    self.order.add(mutant.path, by)
                    return "killed", by
        if not known:
            return "alive", "same" if same else ""
        return ("same", "") if same else ("survived", "")


def copy_tree(work):
    """The files of the project, as they stand now, into a place of our own."""
    tree = os.path.join(work, "tree")
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in names:
        source, target = os.path.join(ROOT, name), os.path.join(tree, name)
        if not name or not os.path.isfile(source):
            continue
        with open(source, "rb") as f:
            data = f.read()
        if os.path.exists(target):
            with open(target, "rb") as f:
                if f.read() == data:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    return tree


def measure(builds, work, wanted, first):
    """Runs every test on unchanged sources: it must pass, and its time sets the limit."""
    directory, kept = os.path.join(work, "measure"), os.path.join(work, "limits.json")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    run, limits, seen = Run(builds, directory, {}), {}, {}
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as f:
            seen = json.load(f)
    for path in sorted(wanted):
        for kind, _, tests in list(stages(path))[:1 if first else None]:
            for words in tests:
                label = Run.label(kind, words)
                if label in limits:
                    continue
                name = "test_dispatch" if words[0].startswith("@") else words[0]
                with open(builds[kind].program(name), "rb") as f:
                    digest = label + " " + hashlib.sha256(f.read()).hexdigest()
                if digest + " cpu" not in seen:
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    verdict = run.test(kind, [], words)
                    if verdict:
                        sys.exit("mutate: without any mutant, %s ends with %s, see %s/log" %
                                 (label, verdict, directory))
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    seen[digest] = 10 + 6 * run.seconds[label]
                    seen[digest + " cpu"] = int(5 + 4 * (after.ru_utime + after.ru_stime -
                                                         before.ru_utime - before.ru_stime))
                    say("%5.1f s %s" % (run.seconds[label], label))
                limits[label] = seen[digest]
                limits[label + " cpu"] = seen[digest + " cpu"]
    with open(kept, "w", encoding="utf-8") as f:
        json.dump(seen, f)
    return limits


def machine_has(flag):
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        return re.search(r"\b%s\b" % flag, f.read()) is not None


# --------------------------------------------------------------------------------------- report

def report(mutants, results, known):
    """Prints the figures and what survived; returns the exit code."""
    rows, survivors, listed = {}, [], []
    for m in mutants:
        result = results.get(m.name())
        if not result:
            continue
        what = "survived" if result["result"] == "alive" else result["result"]
        if what == "survived" and m.key() in known:
            what = "equivalent"
            listed.append(m)
        elif what == "survived":
            survivors.append(m)
        for place in (m.path, m.area, "all"):
            row = rows.setdefault(place, dict.fromkeys(
                ("killed", "survived", "equivalent", "same", "invalid"), 0))
            row[what] += 1
    say("\n%-34s %7s %7s %9s %11s %6s %8s %8s" % ("", "mutants", "killed", "survived",
                                                  "equivalent", "same", "invalid", "score"))
    code = 0
    for place in [p for a in AREAS for p in AREAS[a] + [a]] + ["all"]:
        row = rows.get(place)
        if not row:
            continue
        counted = row["killed"] + row["survived"]
        score = 100.0 * row["killed"] / counted if counted else 100.0
        if place in AREAS or place == "all":
            place = "== " + place
        say("%-34s %7d %7d %9d %11d %6d %8d %6.1f %%" % (
            place, counted + row["equivalent"], row["killed"], row["survived"], row["equivalent"],
            row["same"], row["invalid"], score))
        if place == "== all" and score < WANTED:
            code = 1
        if place == "== loader" and row["survived"]:
            code = 1
    for m in listed:
        say("\nequivalent: " + m.entry() + "  " + known[m.key()])
    for m in survivors:
        say("\nsurvived (line %d): %s" % (m.line, m.entry().rstrip()))
    missing = len(mutants) - sum(m.name() in results for m in mutants)
    if missing:
        say("\nmutate: %d mutants have not been tried yet" % missing)
        code = 1
    say("\nmutate: %s" % ("too much survives" if code else "good: %.0f %% or more are killed, and "
                          "in the loader all" % WANTED))
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="*", help="only mutants of these files, or areas: " +
                        ", ".join(AREAS))
    parser.add_argument("--all", action="store_true", help="all mutants, not a choice")
    parser.add_argument("--only", metavar="NAME", help="one mutant, by its name in --list")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--report", action="store_true", help="print the results, run nothing")
    parser.add_argument("--retry", action="store_true", help="try survivors and invalid ones again")
    parser.add_argument("--first", action="store_true", help="only the first, fast tests of each")
    parser.add_argument("--alive", action="store_true",
                        help="only those that were alive after the first tests")
    parser.add_argument("--seed", default="1", help="of the choice (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "mutate"),
                        help="where copies and results lie (build/mutate)")
    options = parser.parse_args()

    work = os.path.abspath(options.work)
    os.makedirs(work, exist_ok=True)
    stale = options.report or options.list
    tree = ROOT if stale else copy_tree(work)
    texts = {}
    for path in (p for area in AREAS.values() for p in area):
        isa = path.split("/")[1]
        if isa == "avx512" and not machine_has("avx512vl"):
            say("mutate: SKIPPED: %s, the machine lacks AVX-512" % path)
            continue
        with open(os.path.join(tree, path), encoding="utf-8") as f:
            texts[path] = f.read()
    everything = [m for path, text in texts.items() for m in mutants_of(path, text)]
    mutants = everything if options.all or options.only else choose(everything, options.seed)
    if options.only:
        mutants = [m for m in mutants if m.name() == options.only]
    if options.files:
        mutants = [m for m in mutants if m.path in options.files or m.area in options.files]
    known = read_equivalent()
    if options.list:
        for m in mutants:
            say("%s %s:%d %s\n  - %s\n  + %s" % (m.name(), m.path, m.line, m.rule, m.old, m.new))
        say("%d mutants of %d" % (len(mutants), len(everything)))
        return 0

    # A result is good for the file that it was found with.
    state, results = os.path.join(work, "results.jsonl"), {}
    digests = {p: hashlib.sha256(t.encode()).hexdigest()[:12] for p, t in texts.items()}
    if os.path.exists(state):
        with open(state, encoding="utf-8") as f:
            for line in f:
                r = json.loads(line)
                if r["file"] == digests.get(r["path"]):
                    results[r["name"]] = r
    if options.report:
        for m in mutants:
            if m.key() in known:  # not run at all
                results.setdefault(m.name(), {"result": "survived"})
        return report(mutants, results, known)
    if options.retry or options.only:
        for m in mutants:
            if results.get(m.name(), {}).get("result") in (
                    "survived", "alive", "invalid") or options.only:
                results.pop(m.name(), None)
    # The first stage for all, then the others, which take long, for those that are alive. What
    # tells most comes first, then a mixture, in case that somebody stops us.
    order = ["drop if", "overflow", "limit"]
    mutants.sort(key=lambda m: (order.index(m.rule) if m.rule in order else len(order), m.name()))
    todo = [m for m in mutants if m.name() not in results]
    alive = [m for m in mutants if results.get(m.name(), {}).get("result") == "alive"]
    if todo or alive:
        needed = {}  # of each kind of build, the programs
        for path in {m.path for m in todo + alive}:
            for kind, _, tests in list(stages(path))[:1 if options.first else None]:
                needed.setdefault(kind, set()).update(
                    "test_dispatch" if words[0].startswith("@") else words[0] for words in tests)
        builds = {kind: Build(work, kind, options.jobs, needed[kind]) for kind in KINDS
                  if kind in needed}
        say("running the tests without a mutant")
        limits = measure(builds, work, {m.path for m in todo + alive}, options.first)
        pristine = {}
        directory = os.path.join(work, "measure")
        for path in {m.path for m in todo + alive}:
            for kind, units, _ in stages(path):
                for unit in units if kind in builds else []:
                    if (kind, unit) not in pristine:
                        words, cwd = builds[kind].compile(unit, tree, directory + "/pristine.o")
                        subprocess.run(words, cwd=cwd, check=True)
                        with open(directory + "/pristine.o", "rb") as f:
                            pristine[kind, unit] = hashlib.sha256(f.read()).digest()
        workers, lock, first = queue.Queue(), threading.Lock(), Order(limits)
        for r in results.values():
            if r["result"] == "killed":
                first.add(r["path"], r["by"])
        for number in range(options.jobs):
            workers.put(Worker(number, work, builds, limits, pristine, first))
        done = [0, 0]

        def attempt(m):
            worker = workers.get()
            start = time.monotonic()
            try:
                result, by = worker.try_mutant(m, texts[m.path], results.get(m.name()))
            finally:
                workers.put(worker)
            with lock, open(state, "a", encoding="utf-8") as f:
                done[0] += 1
                results[m.name()] = {"name": m.name(), "path": m.path, "file": digests[m.path],
                                     "result": result, "by": by}
                f.write(json.dumps(results[m.name()]) + "\n")
                say("%4d/%d %-8s %5.1f s %s %s:%d %s %s" % (
                    done[0], done[1], result, time.monotonic() - start, m.name(), m.path, m.line,
                    m.rule, by))

        # Those that are known to be equivalent need not be run: no test will tell.
        for m in [m for m in todo + alive if m.key() in known]:
            results[m.name()] = {"result": "survived"}
        todo = [m for m in todo if m.key() not in known and not options.alive]
        for batch in (todo, None):
            if batch is None:
                batch = [m for m in mutants if results.get(m.name(), {}).get("result") == "alive"]
                if options.first:
                    break
            done = [0, len(batch)]
            say("%d mutants" % len(batch))
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for future in [pool.submit(attempt, m) for m in batch]:
                    future.result()
    return report(mutants, results, known)


if __name__ == "__main__":
    sys.exit(main())
