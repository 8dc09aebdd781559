#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Builds the wheel: the package, with libisobit and what it needs beyond the C library.

    python3 python/build_wheel.py --libraries build/lib --output build/python

The libraries lie in isobit/libraries and find each other there ($ORIGIN). Those of others get a
name of their own, so that a process may hold another version of them besides. The tag says
manylinux with the version of the C library that is needed, if nothing else of the system is.
Needs patchelf, readelf, and pip with setuptools and wheel.
"""
import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = ["libisobit.so.0", "libisobit_model.so.0", "libisobit_blas.so.0"]
REQUIRED = OURS[:2]
# Of the C library and the compiler: every Linux of that version has them.
SYSTEM = re.compile(r"(libc|libm|libpthread|libdl|librt|libstdc\+\+|libgcc_s)\.so\.\d+$"
                    r"|ld-linux[-\w]*\.so\.\d+$")
LICENCES = {
    "libsleef": ("SLEEF", "Boost Software License 1.0"),
    "libcpuid": ("libcpuid", "BSD, two clauses"),
    "libjansson": ("jansson", "MIT"),
    "libutf8proc": ("utf8proc", "MIT"),
    "libsentencepiece": ("SentencePiece", "Apache License 2.0"),
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))


def glibc(path):
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", run("readelf", "-VW", path))
    return max(((int(a), int(b)) for a, b in versions), default=(2, 17))


def resolve(path):
    """Where the loader finds the libraries that a file needs."""
    found = {}
    for line in run("ldd", path).splitlines():
        match = re.match(r"\s*(\S+) => (/\S+)", line)
        if match:
            found[match[1]] = match[2]
    return found


def carry(libraries, folder):
    """Copies the libraries; returns those of others as {name in the wheel: path before}."""
    others = {}
    for name in OURS:
        source = os.path.join(libraries, name)
        if not os.path.exists(source):
            if name in REQUIRED:
                sys.exit(f"build_wheel: {source} is not there")
            continue
        shutil.copy(source, os.path.join(folder, name))
        for other, path in resolve(source).items():
            if other not in OURS and not SYSTEM.match(other):
                others[other] = os.path.realpath(path)
    renamed = {}
    for name, path in others.items():
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()[:8]
        stem, rest = name.split(".so", 1)
        renamed[name] = f"{stem}-{digest}.so{rest}"
        copy = os.path.join(folder, renamed[name])
        shutil.copy(path, copy)
        os.chmod(copy, 0o755)
        run("patchelf", "--set-soname", renamed[name], copy)
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        for old in needed(path):
            if old in renamed:
                run("patchelf", "--replace-needed", old, renamed[old], path)
        run("patchelf", "--set-rpath", "$ORIGIN", path)
    return {renamed[name]: others[name] for name in sorted(others)}


def tag(folder):
    """manylinux_2_N where only the C library of version 2.N is needed from the system."""
    names = os.listdir(folder)
    version = (2, 17)
    strange = set()
    for name in names:
        path = os.path.join(folder, name)
        version = max(version, glibc(path))
        strange |= {n for n in needed(path) if n not in names and not SYSTEM.match(n)}
    if strange:
        sys.exit(f"build_wheel: needed, but not in the wheel: {', '.join(sorted(strange))}")
    return f"manylinux_{version[0]}_{version[1]}_{platform.machine()}"


def licences(carried, folder):
    text = ["The libraries in this folder, and the licences of those of others.\n"]
    text += [f"{name}: isobit, MIT" for name in OURS if os.path.exists(os.path.join(folder, name))]
    copyrights = []
    for name, path in carried.items():
        project, licence = LICENCES[name.split("-")[0]]
        package = run("dpkg-query", "-S", path).split(":")[0]
        text.append(f"{name}: {project}, {licence}; {path}, but for its name")
        copyrights.append(f"\n{'-' * 78}\n{project}\n{'-' * 78}\n")
        with open(f"/usr/share/doc/{package}/copyright", encoding="utf-8") as file:
            copyrights.append(file.read())
    with open(os.path.join(folder, "LICENCES.txt"), "w", encoding="utf-8") as out:
        out.write("\n".join(text + copyrights))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--libraries", required=True, help="the folder of libisobit.so.0")
    parser.add_argument("--output", required=True, help="the folder for the wheel")
    options = parser.parse_args()
    output = os.path.abspath(options.output)
    stage = os.path.join(output, "stage")
    shutil.rmtree(stage, ignore_errors=True)
    ignored = shutil.ignore_patterns("tests", "__pycache__", "*.egg-info")
    shutil.copytree(HERE, stage, ignore=ignored)
    shutil.copy(os.path.join(HERE, "..", "LICENSE"), stage)
    folder = os.path.join(stage, "isobit", "libraries")
    os.makedirs(folder)
    carried = carry(options.libraries, folder)
    platform_tag = tag(folder)
    licences(carried, folder)
    for name in os.listdir(output):
        if name.endswith(".whl"):
            os.remove(os.path.join(output, name))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--no-index", "--wheel-dir", output, stage],
        env={**os.environ, "ISOBIT_WHEEL_PLATFORM": platform_tag},
        check=False,
    )
    if done.returncode:
        sys.exit("build_wheel: pip failed")
    (wheel,) = [name for name in os.listdir(output) if name.endswith(".whl")]
    print(os.path.join(output, wheel))


if __name__ == "__main__":
    main()
