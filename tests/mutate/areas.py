# SPDX-License-Identifier: MIT
"""Which files are mutated, and which tests run for each."""

SETS = ["avx2", "avx512", "scalar"]
KERNELS = ["kernels/templates/" + name + ".h" for name in
           ("attention", "attention_columns", "eltwise", "gemm", "gemm_along", "gemm_bt", "gemm_direct", "gemm_linear",
            "gemm_strip", "gemv", "lanes", "math", "norm", "rope", "softmax")]
KERNELS += ["kernels/%s/%s.h" % (isa, name) for isa in SETS for name in ("vec", "gemm_tile")]
DISPATCH = ["dispatch/" + name for name in
            ("attention.c", "check.h", "cpu.c", "gemm.c", "gemm/block.c",
             "gemm/narrow.c", "gemm/plan.c", "gemm/run.c", "gemm/streams.c", "gemm/transposed_c.c",
             "gemv.c", "info.c", "linear.c", "pool.c", "rows.c", "select.c", "status.c", "threads.c")]
LOADER = ["model/" + name + ".c" for name in
          ("bin", "checkpoint", "config", "config_reader", "config_rope", "config_search",
           "families", "file", "gguf", "gguf_config", "gguf_place", "json", "load", "pickle",
           "safetensors", "elements", "weights", "zip")]
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


def area_of(path):
    return next(area for area, files in AREAS.items() if path in files)


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
        if path.startswith("model/config"):
            tests.insert(0, ["test_families"])
            tests += [["test_sample"], ["test_gguf"]]
        yield "plain", units, tests + [["test_faults"]]
        yield "plain", units, [["test_loader"]]
        yield "asan", units, fuzz + [["test_checkpoints"], ["test_loader"], ["test_corpus"]]
