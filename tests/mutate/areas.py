# SPDX-License-Identifier: MIT
"""Which files are mutated, and which tests run for each."""

import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETS = ["avx2", "avx512", "scalar"]
LEVELS = ["avx2_vnni", "avx512_vnni", "avx512_bf16"]
KERNELS = ["kernels/templates/" + name + ".h" for name in
           ("attention", "attention_columns", "attention_w16", "eltwise", "gemm", "gemm_along", "gemm_b16",
            "gemm_bt", "gemm_direct", "gemm_linear", "gemm_q", "gemm_q_s8", "gemm_s8", "gemm_s8_widened",
            "gemm_strip", "gemm_w16", "gemv", "lanes", "math", "norm", "q_factors", "quantize_blocks",
            "quantize_s8", "rope", "round_b16", "softmax", "tile", "wide_panels")]
KERNELS += ["kernels/%s/%s.h" % (isa, name) for isa in SETS
            for name in ("vec", "gemm_tile", "s8_tile", "q4_tile")]
KERNELS += ["kernels/%s/%s.h" % (isa, name) for isa in ("avx2_vnni", "avx512_vnni")
            for name in ("s8_tile", "q4_tile")]
KERNELS += ["kernels/avx2/transpose.h", "kernels/avx512_bf16/b16_tile.h"]
KERNELS += ["kernels/avx512_amx/%s.h" % name for name in ("b16_tiles", "s8_tiles", "shapes")]
DISPATCH = ["dispatch/" + name for name in
            ("attention.c", "check.c", "check.h", "cpu.c", "embed_rows.c", "gemm.c", "gemm/block.c",
             "gemm/narrow.c", "gemm/plan.c", "gemm/run.c", "gemm/streams.c", "gemm/transposed_c.c",
             "gemv.c", "info.c", "kv16.c", "linear.c", "packed_weights.c", "parts.c", "plan_text.c", "pool.c", "q.c", "q_s8.c", "rows.c",
             "s8.c", "select.c", "status.c", "strips.c", "threads.c", "tuning.c", "verbose.c", "w16.c")]
LOADER = ["model/" + name + ".c" for name in
          ("bin", "blocks", "checkpoint", "config", "config_quantized", "config_reader", "config_rope",
           "config_search", "dense", "families", "families/bart", "families/bert", "families/gpt", "families/t5",
           "file", "folder", "gguf", "gguf_config", "gguf_place", "groups", "int8", "json", "load", "pickle", "pieces",
           "quantize", "quantize_config", "quantize_numbers", "quantize_plan",
           "safetensors", "sentence_files", "elements", "take", "weights", "zip")]
LOADER += ["model/config_reader.h"]
LOADER += ["model/text/" + name + ".c" for name in
           ("added", "bpe", "characters", "gguf", "languages", "m2m", "marian", "metaspace",
            "normalize", "old_unicode",
            "pipeline", "pipeline_added", "pipeline_files", "pipeline_json", "pipeline_model",
            "pipeline_spm", "pipeline_spm_added", "pipeline_spm_model", "pipeline_spm_tokens",
            "pipeline_steps", "scan", "split", "spm_file", "spm_text", "tokenizer", "unicode", "unigram",
            "vocabulary", "wordpiece")]
CALLS = ["model/" + name + ".c" for name in
         ("arena", "batch", "between", "cache", "decode", "error", "forward", "generate", "layers", "plan",
          "processors", "profile", "relative", "run", "sample", "search", "sentence", "transformer",
          "text/sentence_text", "text/spelt", "text/stop", "text/target")]
BLAS = ["blas/" + name for name in
        ("errors.c", "gemm.c", "interface.h", "interface_batches.h", "interface_vectors.h",
         "openmp.c", "pack.c", "threads.c", "vectors.c", "verbose.c", "workspace.c")]
