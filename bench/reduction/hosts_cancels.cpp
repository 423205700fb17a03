// Collectives between hosts, which are threads with sockets between them, that are cancelled as agents do: by the words
// of the arenas and by the end of the connections. A rank of another process would leave by the same calls.

#include "hosts_cancels.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/holdfast.h"
#include "support/host_threads.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

// The aim of docs/measurements.md. One trial that takes longer fails the whole measurement.
constexpr std::chrono::milliseconds kLimit(50);
constexpr std::chrono::microseconds kLongestWait(20'000);               // for the moment of a cancel
constexpr std::size_t kFloats[] = {256, 61'712, std::size_t{1} << 20};  // 1 KiB, LeNet-5's gradients, 4 MiB

int descriptors_open() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.exists() ? 1 : 0;
  return count;
}

// One collective of the kind with this number.
void run_collective(Communicator& communicator, int kind, std::vector<float>& values) {
  // Far longer than a cancel takes: a rank that misses one ends the program with an error instead of a hang.
  const Deadline deadline = Deadline::after(std::chrono::minutes(2));
  const int slot = 0;
  if (kind == 0) {
    static_cast<void>(communicator.reduce(std::span(&slot, 1), {0, values.size()}, deadline));
  } else if (kind == 1) {
    communicator.broadcast(std::as_writable_bytes(std::span(values)), 0, communicator.rank() != 0, deadline);
  } else if (kind == 2) {
    const std::vector<std::byte> own(64);
    std::vector<std::byte> all(own.size() * static_cast<std::size_t>(communicator.size()));
    communicator.gather_all(own, all, deadline);
  } else {
    communicator.barrier(deadline);
  }
}

// Milliseconds from a cancel until the last rank has left.
double cancel_once(const HostsBenchmark& options, int trial, Random& random) {
  const HostLayout layout(std::vector<int>(static_cast<std::size_t>(options.hosts), options.ranks));
  HostGroup group(layout, connect_of(options));
  if (options.other_link) group.wrap_links(options.other_link);
  const std::size_t floats = kFloats[static_cast<std::size_t>(trial) % std::size(kFloats)];
  const int kind = trial / static_cast<int>(std::size(kFloats)) % 4;
  const auto wait = std::chrono::microseconds(random.below(kLongestWait.count()));
  std::atomic<int> ready = 0;
  Clock::time_point cancelled;
  std::vector<Clock::time_point> left(static_cast<std::size_t>(layout.ranks()));
  std::thread canceller([&] {
    // A cancel is to strike a collective, and not the connecting before it.
    while (ready < layout.ranks()) std::this_thread::yield();
    std::this_thread::sleep_for(wait);
    // Before both acts of an agent, so that these count too.
    cancelled = Clock::now();
    group.cancel_words();
    group.shut_down_sockets();
  });
  const auto thrown = run_each_rank(layout.ranks(), [&](int rank) {
    try {
      const auto communicator = group.connect({.rank = rank,
                                               .size = layout.ranks(),
                                               .assignment = ShardAssignment::even(layout.ranks(), layout.ranks()),
                                               .slots = 1,
                                               .float_count = floats});
      std::vector<float> values(floats);
      ++ready;
      // Without an end of its own: only the cancel leaves this loop, by an exception.
      for (;;) run_collective(*communicator, kind, values);
    } catch (...) {
      left[static_cast<std::size_t>(rank)] = Clock::now();
      ready = layout.ranks();  // also where a rank did not get as far
      throw;
    }
  });
  canceller.join();
  // GenerationEnded is what a cancelled rank must throw. Anything else is a fault, and leaves this function.
  for (const std::exception_ptr& failure : thrown) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const GenerationEnded&) {
      continue;
    }
  }
  return std::chrono::duration<double, std::milli>(*std::max_element(left.begin(), left.end()) - cancelled).count();
}

}  // namespace

bool measure_cancels(const HostsBenchmark& options, int cancels) {
  Random random(1, Purpose::user, 0, 0);
  // Before the count, so that what a process opens once and keeps does not look like a leak.
  cancel_once(options, 0, random);
  const int before = descriptors_open();
  std::vector<double> times;
  for (int trial = 0; trial < cancels; ++trial) times.push_back(cancel_once(options, trial, random));
  const int after = descriptors_open();
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  const auto late = std::count_if(times.begin(), times.end(), [](double time) { return time > kLimit.count(); });
  fmt::print(
      "{} cancels of collectives between {} hosts with {} ranks each, {}: milliseconds until all ranks have left, "
      "p50 / p99 / worst: {:.3f} / {:.3f} / {:.3f}; {} took more than {}. Descriptors open: {} before, {} after.\n",
      cancels, options.hosts, options.ranks,
      options.namespaces.empty() ? "TCP over loopback" : "TCP between network namespaces", at(0.5), at(0.99),
      times.back(), late, kLimit.count(), before, after);
  return late == 0 && after == before;
}

}  // namespace holdfast
