// Sums an arena over shared memory in shard order, with two ranks as threads, and compares it with a memcpy of the same
// bytes. With --hosts, sums over several hosts instead (reduction_hosts.cpp); with --cancels, too, how soon all ranks
// leave a collective that is cancelled (hosts_cancels.cpp).

#include <benchmark/benchmark.h>
#include <CLI/CLI.hpp>

#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "collective/shard_accumulator.h"
#include "hosts_cancels.h"
#include "reduction_hosts.h"
#include "support/rank_threads.h"
#include "ucx_link.h"

namespace holdfast {
namespace {

constexpr int kRanks = 2;

void ReduceOnTwoRanks(benchmark::State& state) {
  const auto floats = static_cast<std::size_t>(state.range(0));
  // Threads and memory of an iteration are made outside the measured time, so several rounds share them.
  constexpr int kRounds = 8;
  for (auto _ : state) {
    ThreadGroup group(kRanks);
    double seconds = 0;
    run_ranks(kRanks, group, [&](int rank) {
      const auto communicator = group.connect({.rank = rank,
                                               .size = kRanks,
                                               .assignment = ShardAssignment::even(kRanks, kRanks),
                                               .slots = 1,
                                               .float_count = floats});
      const int slot = 0;
      // Far longer than any round takes: a hang ends the benchmark with an error.
      const Deadline deadline = Deadline::after(std::chrono::minutes(1));
      // The first round, which maps the pages, is not measured.
      communicator->reduce(std::span(&slot, 1), {0, floats}, deadline);
      const auto start = std::chrono::steady_clock::now();
      for (int round = 0; round < kRounds; ++round) communicator->reduce(std::span(&slot, 1), {0, floats}, deadline);
      if (rank == 0) seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    });
    state.SetIterationTime(seconds / kRounds);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(floats * sizeof(float)));
}
// The last size is the gradients of measured_mlp(): 41,157,101 floats, rounded up to whole lines of the cache.
BENCHMARK(ReduceOnTwoRanks)
    ->Arg(1 << 10)
    ->Arg(1 << 18)
    ->Arg(41'157'104)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// The lower bound: each byte is read and written once.
void Memcpy(benchmark::State& state) {
  const auto floats = static_cast<std::size_t>(state.range(0));
  std::vector<float> from(floats, 1.0F);
  std::vector<float> to(floats);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), floats * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(floats * sizeof(float)));
}
BENCHMARK(Memcpy)->Arg(1 << 10)->Arg(1 << 18)->Arg(41'157'104)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace holdfast

namespace {

// The option is there without UCX, too, since this sentence says more than "unknown option".
holdfast::HostGroup::Wrap ucx_links() {
#ifdef HOLDFAST_HAS_UCX
  return [](std::unique_ptr<holdfast::Link> socket, int, int) { return holdfast::ucx_link(std::move(socket)); };
#else
  throw holdfast::Error(holdfast::ErrorCode::unsupported,
                        "this program was built without UCX; install libucx-dev, and configure the build again");
#endif
}

int measure_hosts_as_asked(int argc, char** argv) {
  holdfast::HostsBenchmark options;
  CLI::App app("Sums over several hosts, as threads with sockets between them.");
  app.add_option("--hosts", options.hosts, "how many")->check(CLI::Range(2, 64));
  app.add_option("--ranks", options.ranks, "of each host")->check(CLI::Range(1, 64));
  app.add_option("--turns", options.turns, "of each way to measure")->check(CLI::Range(1, 1000));
  int cancels = 0;
  app.add_option("--cancels", cancels, "collectives that are cancelled instead")->check(CLI::NonNegativeNumber);
  app.add_option("--namespaces", options.namespaces, "network namespaces of two hosts")->delimiter(',');
  app.add_option("--addresses", options.addresses, "of the hosts in these")->delimiter(',');
  bool measures_ucx = false;
  app.add_flag("--ucx", measures_ucx, "sums and cancels over UCX, too; where this was built with it");
  CLI11_PARSE(app, argc, argv);
  try {
    if (measures_ucx) options.other_link = ucx_links();
    if (cancels > 0) return holdfast::measure_cancels(options, cancels) ? 0 : 1;
    holdfast::measure_hosts(options);
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Two parsers, each of which refuses the options of the other one: --hosts says whose turn it is.
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]).starts_with("--hosts")) return measure_hosts_as_asked(argc, argv);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
