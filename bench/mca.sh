#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the inner loops can reach on CPUs that are not at hand: compiles the kernels as the build
# does, takes the hot loops out of the compiler's output, and lets llvm-mca compute how many cycles
# an iteration takes on each CPU. Prints a table in Markdown.
#
#   bench/mca.sh [avx2|avx512|neon]...
#
# CC and CC_AARCH64 name the compilers, MCA llvm-mca (llvm-mca-19 of Debian's package llvm-19).
# ARM_INCLUDE is a folder with an Arm sleef.h (./run test aarch64 unpacks one).
# Exit status: 1 if a loop uses the stack for vectors or is not found, or if the tile of a matrix
# product stays below 95 % of the FMA units where the model of the CPU is believed.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cc=${CC:-gcc}
cc_aarch64=${CC_AARCH64:-aarch64-linux-gnu-gcc}
mca=${MCA:-llvm-mca-19}
arm_include=${ARM_INCLUDE:-$root/build/sysroot-arm64/usr/include/aarch64-linux-gnu}
flags="-std=c11 -O3 -DNDEBUG -ffp-contract=off -fno-math-errno -fPIC -fvisibility=hidden"
least=95
tile_title='gemm tile'

[ $# -gt 0 ] || set -- avx512 avx2 neon
command -v "$mca" >/dev/null 2>&1 || {
    echo "mca.sh: $mca is missing; install llvm-19, or set MCA" >&2
    exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# settings SET: triple, CPUs, compiler command, patterns, and an FMA on register number $1.
settings() {
    triple=x86_64-linux-gnu
    fma='vfn?m(add|sub)[0-9]*ps' stack='%[re]sp'
    case $1 in
    avx512)
        cpus="skylake-avx512 icelake-server sapphirerapids znver4"
        compiler="$cc -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma
            -mprefer-vector-width=512"
        tile=gemm_rows_14 direct=8 vector='%[xyz]mm' chains=24
        one_fma() { echo "vfmadd231ps %zmm30, %zmm31, %zmm$1"; }
        ;;
    avx2)
        cpus="haswell znver3 alderlake"
        compiler="$cc -mavx2 -mfma"
        tile=gemm_rows_6 direct=6 vector='%[xy]mm' chains=14
        one_fma() { echo "vfmadd231ps %ymm14, %ymm15, %ymm$1"; }
        ;;
    neon)
        triple=aarch64-linux-gnu
        cpus="cortex-a76 neoverse-n1 neoverse-v1 neoverse-v2 apple-m1"
        compiler="$cc_aarch64 -fno-schedule-insns -isystem $arm_include" # as kernels/CMakeLists.txt
        fma='fml[as]|fn?m(add|sub)' stack='\\[(sp|x29)' tile=gemm_rows_6
        vector='[ \t,{][qvds][0-9]' chains=24 direct=6
        one_fma() { echo "fmla v$1.4s, v30.4s, v31.s[0]"; }
        ;;
    *)
        echo "mca.sh: there is no set '$1'; the sets are avx2, avx512, neon" >&2
        exit 2
        ;;
    esac
}

# Where the model of a CPU is known to be wrong, a remark that is printed below the table.
remark() {
    case $1/$2 in
    avx512/skylake-avx512) echo 1 ;;
    avx512/icelake-server | avx512/sapphirerapids) echo 2 ;;
    avx512/znver4) echo 3 ;;
    neon/cortex-a76) echo 4 ;;
    neon/apple-m1) echo 5 ;;
    esac
}
remarks='
1. The model lets each load of a vector use an ALU port as well; the CPU has ports of their own for
   loads. Counted by hand the tile needs 14 cycles: 28 FMAs on two ports, 16 loads on two others.
2. The model has one unit for FMAs of 512 bits. Most of these CPUs have two, as skylake-avx512.
3. The model lets broadcasts from memory wait for the FMA units. The CPU does not: the tile was
   measured at 97 % (docs/performance.md).
4. LLVM uses its model of Cortex-A57, with one FMA a cycle. Neoverse N1 is the server variant of
   Cortex-A76 and has a model of its own.
5. LLVM uses its model of Cyclone, with three FMAs a cycle; M1 has four units.'

