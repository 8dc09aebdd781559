# SPDX-License-Identifier: MIT
"""Tests of isobit_ab, by what it prints and how it ends.

ISOBIT_BUILD: the build folder; the test libraries lie in bench/ of it.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

BUILD = Path(os.environ["ISOBIT_BUILD"])
PROGRAM = str(BUILD / "bin/isobit_ab")
LIBRARY = str(BUILD / "lib/libisobit.so")
OTHER = str(BUILD / "bench/libtest_ab_other.so")  # see test_ab_library.c
BARE = str(BUILD / "bench/libtest_ab_bare.so")
EMPTY = str(BUILD / "bench/libtest_ab_empty.so")

GEMM = "gemm/64x64x64/scalar/t1"
SOFTMAX = "softmax/512x512/scalar/t1"
LAYERNORM = "layernorm/128x512/scalar/t1"
GEMV = "gemv/512x512/scalar/t1"
LINEAR = ("linear/64x512x512/scalar/t1", "linear/1x512x512/scalar/t1")
SHORT = ("--slot", "1e-5", "--seconds", "100", "--blocks", "1")

Lines = list[dict[str, Any]]


def start(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=300,
                          check=False, **more)


def pair(a: str, b: str, *names: str, more: tuple[str, ...] = SHORT) -> tuple[int, Lines, str]:
    done = start("--a", a, "--b", b, "--bench", *names, *more)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def of_type(lines: Lines, kind: str) -> Lines:
    return [line for line in lines if line["type"] == kind]


def names_of(*args: str) -> list[str]:
    return start("--list", *args).stdout.split()


class Names(unittest.TestCase):
    def test_list_is_that_of_isobit_bench(self) -> None:
        bench = str(BUILD / "bin/isobit_bench")
        sets = [["--isa", name] for name in ("avx512", "avx2", "neon", "scalar")]
        for isa in sets + [[]]:
            there = subprocess.run([bench, "--list", *isa], capture_output=True, text=True,
                                   check=False)
            here = start("--list", *isa)
            self.assertEqual(here.stdout, there.stdout)
            self.assertEqual(here.returncode, 77 if there.returncode else 0)
        self.assertGreater(len(names_of()), 50)
        small = [name for name in names_of() if name.startswith("gemm/16x16x16/")]
        self.assertEqual([n for n in small if not n.endswith("/t1") or "/scalar/" in n], [])

    def test_isa_that_is_not_here(self) -> None:
        done = start("--list", "--isa", "mmx")
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertIn("no instruction set 'mmx' here; there is: ", done.stderr)


class Stream(unittest.TestCase):
    def check_bench(self, line: dict[str, Any], blocks: int) -> None:
        self.assertGreater(line["calls"], 0)
        self.assertRegex(line["order"], f"^(ABBA|BAAB){{{blocks}}}$")
        for key in ("a", "b"):
            self.assertEqual(len(line[key]), 2 * blocks)
            self.assertTrue(all(ns > 0 for ns in line[key]))
            self.assertGreater(line[f"cpu_{key}"], 0)
        self.assertEqual(len(line["canary"]), 2)
        self.assertTrue(all(ns > 0 for ns in line["canary"]))
        self.assertGreater(line["work"]["bytes"], 0)
        for key in ("hash_a", "hash_b"):
            self.assertRegex(line[key], "^[0-9a-f]{16}$")

    def test_lines_are_complete(self) -> None:
        names = [GEMM, SOFTMAX, LAYERNORM, GEMV, *LINEAR]
        status, lines, errors = pair(LIBRARY, LIBRARY, *names,
                                     more=(*SHORT[:-1], "3", "--seed", "7", "--offset", "64"))
        self.assertEqual((status, errors), (0, ""))
        process, end = lines[0], lines[-1]
        self.assertEqual({key: process[key] for key in ("type", "v", "seed", "offset")},
                         {"type": "process", "v": 1, "seed": 7, "offset": 64})
        for side in ("a", "b"):
            self.assertEqual(process[side]["path"], LIBRARY)
            self.assertRegex(process[side]["version"], r"^\d+\.\d+\.\d+$")
        self.assertIn("scalar", process["isas"])
        self.assertTrue(process["cpu"])
        self.assertGreaterEqual(process["threads"], 1)
        self.assertEqual(end, {"type": "end", "benches": len(names)})
        self.assertEqual(sorted(line["bench"] for line in lines[1:-1]), sorted(names))
        for line in lines[1:-1]:
            self.assertEqual(line["type"], "bench")
            self.check_bench(line, 3)
            self.assertEqual(line["hash_a"], line["hash_b"], line["bench"])

    def test_every_operation(self) -> None:
        """On one set; large shapes are left out."""
        small = [name for name in names_of() if not any(
            word in name for word in ("32000", "16384", "4096", "8192", "2048x2048", "/scalar/"))]
        by_operation = {(name.split("/")[0], name[-2:]): name for name in small}
        self.assertTrue(by_operation, "no instruction set but scalar")
        status, lines, errors = pair(LIBRARY, LIBRARY, *by_operation.values())
        self.assertEqual((status, errors), (0, ""))
        for line in of_type(lines, "bench"):
            self.check_bench(line, 1)
            self.assertEqual(line["hash_a"], line["hash_b"], line["bench"])
        self.assertEqual(lines[-1]["benches"], len(by_operation))

    def test_order(self) -> None:
        names = [name for name in names_of("--isa", "scalar")]

        def order(*more: str) -> list[str]:
            lines = pair(BARE, BARE, *names, more=(*SHORT, *more))[1]
            return [line["bench"] for line in of_type(lines, "error") if line["which"] == "a"]

        self.assertEqual(order("--order", "given"), names)
        first = order("--seed", "1")
        self.assertEqual(sorted(first), sorted(names))
        self.assertEqual(order("--seed", "1"), first)
        self.assertNotEqual(order("--seed", "2"), first)

    def test_order_of_slots(self) -> None:
        lines = pair(LIBRARY, LIBRARY, GEMM, more=(*SHORT[:-1], "64"))[1]
        order = of_type(lines, "bench")[0]["order"]
        orders = [order[i:i + 4] for i in range(0, len(order), 4)]
        self.assertGreater(orders.count("ABBA"), 8)
        self.assertGreater(orders.count("BAAB"), 8)

    def test_as_many_blocks_as_there_is_time_for(self) -> None:
        """Five at least, however long they take."""
        for seconds, blocks in (("0", 5), ("1000", 9)):
            lines = pair(LIBRARY, LIBRARY, GEMM, more=(*SHORT[:-1], "9", "--seconds", seconds))[1]
            self.check_bench(of_type(lines, "bench")[0], blocks)

    def test_slots_run_in_the_order_that_is_said(self) -> None:
        """Each library writes a line when it is called: isobit's own report, and OTHER's."""
        done = start("--a", LIBRARY, "--b", OTHER, "--bench", SOFTMAX, "--slot", "1e-6",
                     "--blocks", "8", "--seconds", "100", env={**os.environ, "ISOBIT_VERBOSE": "1"})
        bench, = of_type([json.loads(line) for line in done.stdout.splitlines()], "bench")
        self.assertEqual(bench["calls"], 1)
        slots = bench["order"]
        called = "".join("B" if line == "other" else "A" for line in done.stderr.splitlines()
                         if line == "other" or ",exec,softmax" in line)
        self.assertEqual(called[-2 * len(slots):], "".join(2 * slot for slot in slots))

    def test_offset_changes_no_result(self) -> None:
        names = [GEMM, SOFTMAX, *LINEAR]
        hashes = {tuple(sorted((line["bench"], line["hash_a"])
                               for line in of_type(pair(LIBRARY, LIBRARY, *names, more=(
                                   *SHORT, "--offset", offset))[1], "bench")))
                  for offset in ("0", "64", "1984", "4032")}
        self.assertEqual(len(hashes), 1)

    def test_offset_moves_the_operands(self) -> None:
        """The results of this library are the places of its operands within a page."""
        def hash_b(offset: str) -> Any:
            lines = pair(LIBRARY, OTHER, SOFTMAX, more=(*SHORT, "--offset", offset))[1]
            return of_type(lines, "bench")[0]["hash_b"]

        hashes = {offset: hash_b(offset) for offset in ("0", "64", "1984", "4032")}
        self.assertEqual(len(set(hashes.values())), 4)
        self.assertEqual(hash_b("64"), hashes["64"])

    def test_names_from_a_file(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=" ä\"\\") as file:
            file.write(f"{GEMM}\n\n{SOFTMAX}")
            file.flush()
            done = start("--a", LIBRARY, "--b", OTHER, "--benches", file.name, *SHORT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["benches"], 2)

    def test_odd_path(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/\x01 \"\\ä.so"
            shutil.copy(LIBRARY, path)
            status, lines, _ = pair(path, LIBRARY, GEMM)
        self.assertEqual(status, 0)
        there = path.encode().decode("latin-1")  # a byte is the character of its number
        self.assertEqual(lines[0]["a"]["path"], there)


class Libraries(unittest.TestCase):
    def test_one_file_by_two_names(self) -> None:
        """Two instances, or the program would refuse; and no copy is left behind."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/tmp")
            os.symlink(LIBRARY, f"{folder}/link.so")
            os.link(os.path.realpath(LIBRARY), f"{folder}/hard.so")
            for name in ("link.so", "hard.so"):
                done = start("--a", LIBRARY, "--b", f"{folder}/{name}", "--bench", GEMM, *SHORT,
                             env={**os.environ, "TMPDIR": f"{folder}/tmp"})
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(f"{folder}/tmp"), [])

    def test_copy_that_cannot_be_made(self) -> None:
        done = start("--a", LIBRARY, "--b", LIBRARY, "--bench", GEMM,
                     env={**os.environ, "TMPDIR": "/nowhere"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot copy", done.stderr)
        self.assertIn("/nowhere/", done.stderr)

    def test_library_that_is_only_a_name_of_the_other(self) -> None:
        """One that takes its functions from the other: they are the same code."""
        with tempfile.TemporaryDirectory() as folder:
            shell = f"{folder}/shell.so"
            compiler = os.environ.get("CC", "cc")
            subprocess.run([compiler, "-shared", "-o", shell, "-Wl,--no-as-needed", LIBRARY,
                            f"-Wl,-rpath,{BUILD / 'lib'}"], check=True)
            done = start("--a", LIBRARY, "--b", shell, "--bench", GEMM)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("one and the same in memory", done.stderr)

    def test_other_results(self) -> None:
        """SOFTMAX computes something else, and LINEAR's weights are packed in another way."""
        status, lines, _ = pair(LIBRARY, OTHER, GEMM, SOFTMAX, LINEAR[1])
        self.assertEqual(status, 0)
        same = {line["bench"]: line["hash_a"] == line["hash_b"] for line in of_type(lines, "bench")}
        self.assertEqual(same, {GEMM: True, SOFTMAX: False, LINEAR[1]: False})

    def test_error_leaves_one_benchmark_out(self) -> None:
        for a, b, which in ((OTHER, LIBRARY, "a"), (LIBRARY, OTHER, "b")):
            status, lines, _ = pair(a, b, GEMM, LAYERNORM, SOFTMAX)
            self.assertEqual(status, 1)
            error, = of_type(lines, "error")
            self.assertEqual((error["bench"], error["which"]), (LAYERNORM, which))
            self.assertIn("size member", error["why"])
            self.assertEqual({line["bench"] for line in of_type(lines, "bench")}, {GEMM, SOFTMAX})
            self.assertEqual(lines[-1], {"type": "end", "benches": 2})

    def test_error_while_it_is_timed(self) -> None:
        status, lines, _ = pair(LIBRARY, OTHER, GEMV, GEMM, more=("--blocks", "100"))
        self.assertEqual(status, 1)
        error, = of_type(lines, "error")
        self.assertEqual((error["bench"], error["which"]), (GEMV, "b"))
        self.assertIn("memory", error["why"])
        self.assertEqual(lines[-1], {"type": "end", "benches": 1})

    def test_crash_is_named(self) -> None:
        crash = next((name for name in names_of() if name.startswith("rmsnorm/128x512/")), None)
        if not crash:
            self.skipTest("only the scalar set here")
        status, lines, errors = pair(LIBRARY, OTHER, crash)
        self.assertEqual(status, -signal.SIGABRT)
        self.assertEqual([line["type"] for line in lines], ["process"])
        self.assertEqual(errors, f"isobit_ab: {crash}, library b crashed: SIGABRT\n")

    def wait_until_it_sleeps(self, pid: int) -> None:
        """Until it waits, as it does nowhere else for long."""
        asleep = 0
        for _ in range(6000):
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            asleep = asleep + 1 if state[0] == "S" else 0
            if asleep == 10:
                return
            time.sleep(0.01)
        self.fail("it does not sleep")

    def test_hang_is_named(self) -> None:
        hang = next((name for name in names_of() if name.startswith("embed/")), None)
        if not hang:
            self.skipTest("only the scalar set here")
        with subprocess.Popen([PROGRAM, "--a", OTHER, "--b", LIBRARY, "--bench", hang],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            self.wait_until_it_sleeps(process.pid)
            process.send_signal(signal.SIGTERM)
            lines, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertEqual(len(lines.splitlines()), 1)
        self.assertEqual(errors, f"isobit_ab: {hang}, library a was ended from outside\n")

    def test_library_without_operations(self) -> None:
        """Each benchmark says what it lacks; none crashes."""
        names = names_of()
        status, lines, _ = pair(BARE, BARE, *names)
        self.assertEqual(status, 1)
        wrong = of_type(lines, "error")
        for side in ("a", "b"):
            self.assertEqual({line["bench"] for line in wrong if line["which"] == side}, set(names))
        gemm = [line["why"] for line in wrong if line["bench"] == GEMM]
        self.assertEqual(gemm, ["the library has no function iso_gemm_f32"] * 2)
        self.assertEqual(lines[-1], {"type": "end", "benches": 0})

    def test_files_that_are_no_libraries(self) -> None:
        with tempfile.NamedTemporaryFile("w") as text:
            text.write("no library")
            text.flush()
            for path, why in (("/nowhere/lib.so", "No such file"), (text.name, "too short"),
                              ("/", "cannot load"), (EMPTY, "no function iso_strerror"),
                              ("", "No such file")):
                for args in (("--a", path, "--b", LIBRARY, "--bench", GEMM),
                             ("--a", LIBRARY, "--b", path, "--bench", GEMM),
                             ("--a", path, "--count", GEMM)):
                    done = start(*args)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), args)
                    self.assertIn(why, done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Usage(unittest.TestCase):
    def refused(self, why: str, *args: str) -> None:
        done = start(*args)
        self.assertEqual((done.returncode, done.stdout), (2, ""), args)
        self.assertIn(why, done.stderr)
        self.assertTrue(done.stderr.startswith("isobit_ab: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_numbers(self) -> None:
        bad = {"--seed": ("-1", "x", "", "1.5", "99999999999999999999"),
               "--offset": ("-64", "4096", "63", "64b", ""),
               "--blocks": ("0", "-1", "1001", "two"),
               "--seconds": ("-1", "1001", "nan", ""),
               "--slot": ("0", "-1", "nan", "inf", "11", "1ms", ""),
               "--order": ("sorted", "")}
        for option, values in bad.items():
            for value in values:
                self.refused(f"{option} wants", "--a", LIBRARY, "--b", LIBRARY, "--bench", GEMM,
                             option, value)

    def test_names(self) -> None:
        both = ("--a", LIBRARY, "--b", LIBRARY)
        self.refused("no benchmark 'gemm'", *both, "--bench", "gemm")
        self.refused("no benchmark 'x'", *both, "--bench", GEMM, "x")
        self.refused("no benchmark ''", *both, "--bench", "")
        self.refused("no benchmark 'gemm/64x64x64/scalar/t3000'", *both, "--bench",
                     "gemm/64x64x64/scalar/t3000")
        self.refused("given twice", *both, "--bench", GEMM, GEMM)
        self.refused("no benchmark is named", *both)
        self.refused("no benchmark is named", *both, "--benches", "/dev/null")
        self.refused("cannot read '/nowhere'", *both, "--benches", "/nowhere")
        self.refused("cannot read '/'", *both, "--benches", "/")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f"{GEMM}\nnonsense\n")
            file.flush()
            self.refused("no benchmark 'nonsense'", *both, "--benches", file.name)

    def test_inject(self) -> None:
        for value in ("", "x", "-1", "1001", "=", f"{GEMM}=", f"{GEMM}=x", "nan"):
            self.refused("--inject wants", "--a", LIBRARY, "--b", LIBRARY, "--bench", GEMM,
                         "--inject", value)
        self.refused("no benchmark 'x'", "--a", LIBRARY, "--b", LIBRARY, "--bench", GEMM,
                     "--inject", "x=5")
        self.refused("does not run", "--a", LIBRARY, "--b", LIBRARY, "--bench", GEMM,
                     "--inject", f"{SOFTMAX}=5")

    def test_combinations(self) -> None:
        self.refused("--a LIB is missing", "--bench", GEMM)
        self.refused("--b LIB is missing", "--a", LIBRARY, "--bench", GEMM)
        self.refused("--a LIB is missing", "--count", GEMM)
        self.refused("do not go with", "--count", GEMM, "--a", LIBRARY, "--b", LIBRARY)
        self.refused("do not go with", "--list", "--bench", GEMM)
        self.refused("either", "--list", "--count", GEMM)
        self.refused("--isa goes with", "--isa", "scalar", "--a", LIBRARY, "--b", LIBRARY,
                     "--bench", GEMM)
        self.refused("no option '--nonsense'", "--nonsense")
        self.refused("--seed wants a value", "--seed")
        self.refused("unexpected argument 'x'", "x")
        self.refused("no benchmark 'x'", "--count", "x", "--a", LIBRARY)

    def test_help(self) -> None:
        done = start("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("usage: isobit_ab", done.stdout)

    def test_count_is_for_one_thread(self) -> None:
        name = next((n for n in names_of() if not n.endswith("/t1")), None)
        if not name:
            self.skipTest("one thread here")
        self.refused("one thread", "--count", name, "--a", LIBRARY)


class Output(unittest.TestCase):
    COMMANDS = (("--list",), ("--count", GEMM, "--a", LIBRARY),
                ("--a", LIBRARY, "--b", OTHER, "--bench", GEMM, *SHORT), ("--help",))

    def check_fails(self, stdout: Any) -> None:
        for args in self.COMMANDS:
            done = subprocess.run([PROGRAM, *args], stdout=stdout, stderr=subprocess.PIPE,
                                  text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 1, args)
            self.assertIn("cannot write", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_full_disk(self) -> None:
        with open("/dev/full", "w", encoding="ascii") as full:
            self.check_fails(full)

    def test_reader_that_is_gone(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            self.check_fails(writer)
        finally:
            os.close(writer)

    def test_slow_reader_gets_all(self) -> None:
        """A pipe that holds a page: the program waits, and nothing is lost."""
        with subprocess.Popen([PROGRAM, "--a", BARE, "--b", BARE, "--bench", *names_of(),
                               *SHORT], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
            lines = [json.loads(line) for line in process.stdout]
        self.assertEqual(lines[-1]["type"], "end")
        self.assertEqual(len(lines), 2 + 2 * len(names_of()))


class Injection(unittest.TestCase):
    def ratio(self, *more: str) -> dict[str, float]:
        """How many times as long B takes, by the best slots of each."""
        lines = pair(LIBRARY, LIBRARY, GEMM, LINEAR[1], more=("--blocks", "4", *more))[1]
        return {line["bench"]: min(line["b"]) / min(line["a"])
                for line in of_type(lines, "bench")}

    def check(self, wanted: dict[str, tuple[float, float]], *more: str) -> None:
        """The one test that looks at times, with much room, and three attempts."""
        for _ in range(3):
            ratio = self.ratio(*more)
            if all(low < ratio[name] < high for name, (low, high) in wanted.items()):
                return
        self.fail(f"{ratio}, wanted {wanted}")

    def test_one_benchmark(self) -> None:
        self.check({GEMM: (1.3, 1.8), LINEAR[1]: (0.8, 1.25)}, "--inject", f"{GEMM}=50")

    def test_all_benchmarks(self) -> None:
        self.check({GEMM: (1.3, 1.8), LINEAR[1]: (1.3, 1.8)}, "--inject", "50")


class Counting(unittest.TestCase):
    """Under valgrind, which has no AVX-512."""

    def setUp(self) -> None:
        if not shutil.which("valgrind"):
            self.skipTest("no valgrind")

    def valgrind(self, *args: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "LD_BIND_NOW": "1"}
        return subprocess.run(["setarch", "-R", "valgrind", *args], capture_output=True, text=True,
                              timeout=600, check=False, env=env)

    def instructions(self, name: str) -> int:
        done = self.valgrind("--tool=callgrind", "--callgrind-out-file=/dev/null",
                             "--toggle-collect=isobit_ab_counted", PROGRAM, "--count", name,
                             "--a", LIBRARY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["bench"], name)
        return int(done.stderr.split("Collected :")[1].split()[0])

    def test_same_number_each_time(self) -> None:
        for isa in ("scalar", "avx2"):
            here = names_of("--isa", isa)
            for wanted in ("gemm/64x64x64/", "softmax/512x512/", "linear/1x512x512/"):
                for name in here:
                    if name.startswith(wanted) and name.endswith("/t1"):
                        first = self.instructions(name)
                        self.assertGreater(first, 1000)
                        self.assertEqual(self.instructions(name), first, name)

    def test_hash_is_that_of_a_pair(self) -> None:
        line = json.loads(start("--count", SOFTMAX, "--a", LIBRARY).stdout)
        self.assertEqual((line["type"], line["v"], line["bench"]), ("count", 1, SOFTMAX))
        bench, = of_type(pair(LIBRARY, LIBRARY, SOFTMAX)[1], "bench")
        self.assertEqual(line["hash_a"], bench["hash_a"])

    def test_set_that_valgrind_lacks(self) -> None:
        name = next(iter(names_of("--isa", "avx512")), None)
        if not name:
            self.skipTest("no AVX-512 here")
        done = self.valgrind("-q", PROGRAM, "--count", name, "--a", LIBRARY)
        self.assertEqual((done.returncode, done.stdout), (77, ""), done.stderr)
        self.assertIn("no instruction set of these benchmarks here; there is: ", done.stderr)
        done = self.valgrind("-q", PROGRAM, "--a", LIBRARY, "--b", LIBRARY, "--bench", name, GEMM,
                             *SHORT)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({line["which"] for line in of_type(lines, "error")}, {"a", "b"})
        self.assertEqual([line["bench"] for line in of_type(lines, "bench")], [GEMM])

    def test_error_has_status_1(self) -> None:
        done = start("--count", LAYERNORM, "--a", OTHER)
        line = json.loads(done.stdout)
        self.assertEqual((done.returncode, line["type"], line["which"]), (1, "error", "a"))

    def test_memory_is_used_well(self) -> None:
        decode = [name for name in names_of("--isa", "avx2")
                  if name.startswith(("attention_decode/B1H8K512", "attention_decode/B1H8K4096"))]
        names = [LINEAR[1], *decode]  # also on all threads
        for b in (LIBRARY, OTHER):  # OTHER asks for more workspace
            done = self.valgrind("-q", "--error-exitcode=9", "--leak-check=full", PROGRAM, "--a",
                                 LIBRARY, "--b", b, "--bench", *names, *SHORT, "--offset", "960")
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
