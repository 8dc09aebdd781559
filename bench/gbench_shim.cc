// SPDX-License-Identifier: MIT
//
// See gbench_shim.h. Written against Google Benchmark 1.7.1, which has no C interface.
#include "gbench_shim.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

namespace {

benchmark::State *state_of(gbench_state *state) {
    return reinterpret_cast<benchmark::State *>(state);
}

// A fixed number of iterations and manual timing are told in the name of a benchmark. Ours is its
// identity across versions, so the reporters take that away again.
// Repetitions that were left out go, too.
const char left_out[] = "left_out";

std::vector<benchmark::BenchmarkReporter::Run>
plain_names(const std::vector<benchmark::BenchmarkReporter::Run> &all) {
    using Run = benchmark::BenchmarkReporter::Run;
    std::vector<Run> runs;
    for (const auto &run : all)
        if (run.run_type != Run::RT_Iteration || run.counters.count(left_out) == 0)
            runs.push_back(run);
    for (auto &run : runs) {
        run.counters.erase(left_out);
        run.run_name.iterations.clear();
        run.run_name.repetitions.clear();
        run.run_name.time_type.clear();
    }
    return runs;
}

class Json : public benchmark::JSONReporter {
    void ReportRuns(const std::vector<Run> &runs) override {
        benchmark::JSONReporter::ReportRuns(plain_names(runs));
    }
};

class Console : public benchmark::ConsoleReporter {
  public:
    Console() : benchmark::ConsoleReporter(OO_Tabular) {}

  private:
    void ReportRuns(const std::vector<Run> &runs) override {
        benchmark::ConsoleReporter::ReportRuns(plain_names(runs));
    }
};

class Quiet : public benchmark::BenchmarkReporter {
    bool ReportContext(const Context &) override { return true; }
    void ReportRuns(const std::vector<Run> &) override {}
};

// Whether Google Benchmark will write a file, and that as JSON.
bool writes_json(int argc, char **argv) {
    bool file = false, json = true;
    for (int i = 1; i < argc; i++) {
        static const char out[] = "--benchmark_out=", format[] = "--benchmark_out_format=";
        if (std::strncmp(argv[i], out, sizeof out - 1) == 0)
            file = argv[i][sizeof out - 1] != '\0';
        if (std::strncmp(argv[i], format, sizeof format - 1) == 0)
            json = std::strcmp(argv[i] + sizeof format - 1, "json") == 0;
    }
    return file && json;
}

} // namespace

void gbench_register(const char *name, void (*fn)(gbench_state *state, void *user), void *user,
                     int repetitions) {
    benchmark::internal::Benchmark *b =
        benchmark::RegisterBenchmark(name, [fn, user](benchmark::State &state) {
            fn(reinterpret_cast<gbench_state *>(&state), user);
        });
    b->Iterations(1)->UseManualTime()->Unit(benchmark::kMicrosecond);
    if (repetitions > 0)
        b->Repetitions(repetitions);
}

int gbench_begin(gbench_state *state) {
    if (!state_of(state)->KeepRunning())
        return 0;
    state_of(state)->PauseTiming();
    return 1;
}

void gbench_resume(gbench_state *state) { state_of(state)->ResumeTiming(); }

void gbench_end(gbench_state *state) { state_of(state)->KeepRunning(); }

void gbench_seconds(gbench_state *state, double seconds) {
    state_of(state)->SetIterationTime(seconds);
}

void gbench_counter(gbench_state *state, const char *name, double value) {
    state_of(state)->counters[name] = value;
}

void gbench_error(gbench_state *state, const char *why) { state_of(state)->SkipWithError(why); }

void gbench_leave_out(gbench_state *state, double seconds) {
    while (state_of(state)->KeepRunning())
        state_of(state)->SetIterationTime(seconds);
    state_of(state)->counters[left_out] = 1;
}

void gbench_use(const void *p) {
    benchmark::DoNotOptimize(p);
    benchmark::ClobberMemory();
}

void gbench_context(const char *key, const char *value) { benchmark::AddCustomContext(key, value); }

int gbench_run(int argc, char **argv, int console) {
    const bool json = writes_json(argc, argv);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    Json to_file;
    Console to_console;
    Quiet to_nobody;
    benchmark::BenchmarkReporter *display = &to_nobody;
    if (console)
        display = &to_console;
    benchmark::RunSpecifiedBenchmarks(display, json ? &to_file : nullptr);
    benchmark::Shutdown();
    return 0;
}
