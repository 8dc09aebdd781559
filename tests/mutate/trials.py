# SPDX-License-Identifier: MIT
"""Builds, and how one mutant after the other is compiled, linked and tested."""
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

from areas import stages

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FAILED = re.compile(rb"^(\[  FAILED  \]|FAIL )", re.M)
PROGRAMS = ["test_kernels", "test_ops", "test_dispatch", "test_threads", "test_loader",
            "test_corpus", "test_checkpoints", "test_faults", "test_model", "test_families",
            "test_sample", "test_gguf", "test_text", "test_text_families", "test_pipeline",
            "test_spm", "test_stop", "test_batch", "test_blas", "blas_openmp", "blas_openmp_fake", "test_text_faults",
            "test_scan", "test_w16", "test_q", "test_s8", "test_kv16", "test_b16", "test_amx", "test_plan", "test_prefetch", "test_passes", "test_parts",
            "test_ways",
            "test_verbose",
            "test_blocks", "test_gguf_q", "test_quantize", "test_search", "test_long", "test_attention",
            "test_tiny_gpt2", "fuzz_seeds", "fuzz_safetensors", "fuzz_bin", "fuzz_gguf", "fuzz_config", "fuzz_model", "fuzz_tokenizer", "fuzz_spm",
            "fuzz_family", "fuzz_pipeline", "fuzz_ops"]
KINDS = {"plain": ["-DCMAKE_BUILD_TYPE=Release"],
         "asan": ["-DCMAKE_BUILD_TYPE=Debug", "-DISOBIT_SANITIZE=address,undefined"],
         "tsan": ["-DCMAKE_BUILD_TYPE=Debug", "-DISOBIT_SANITIZE=thread"]}
# The thread sanitizer is for the pool alone.
ONLY = {"tsan": ["test_threads", "fuzz_seeds"]}


def say(text):
    print(text, flush=True)


def command(arguments, cwd, log):
    with open(log, "ab") as out:
        return subprocess.run(arguments, cwd=cwd, stdout=out, stderr=out, check=False).returncode


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
            places = [(os.path.relpath(e["file"], self.tree), e) for e in json.load(f)]
            self.commands = {unit: e for unit, e in places if unit.startswith("tests/") or
                             not e["directory"].startswith(self.dir + "/tests")}
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
        if unit.startswith(("kernels/", "tests/amx_")) and "-DISO_ROLLED" not in words:
            words.append("-DISO_ROLLED")
        return words + ["-w"], e["directory"]

    def link(self, name, objects, output):
        # A test that includes a source is made anew itself, and stands there already.
        own = tuple("/" + os.path.basename(o).split("_tests_")[1] for o in objects
                    if "_tests_" in os.path.basename(o))
        words = [w for w in self.links[name] if not w.endswith(own)]
        words[words.index("-o") + 1] = output
        # The usual linker takes three times as long, which is most of what many mutants cost.
        fast = ["-fuse-ld=gold"] if self.kind == "plain" and shutil.which("ld.gold") else []
        return words[:1] + objects + words[1:] + fast, os.path.join(self.dir, "tests")


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
        arguments = [program] + [os.path.join(build.seeds, words[0]) if w == "@" else
                                 os.path.join(build.tree, w) if w.startswith("tests/") else w
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
                return self.kills.get((path, label), 0) / seconds, -seconds
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
        os.symlink(os.path.join(tree, "tests"), os.path.join(self.tree, "tests"))

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
        if not known and same and all(set(units) <= set(steps[0][1]) for _, units, _ in steps):
            return "same", ""  # nothing is left to look at
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
