// A generation that ends at any moment lets all ranks out, and leaves nothing open.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "collective/hosts/hosts_communicator.h"
#include "unit/collective/hosts/support/summed.h"

namespace holdfast {
namespace {

int descriptors_open() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.exists() ? 1 : 0;
  return count;
}

}  // namespace

// Ranks make sums until they are cancelled, in one of four ways, at a moment that depends on how far they are.
TEST(HostsCancel, LetsAllRanksOutAndLeavesNoDescriptorAtAnyMoment) {
  Random random(14, Purpose::user, 0, 0);
  const HostLayout layouts[] = {HostLayout({1, 1}), HostLayout({2, 2}), HostLayout({1, 2, 1})};
  const int before = descriptors_open();
  for (int trial = 0; trial < 1000; ++trial) {
    const HostLayout& layout = layouts[trial % 3];
    const ShardAssignment assignment = ShardAssignment::even(layout.ranks(), layout.ranks());
    HostGroup group(
        layout, trial % 2 == 0 ? HostGroup::Connect(unix_pair) : [] { return tcp_pair(); });
    std::atomic<int> calls = 0;
    std::atomic<bool> is_started = false;
    const int enough = static_cast<int>(random.below(40));
    const std::uint64_t spins = random.below(20'000);
    std::thread canceller([&] {
      while (!is_started || calls < enough) std::this_thread::yield();
      for (std::atomic<std::uint64_t> spin = 0; spin < spins; ++spin) continue;
      if (trial % 4 == 0) group.cancel_words();
      if (trial % 4 == 1) group.set_cancel_event();
      if (trial % 4 == 2) group.shut_down_sockets();
      if (trial % 4 == 3) group.cancel_all();
    });

    std::atomic<int> connected = 0;
    const auto thrown = run_each_rank(layout.ranks(), [&](int rank) {
      const auto communicator = group.connect(shape_for(rank, assignment, 4096));
      if (++connected == layout.ranks()) is_started = true;
      const int slot = 0;
      for (;; ++calls) communicator->reduce(std::span(&slot, 1), {0, 4096}, long_enough());
    });
    canceller.join();

    for (const std::exception_ptr& failure : thrown) {
      ASSERT_THROW(std::rethrow_exception(failure), GenerationEnded) << "trial " << trial;
    }
  }
  EXPECT_EQ(descriptors_open(), before);
}

}  // namespace holdfast
