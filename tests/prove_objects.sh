#!/bin/sh
# SPDX-License-Identifier: MIT
#
# prove_objects.sh BUILD_DIR: what the compiler made of the layers, read from the object files.
#  (a) An object of an instruction set has one global symbol, its table, and nothing that runs at
#      load or that the linker may merge with the code of another object.
#  (b) Only they hold instructions beyond the plainest CPU of the architecture. One such
#      instruction elsewhere ends the process on an older CPU.
#  (c) The shared libraries export iso_* only; libisobit_blas.so names of the BLAS only.
#  (d) libisobit.so needs the C library, SLEEF and libcpuid, and no more.
#  (e) libisobit.so with the sets of x86-64 stays below 1.32 MB (clang unrolls more: 1.5 MB).
# NM, OBJDUMP and READELF may name the tools of a cross compiler.
set -u
build=${1:?usage: prove_objects.sh BUILD_DIR}
NM=${NM:-nm} OBJDUMP=${OBJDUMP:-objdump} READELF=${READELF:-readelf}
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

complain() { # file, what
    echo "FAIL $1: $2"
    sed 's/^/    /' "$work/hits" | head -8
    bad=$((bad + 1))
}

# The command before us wrote what should not be there to $work/hits.
none() { # file, what
    if [ -s "$work/hits" ]; then complain "$1" "$2"; fi
}

# One line for each instruction: "mnemonic operands".
disassemble() {
    "$OBJDUMP" -d --no-show-raw-insn "$1" |
        sed -n 's/^ *[0-9a-f]\{1,\}:[[:space:]]*\([a-z]\)/\1/p'
}

# What an x86-64 CPU of 2003 lacks: VEX and EVEX (any register file, opmasks, BMI on general
# registers) and the SSE generations after SSE2. tzcnt is not listed: bsf with a prefix that old
# CPUs ignore. The list may lack something; what compilers emit of their own accord is in it.
x86_beyond='^v[a-z0-9]+ .*%[xyz]mm|^vzero(upper|all)|^v(ld|st)mxcsr|%[yzt]mm|%k[0-7]\b|^k(mov|or|and|xor|not|test|unpck|shift|add)[a-z]* '
x86_beyond="$x86_beyond"'|^(andn|bextr|blsi|blsr|blsmsk|mulx|rorx|sarx|shlx|shrx|pdep|pext|popcnt|lzcnt|movbe|crc32)[blwq]? '
x86_beyond="$x86_beyond"'|^(addsubp[sd]|h(add|sub)p[sd]|mov(ddup|shdup|sldup)|lddqu|ph(add|sub)s?[wd]|pabs[bwd]|palignr|pmaddubsw|pmulhrsw|pshufb|psign[bwd]) '
x86_beyond="$x86_beyond"'|^(p?blend[a-z]*|dpp[sd]|extractps|insertps|movntdqa|mpsadbw|packusdw|pcmpeqq|pcmpgtq|pextr[bdq]|pinsr[bdq]|pmin(sb|sd|uw|ud)|pmax(sb|sd|uw|ud)|pmov[sz]x[a-z]+|pmuldq|pmulld|ptest|round[ps][sd]) '
# Armv8.0: no dot products, matrix products, half-precision arithmetic, SVE, SME, LSE atomics.
arm_beyond='\b[zp][0-9]+(\.[bhsdq]|/[mz])|^(us|su|s|u|bf)(dot|mmla) |^bf(cvt|mlal)[a-z0-9]* |^fml(al|sl)2? '
arm_beyond="$arm_beyond"'|^f[a-z]+ v[0-9]+\.[48]h, v[0-9]+\.[48]h, |^(cas|swp|ldadd|ldclr|ldset|ldeor)(a|l|al)?[bh]? |^smst(art|op)'

objects() { find "$build/$1" -name '*.o' 2>/dev/null | sort; }

first=$(objects kernels/CMakeFiles/isobit_kernels_scalar.dir | head -1)
if [ -z "$first" ]; then
    echo "FAIL $build: no object of the scalar kernels"
    exit 1
fi
machine=$("$READELF" -h "$first" | sed -n 's/^ *Machine: *//p')
case $machine in
*X86-64*) beyond=$x86_beyond ;;
AArch64) beyond=$arm_beyond ;;
# The scalar set alone, with the flags of everything else: there is no "beyond".
*S/390 | *80386 | ARM) beyond= ;;
*)
    echo "FAIL $first: unknown machine '$machine'"
    exit 1
    ;;
esac