AREAS = {"kernels": KERNELS, "dispatch": DISPATCH, "loader": LOADER, "calls": CALLS, "blas": BLAS}
# What has none, and why.
WITHOUT = {
    "blas/ilp64.c": "the interface once more, with other integers",
    "blas/lp64.c": "the interface, which is mutated",
    "kernels/avx512_amx/amx_config.h": "the layout of an operand, which test_amx has from there, too",
    "kernels/avx512_amx/tiles.h": "instructions, in whose place test_amx has functions of its own",
    "model/text/no_sentencepiece.c": "compiled where SentencePiece is not there",
}
# How many are chosen, besides the validations of the loader, which are all taken.
QUOTA = {"kernels": 150, "dispatch": 100, "loader": 60, "calls": 120, "blas": 60}
# The kernels that a template makes, and the tests that see them beside test_kernels and test_ops.
OPS = {"attention_w16": (["attention_w16", "attention_w16_softcap"], ["test_kv16"]),
       "gemm_b16": (["gemm_b16"], ["test_b16"]),
       "gemm_q": (["gemm_q", "gemm_dequantise"], ["test_q"]),
       "gemm_q_s8": (["gemm_q_s8"], ["test_q"]),
       "gemm_s8": (["gemm_s8"], ["test_s8"]),
       "gemm_s8_widened": (["gemm_s8"], ["test_s8"]),
       "gemm_w16": (["gemm_w16", "gemm_widen"], ["test_w16"]),
       "q4_tile": (["gemm_q_s8"], ["test_q"]),
       "q_factors": (["gemm_q", "gemm_dequantise", "gemm_q_s8"], ["test_q"]),
       "quantize_blocks": (["quantize_blocks"], ["test_q", "test_parts"]),
       "quantize_s8": (["quantize_s8"], ["test_s8"]),
       "round_b16": (["gemm_b16"], ["test_b16"]),
       "s8_tile": (["gemm_s8", "quantize_s8"], ["test_s8"]),
       "b16_tile": (["gemm_b16"], ["test_b16"]),
       "wide_panels": (["gemm_w16"], ["test_w16"])}
PLAN = ["test_plan", "tests/data/plans"]


def each_test(program):
    """The tests of a program one by one, so that those come first that kill most in their time."""
    with open(os.path.join(ROOT, "tests", program + ".c"), encoding="utf-8") as f:
        names = re.findall(r"cmocka_unit_test\((\w+)\)", f.read())
    return [[program, name] for name in names]


# Programs of tests for one file of dispatch/, whose tests come before those for all.
OWN = {"embed_rows.c": ["test_w16", "test_q"], "kv16.c": ["test_kv16"], "linear.c": ["test_w16", "test_q"],
       "parts.c": ["test_parts", "test_s8", "test_q"], "q.c": ["test_q"], "q_s8.c": ["test_parts", "test_q"],
       "s8.c": ["test_s8"], "w16.c": ["test_w16"],
       "packed_weights.c": ["test_w16", "test_q", "test_prefetch"]}
TOKENIZERS = ["gpt2", "roberta", "prefix-space", "llama3", "qwen2", "bert", "bert-cased",
              "sequence", "bart", "nllb", "nllb-json", "mbart", "mbart50", "mbart50-json", "t5",
              "t5-bpe", "pegasus", "llama", "llama-json", "marian", "m2m_100"]


def area_of(path):
    return next(area for area, files in AREAS.items() if path in files)


def flag_of(path):
    """What the machine must have, as /proc/cpuinfo names it, so that mutants of a file run; or None."""
    isa, name = path.split("/")[1], path.rsplit("/", maxsplit=1)[-1]
    return {"avx512": "avx512vl", "avx512_vnni": "avx512_vnni", "avx512_bf16": "avx512_bf16",
            "avx512_amx": "avx512_bf16", "avx2_vnni": "avx_vnni",
            "templates": "avx512_bf16" if "b16.h" in name else None}.get(isa)


