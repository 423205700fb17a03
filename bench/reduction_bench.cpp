// Sums an arena over shared memory in shard order, with two ranks as threads, and compares it with a memcpy of the same
// bytes.

#include <benchmark/benchmark.h>

#include <cstring>

#include "collective/shard_accumulator.h"
#include "support/rank_threads.h"

namespace holdfast {
namespace {

constexpr int kRanks = 2;

void ReduceOnTwoRanks(benchmark::State& state) {
  const auto floats = static_cast<std::size_t>(state.range(0));
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
