#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each routine by all names of one size of integers is the same function: cblas_sgemm64_ is
# cblas_sgemm_64, and scipy_sgemm_ is sgemm_. Usage: names.sh LIBRARY
set -eu
readelf --dyn-syms --wide "$1" | awk '
    $4 == "FUNC" && $7 != "UND" { at[$8] = $2 }
    function same(name, of) {
        names++
        if (!(name in at) || at[name] != at[of])
            print "FAILED: " name " is at " at[name] ", " of " at " at[of], failed++
    }
    END {
        wide = "cblas_sgemm_64" in at # 64-bit addresses
        n = split("sgemm sgemv sger ssyrk sdot saxpy sscal snrm2 sasum isamax scopy sswap", routines, " ")
        for (i = 1; i <= n; i++) {
            r = routines[i]
            same("scipy_" r "_", r "_")
            same("scipy_cblas_" r, "cblas_" r)
            if (!wide)
                continue
            same("cblas_" r "64_", "cblas_" r "_64")
            same("scipy_" r "_64_", r "_64_")
            same("scipy_cblas_" r "64_", "cblas_" r "_64")
            if (at[r "_"] == at[r "_64_"] || at["cblas_" r] == at["cblas_" r "_64"])
                print "FAILED: " r " takes int and int64_t", failed++
        }
        for (name in at)
            if (name ~ /^scipy_/)
                listed++
        if (listed != (wide ? 4 : 2) * n)
            print "FAILED: " listed " names begin with scipy_", failed++
        if (!failed)
            print names " names"
        exit failed > 0
    }'