def stages_of_kernels(path):
    first, name = path.split("/")[1], os.path.splitext(os.path.basename(path))[0]
    ops, tests = OPS.get(name, ([], []))
    if first == "avx512_amx":
        yield "plain", ["tests/amx_kernel.c"], [["test_amx"]]
        return
    if "b16" in name:  # of levels alone, and with another numerics
        first = "avx512_bf16"
    if first in LEVELS:
        yield "plain", ["kernels/%s/%s.c" % (first, first)], [
            ["test_kernels", "--quick", "--isa", first, "--op", op] for op in ops[:1]] + [
                test for program in tests
                for test in ([[program, "native"]] if program == "test_b16" else each_test(program))]
        return
    if name in ("gemm_s8", "gemm_q_s8"):  # some of their tiles are compiled for levels alone
        yield "plain", ["kernels/avx512_vnni/avx512_vnni.c"], each_test(tests[0])
    isa = first if first in SETS else SETS[0]
    unit = ["kernels/%s/%s.c" % (isa, isa)]
    units = unit if first in SETS else ["kernels/%s/%s.c" % (each, each) for each in SETS]
    yield "plain", unit, [["test_kernels", "--quick", "--isa", isa, "--op", op] for op in ops] or [
        ["test_kernels", "--quick", "--isa", isa]]
    if ops:
        yield "plain", units, [["test_kernels", "--quick", "--op", op] for op in ops] + [
            test for program in tests for test in each_test(program)]
    yield "plain", units, [["test_kernels", "--quick"], ["test_ops", "--quick"],
                           ["test_kernels"],
                           ["test_kernels", "--quick", "--seed", "1", "--iters", "24000"],
                           ["test_ops"]]