# cycles CPU FILE: of one iteration, the start and the end of the loop left out.
cycles() {
    for n in 100 300; do
        "$mca" -mtriple="$triple" -mcpu="$1" -iterations=$n "$2" 2>"$work/errors" |
            sed -n 's/^Total Cycles: *//p'
    done | awk 'NR == 1 { first = $1 } NR == 2 { printf "%.2f\n", ($1 - first) / 200 }'
}

# peak CPU: cycles for as many FMAs as the processor resources allow, whatever their latency.
peak() {
    "$mca" -mtriple="$triple" -mcpu="$1" "$work/$isa.peak.s" 2>"$work/errors" |
        sed -n 's/^Block RThroughput: *//p'
}

# loop FUNCTION: the line of its loop with the most multiply-adds; of equals the shortest.
loop() { awk -v f="$1" '$1 ~ "^(" f ")$"' "$work/$isa.loops" | sort -k2,2nr -k3,3n | head -n 1; }

# row TITLE FUNCTION: a pattern, since compilers may inline a function into the one that calls it.
row() {
    found=$(loop "$2")
    [ -n "$found" ] || {
        echo "mca.sh: $isa has no loop in $2" >&2
        exit 1
    }
    # shellcheck disable=SC2086 # fields
    set -- "$1" $found
    title=$1 fmas=$3 instructions=$4 vectors=$5 others=$6 file=$7
    for cpu in $cpus; do
        used=$(cycles "$cpu" "$file")
        best=$(peak "$cpu")
        if [ -z "$used" ] || [ -z "$best" ]; then
            echo "mca.sh: $mca cannot read $file:" >&2
            head -n 5 "$work/errors" >&2
            exit 1
        fi
        why=$(remark "$isa" "$cpu")
        percent=$(awk "BEGIN { print 100 * $fmas / $used * $best / $chains }")
        awk -v OFS=' | ' -v isa="$isa" -v cpu="$cpu" -v title="$title" -v fmas="$fmas" \
            -v n="$instructions" -v used="$used" -v percent="$percent" -v vectors="$vectors" \
            -v others="$others" -v why="$why" 'BEGIN {
                print "| " isa, cpu (why ? " (" why ")" : ""), title, fmas, n, used,
                    sprintf("%.2f", fmas / used), sprintf("%.1f %%", percent), vectors,
                    others " |"
            }'
        if [ "$vectors" -gt 0 ] || { [ "$title" = "$tile_title" ] && [ -z "$why" ] &&
            awk -v p="$percent" -v least=$least 'BEGIN { exit !(p < least) }'; }; then
            echo "$isa on $cpu, $title: $percent %, $vectors vectors on the stack" >>"$work/bad"
        fi
    done
}

echo "| set | CPU | loop | FMAs | instructions | cycles | FMAs per cycle | of the FMA units" \
    "| vectors on the stack | other stack |"
echo "|---|---|---|--:|--:|--:|--:|--:|--:|--:|"
for isa in "$@"; do
    settings "$isa"
    if [ "$isa" = neon ] && ! [ -f "$arm_include/sleef.h" ]; then
        echo "mca.sh: neon SKIPPED: no sleef.h in $arm_include (./run test aarch64 puts it there)" >&2
        continue
    fi
    # shellcheck disable=SC2086 # words
    $compiler $flags -I"$root/kernels" -S -o "$work/$isa.s" "$root/kernels/$isa/$isa.c"
    mkdir "$work/$isa"
    awk -v fma="$fma" -v stack="$stack" -v vector="$vector" -v out="$work/$isa" \
        -f "$root/bench/loops.awk" "$work/$isa.s" >"$work/$isa.loops"
    i=0
    while [ $i -lt $chains ]; do
        one_fma $i
        i=$((i + 1))
    done >"$work/$isa.peak.s"
    row "$tile_title" $tile
    row "A in place" "direct_rows_$direct"
    row "B called, too" gemm_linear
    row "B packed, too" 'gemm_packing|packing_l[12]'
    row "product of one row" gemm_rows_1
    row "attention: exp" columns_block
    row "softmax: exp" softmax
    row "layernorm" layernorm
    row "gemv" 'gemv|gemv_rows'
    row "FMA peak" fma_peak
done

echo "$remarks"
if [ -s "$work/bad" ]; then
    echo "mca.sh: vectors on the stack, or the gemm tile below $least % of the FMA units:" >&2
    cat "$work/bad" >&2
    exit 1
fi