# (a)
sets=0
for directory in "$build"/kernels/CMakeFiles/isobit_kernels_*.dir; do
    isa=${directory##*/isobit_kernels_}
    isa=${isa%.dir}
    count=0
    # shellcheck disable=SC2044 # object names hold no spaces
    for object in $(find "$directory" -name '*.o'); do
        count=$((count + 1))
        # 32-bit x86 reads its own address by small functions that the compiler adds.
        "$NM" --defined-only --extern-only "$object" | awk 'NF {print $NF, $(NF - 1)}' |
            grep -v '^__x86\.get_pc_thunk\.' >"$work/globals"
        awk -v table="iso_kernels_$isa" '$1 != table || $2 !~ /^[DR]$/' "$work/globals" \
            >"$work/hits"
        none "$object" "global symbols beside the table iso_kernels_$isa"
        if [ "$(wc -l <"$work/globals")" -ne 1 ]; then
            cp "$work/globals" "$work/hits"
            complain "$object" "not exactly one global symbol"
        fi
        "$NM" "$object" | awk '$(NF - 1) ~ /^[WwVvuCi]$/' >"$work/hits"
        none "$object" "weak, common, unique or indirect symbols"
        "$OBJDUMP" -h "$object" | grep -E '\.(init_array|fini_array|ctors|dtors|init|fini)\b' \
            >"$work/hits"
        none "$object" "code that runs at load or exit"
        "$OBJDUMP" -h "$object" | grep -E '\.(bss|data|tbss|tdata)[[:space:]]' |
            awk '$3 !~ /^0+$/' >"$work/hits"
        none "$object" "variables (a kernel has none)"
    done
    if [ "$count" -ne 1 ]; then
        : >"$work/hits"
        complain "$directory" "$count objects instead of one"
    fi
    sets=$((sets + 1))
done

# (b)
checked=0
baseline="kernels/CMakeFiles/isobit_kernels_scalar.dir dispatch model blas tools"
[ -n "$beyond" ] || baseline=
if [ "$machine" = AArch64 ]; then
    baseline="$baseline kernels/CMakeFiles/isobit_kernels_neon.dir"
fi
for part in $baseline; do
    for object in $(objects "$part"); do
        disassemble "$object" >"$work/code"
        grep -E "$beyond" "$work/code" >"$work/hits"
        none "$object" "instructions beyond the plainest $machine"
        checked=$((checked + 1))
    done
done
for object in $(objects kernels/CMakeFiles/isobit_kernels_avx2.dir) \
    $(objects kernels/CMakeFiles/isobit_kernels_avx2_vnni.dir); do
    disassemble "$object" >"$work/code"
    grep -E '%zmm|%[xy]mm(1[6-9]|2[0-9]|3[01])\b|%k[0-7]\b' "$work/code" >"$work/hits"
    none "$object" "AVX-512 in an AVX2 object"
    # The same search must find something where there is something to find.
    if ! grep -qE "$beyond" "$work/code"; then
        : >"$work/hits"
        complain "$object" "no vector instruction was found: the search does not work"
    fi
done
# Tiles are AMX's alone: the level below is what runs where the operating system refuses them.
for object in $(objects kernels/CMakeFiles/isobit_kernels_avx512.dir) \
    $(objects kernels/CMakeFiles/isobit_kernels_avx512_vnni.dir); do
    disassemble "$object" | grep -E '%tmm|\btile(release|loadd|stored|zero)' >"$work/hits"
    none "$object" "tiles outside of AMX's object"
done
for object in $(objects kernels/CMakeFiles/isobit_kernels_avx512_amx.dir); do
    if ! disassemble "$object" | grep -q '%tmm'; then
        : >"$work/hits"
        complain "$object" "no tile was found: the search does not work"
    fi
done
for object in $(objects kernels/CMakeFiles/isobit_kernels_avx512.dir); do
    if ! disassemble "$object" | grep -q '%zmm'; then
        : >"$work/hits"
        complain "$object" "no zmm register was found: the search does not work"
    fi
done

# (c)
libraries=0
for library in "$build/lib/libisobit.so" "$build/lib/libisobit_model.so" "$build/lib/libisobit_blas.so"; do
    [ -e "$library" ] || continue
    libraries=$((libraries + 1))
    case $library in
    *_blas.so) ours='((cblas_)?(s[a-z0-9_]+|isamax[0-9_]*)|openblas_[a-z_]+)' ;;
    *) ours='(iso_[a-z0-9_]+|ISOBIT_[0-9.]+)' ;;
    esac
    "$NM" -D --defined-only "$library" | awk '{sub(/@.*/, "", $NF); print $NF}' |
        grep -vE "^$ours\$" >"$work/hits"
    none "$library" "exports that are not its own"
    "$READELF" -d "$library" | grep TEXTREL >"$work/hits"
    none "$library" "text relocations"
    "$READELF" -lW "$library" | grep -E 'GNU_STACK.* RWE ' >"$work/hits"
    none "$library" "an executable stack"
done

# (d)
if [ -e "$build/lib/libisobit.so" ]; then
    "$READELF" -d "$build/lib/libisobit.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libm|libsleef|libcpuid|ld-linux-[a-z0-9-]+)\.so' \
            >"$work/hits"
    none "$build/lib/libisobit.so" "needs other libraries"
fi

# (e)
case $machine in
*X86-64*)
    if [ -e "$build/lib/libisobit.so" ]; then
        most=1630000
        if "$READELF" -p .comment "$first" | grep -q clang; then most=1810000; fi
        size "$build/lib/libisobit.so" >"$work/hits"
        if [ "$(awk 'NR == 2 {print $1 + $2}' "$work/hits")" -lt $most ]; then : >"$work/hits"; fi
        none "$build/lib/libisobit.so" "takes $most bytes or more"
    fi
    ;;
esac

echo "$sets instruction sets, $checked baseline objects, $libraries shared libraries: $bad failures"
[ "$bad" -eq 0 ]