def stages(path):
    """(kind of build, units that are made anew, test runs) from fast to slow."""
    area = area_of(path)
    if area == "kernels":
        yield from stages_of_kernels(path)
    elif area == "dispatch":
        units = ["dispatch/%s.c" % name for name in ("gemm", "rows", "attention")] \
            if path.endswith(".h") else [path]
        own = [test for program in OWN.get(path[len("dispatch/"):], []) for test in each_test(program)]
        if path in ("dispatch/gemm/plan.c", "dispatch/plan_text.c", "dispatch/strips.c", "dispatch/tuning.c"):
            own = [PLAN]
        if path == "dispatch/linear.c":
            own.append(["test_ops", "--quick"])
        if path == "dispatch/packed_weights.c":
            own += [PLAN, ["test_b16", "native"]]
        if own or path == "dispatch/verbose.c":
            own.append(["test_verbose"])
        quick = [["test_dispatch"], ["test_ops", "--quick"], ["fuzz_ops", "@"], ["test_verbose"]]
        if path == "dispatch/gemm/block.c":
            quick[:0] = each_test("test_prefetch") + each_test("test_passes") + each_test("test_ways") + [
                ["test_w16", "all_ways_have_the_same_bits"], ["test_q", "all_ways_have_the_same_bits"],
                ["test_b16", "native"]]
        elif path.startswith("dispatch/gemm/") and not own:
            quick[:0] = each_test("test_passes") + each_test("test_ways")
        if own:
            yield "plain", units, own + [["fuzz_ops", "@"]]
        # Of a product's blocks test_model sees in a minute what the others see in less.
        models = [["test_model"]]
        slow = models if path.startswith("dispatch/gemm/") else []
        yield "plain", units, quick + ([] if slow else models) + \
            ([["test_threads"]] if path.endswith("/pool.c") else [])
        yield "plain", units, [["@Nehalem"], ["@Haswell"], ["test_threads"], ["test_ops"]] + slow
        yield "asan", units, own + quick + [["test_model"]]
        if path.endswith("/pool.c"):  # a lock that lacks shows in a plain build by chance only
            yield "tsan", units, [["test_threads"]]
    elif area == "blas":
        units = ["blas/lp64.c", "blas/ilp64.c"] if path.endswith(".h") else [path]
        openmp = [["blas_openmp_fake"], ["blas_openmp"]]
        yield "plain", units, [["test_blas", "--quick"]] + \
            (openmp if path in ("blas/openmp.c", "blas/threads.c") else [])
        yield "plain", units, [["test_blas"]]
        yield "asan", units, [["test_blas", "--quick"]]
    elif path == "model/batch.c":  # which its test includes
        yield "plain", ["tests/test_batch.c"], [["test_batch"]]
        yield "plain", [path], [["test_long"]]
        yield "asan", ["tests/test_batch.c"], [["test_batch"]]
    elif area == "calls" and "/text/" not in path:
        tests = [["test_model"], ["test_sample"], ["test_tiny_gpt2"], ["test_attention"]]
        if path.endswith(("/sample.c", "/processors.c", "/generate.c", "/search.c")):
            tests[:2] = tests[1::-1]
        if path == "model/search.c":  # the same
            yield "plain", ["tests/test_search.c"], [["test_search"]]
        if path == "model/sentence.c":
            tests.insert(0, ["test_families"])
        else:
            tests += [["test_batch"], ["test_families"], ["test_long"]]
        yield "plain", [path], tests
        yield "asan", [path], [["test_model"], ["test_sample"]]
    elif path.startswith(("model/blocks", "model/groups", "model/int8", "model/quantize", "model/folder",
                          "model/config_quantized")):
        tests = each_test("test_quantize") + [["test_gguf_q"]]
        if path == "model/blocks.c":
            tests = each_test("test_blocks") + [["test_gguf_q"], ["fuzz_gguf", "@"],
                                                ["test_quantize", "test_groups_of_others"]]
        elif path in ("model/int8.c", "model/config_quantized.c"):
            tests += [["test_loader", name] for name in ("test_int8_matrices", "test_int8_models",
                                                         "test_int8_refused", "test_config")]
            tests.append(["test_faults", "test_models_fail"])
        yield "plain", [path], tests
        yield "plain", [path], [["test_model"], ["test_gguf"], ["test_loader"],
                               ["fuzz_safetensors", "@"], ["fuzz_config", "@"]]
        yield "asan", [path], tests
    elif path.startswith("model/gguf"):
        yield "plain", [path], [["fuzz_gguf", "@"]] + each_test("test_gguf")
        yield "asan", [path], [["fuzz_gguf", "@"]] + each_test("test_gguf")
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
        tests = fuzz + [test for program in ("checkpoints", "loader", "faults")
                        for test in each_test("test_" + program)] + [["test_corpus"]]
        units = ["model/%s.c" % name for name in ("config", "config_rope", "config_search")] \
            if path.endswith(".h") else [path]
        slow = [["test_model"]]
        if path.endswith("/characters.c"):
            tests.insert(0, ["test_text_faults"] + TOKENIZERS)
        if path.startswith(("model/config", "model/dense", "model/families", "model/take", "model/load",
                            "model/sentence_files")):
            tests += each_test("test_families") + [["test_sample"]]
        if path.startswith(("model/config", "model/families", "model/take", "model/weights",
                            "model/pieces", "model/elements")):
            slow += [["test_gguf"], ["test_quantize"]]
        if path.startswith(("model/load", "model/weights", "model/pieces", "model/elements", "model/take")):
            tests += [["test_gguf_q"]] + each_test("test_blocks")
        if path == "model/load.c":  # which checks what is quantised
            tests += each_test("test_quantize")
        if path in ("model/load.c", "model/config_search.c"):
            tests += slow
        yield "plain", units, tests
        yield "plain", units, slow
        yield "asan", units, tests


def problems(mutants_run):
    """What is wrong with these lists: nothing of the sources may be left out without a reason."""
    patterns = ["dispatch/**/*.c", "model/**/*.c", "blas/*.c", "kernels/templates/*.h", "kernels/scalar/*.h",
                "kernels/avx*/*.h"]
    found = {os.path.relpath(path, ROOT) for pattern in patterns
             for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)}
    listed = [path for files in AREAS.values() for path in files]
    for path in sorted(found - set(listed) - set(WITHOUT)):
        yield path + " is in no area, and not in WITHOUT"
    for path in sorted(set(listed) | set(WITHOUT)):
        if not os.path.exists(os.path.join(ROOT, path)):
            yield path + " is not there"
        if listed.count(path) + (path in WITHOUT) > 1:
            yield path + " is there twice"
    for path in listed:
        for _, _, tests in stages(path):
            for words in tests:
                if words[0] not in mutants_run and not re.match("@", words[0]):
                    yield "%s: %s is no program of trials.py" % (path, words[0])
