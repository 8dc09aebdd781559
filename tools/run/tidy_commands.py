#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The compile commands for clang-tidy: tidy_commands.py compile_commands.json FOLDER

clang-tidy looks at a file once for each command that compiles it, and what tests share, or build
again with other flags, is compiled many times. Writes compile_commands.json into the folder with
one command for each C file, and a further one only where a macro of its command that the file
speaks of is another. Prints the files: first the kernels, then the others, the largest first, so
that no processor is left with a large one at the end.
"""

import json
import os
import re
import shlex
import sys


def macros(command: str, text: str) -> tuple[str, ...]:
    """What the command defines, of that what the file speaks of."""
    defined = (w for w in shlex.split(command) if w.startswith("-D"))
    names = ((re.split("[=(]", w[2:])[0], w) for w in defined)
    return tuple(sorted(w for name, w in names if re.search(rf"\b{name}\b", text)))


def main(database: str, folder: str) -> None:
    with open(database) as f:
        entries = json.load(f)
    kept = {}
    texts: dict[str, str] = {}
    for entry in entries:
        file = entry["file"]
        if not file.endswith(".c"):
            continue
        if file not in texts:
            with open(file) as f:
                texts[file] = f.read()
        kept.setdefault((file, macros(entry["command"], texts[file])), entry)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "compile_commands.json"), "w") as f:
        json.dump(list(kept.values()), f, indent=0)
    for file in sorted(texts, key=lambda x: ("/kernels/" not in x, -len(texts[x]), x)):
        print(file)


main(*sys.argv[1:])
