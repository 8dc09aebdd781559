# SPDX-License-Identifier: MIT
"""
python3 -m isobit           what the library sees of the machine, as JSON
python3 -m isobit --blas    the path of libisobit_blas.so.0, for LD_PRELOAD
"""
import json
import sys

from . import blas_library, info


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments:
        print(json.dumps(info(), indent=2))
        return 0
    if arguments != ["--blas"]:
        print(f"usage:{__doc__}", end="", file=sys.stderr)
        return 2
    path = blas_library()
    if path is None:
        print("isobit: there is no libisobit_blas.so.0 beside the library", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
