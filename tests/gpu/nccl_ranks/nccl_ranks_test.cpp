// The real NCCL between processes that share one GPU. Each rank is a child of the test. The test itself never uses
// CUDA, because a process that has used CUDA cannot be forked.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/memory/memory_communicator.h"
#include "collective/memory/ordered_add.h"
#include "collective/nccl/cuda_collective_stream.h"
#include "collective/nccl/nccl_environment.h"
#include "collective/nccl/nccl_exchange.h"
#include "gpu/collective/support/device_floats.h"
#include "holdfast/core/random.h"
#include "support/rank_threads.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr int kPassed = 0;
constexpr int kFailed = 1;
constexpr int kNoDevice = 77;
constexpr std::size_t kFloats = 100'016;

Deadline soon() {
  return Deadline::after(60s);
}

std::vector<float> shard_values(int round, int shard) {
  std::vector<float> values(kFloats);
  Random random(static_cast<std::uint64_t>(round), Purpose::user, 0, static_cast<std::uint64_t>(shard));
  for (float& value : values) value = random.normal() * std::exp2(static_cast<float>(random.below(24)));
  return values;
}

std::vector<float> expected_sum(int round, int shards) {
  std::vector<std::vector<float>> values;
  std::vector<const float*> leaves;
  for (int shard = 0; shard < shards; ++shard) values.push_back(shard_values(round, shard));
  for (const std::vector<float>& leaf : values) leaves.push_back(leaf.data());
  std::vector<float> sum(kFloats);
  const ShardAssignment one_each = ShardAssignment::even(shards, shards);
  add_in_order(sum_program(ShardTree(shards), one_each.covering_nodes()), leaves, {0, kFloats}, sum.data());
  return sum;
}

// A rank in its process, with NCCL set up for ranks that share a GPU.
struct GpuRank {
  GpuRank(Communicator& control, bool library_order) : host(control) {
    compute::check_cuda(cudaSetDevice(0), "cudaSetDevice");
    compute::check_cuda(cudaStreamCreateWithFlags(&training, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    set_nccl_environment({.version = NcclLibrary::instance()->version(),
                          .shares_device = true,
                          .process_name = "rank-" + std::to_string(control.rank())});
    shape = {.rank = control.rank(),
             .size = control.size(),
             .assignment = ShardAssignment::even(control.size(), control.size()),
             .slots = 1,
             .float_count = kFloats,
             .wanted_bucket_floats = 16'384,
             .library_order = library_order};
    exchange = std::make_unique<NcclExchange>(shape, NcclLibrary::instance(),
                                              std::make_shared<CudaCollectiveStream>(0, training), host,
                                              device_floats(shape.block_floats()), soon());
  }

  std::vector<float> reduce(int round, Deadline deadline) {
    to_device(shard_values(round, shape.rank), exchange->slots()[0].data());
    const int slot = 0;
    const auto sum = exchange->reduce(std::span(&slot, 1), {0, kFloats}, deadline);
    std::vector<float> values = to_host(sum.data(), sum.size());
    host.barrier(soon());
    return values;
  }

  // Declares the last floats ready first, in the order of the training's stream.
  std::vector<float> reduce_in_buckets(int round, Deadline deadline) {
    const std::vector<float> values = shard_values(round, shape.rank);
    float* const own = exchange->slots()[0].data();
    constexpr std::size_t kMiddle = kFloats / 32 * 16;
    for (const FloatRange range : {FloatRange{kMiddle, kFloats}, {0, kMiddle}}) {
      compute::check_cuda(cudaMemcpyAsync(own + range.begin, values.data() + range.begin,
                                          (range.end - range.begin) * sizeof(float), cudaMemcpyHostToDevice, training),
                          "cudaMemcpyAsync");
      exchange->mark_ready(range);
    }
    const int slot = 0;
    exchange->begin_reduce(std::span(&slot, 1), deadline);
    const auto sum = exchange->reduce(std::span(&slot, 1), {0, kFloats}, deadline);
    std::vector<float> all = to_host(sum.data(), sum.size());
    host.barrier(soon());
    return all;
  }

  Communicator& host;
  cudaStream_t training = nullptr;
  NcclExchangeShape shape;
  std::unique_ptr<NcclExchange> exchange;
};

bool are_same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Ends a child without the destructors of its statics, because those of CUDA may wait.
[[noreturn]] void leave(const std::function<int()>& body) {
  int code = kFailed;
  try {
    int devices = 0;
    code = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 ? body() : kNoDevice;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "rank of process %d: %s\n", static_cast<int>(::getpid()), failure.what());
  }
  ::_exit(code);
}

class NcclRanks : public testing::Test {
 protected:
  // Runs body(host communicator) in a process for each rank, and returns their exit codes: -1 for a signal.
  std::vector<int> run(int ranks, const std::function<int(Communicator&)>& body) {
    ThreadGroup group(ranks);
    std::vector<std::unique_ptr<MemoryCommunicator>> hosts;
    for (int rank = 0; rank < ranks; ++rank) {
      hosts.push_back(group.connect({.rank = rank,
                                     .size = ranks,
                                     .assignment = ShardAssignment::even(ranks, ranks),
                                     .slots = 1,
                                     .float_count = 16}));
    }
    std::vector<pid_t> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t process = ::fork();
      if (process == 0) leave([&] { return body(*hosts[static_cast<std::size_t>(rank)]); });
      processes.push_back(process);
    }
    return wait_for(processes, group);
  }

 private:
  // Like the watchdog, ends the generation when a rank dies, and kills ranks that do not end by themselves.
  static std::vector<int> wait_for(const std::vector<pid_t>& processes, ThreadGroup& group) {
    std::vector<int> codes(processes.size(), kFailed);
    std::vector<bool> is_over(processes.size(), false);
    const Deadline deadline = Deadline::after(120s);
    for (std::size_t left = processes.size(); left > 0;) {
      for (std::size_t i = 0; i < processes.size(); ++i) {
        int status = 0;
        if (is_over[i] || ::waitpid(processes[i], &status, WNOHANG) == 0) continue;
        is_over[i] = true;
        --left;
        codes[i] = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (codes[i] != kPassed) group.cancel_all();
      }
      if (deadline.has_passed()) {
        for (std::size_t i = 0; i < processes.size(); ++i) {
          if (!is_over[i]) ::kill(processes[i], SIGKILL);
        }
      }
      std::this_thread::sleep_for(1ms);
    }
    return codes;
  }
};

bool have_no_device(const std::vector<int>& codes) {
  return std::count(codes.begin(), codes.end(), kNoDevice) == static_cast<std::ptrdiff_t>(codes.size());
}

TEST_F(NcclRanks, AddInTheOrderOfTheShardTree) {
  for (const int ranks : {2, 3}) {
    const std::vector<int> codes = run(ranks, [&](Communicator& host) {
      GpuRank rank(host, false);
      for (int round = 0; round < 5; ++round) {
        if (!are_same(rank.reduce(round, soon()), expected_sum(round, ranks))) return kFailed;
        if (!rank.exchange->was_finite()) return kFailed;
      }
      return kPassed;
    });
    if (have_no_device(codes)) GTEST_SKIP() << "no CUDA device";
    EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(ranks), kPassed)) << ranks << " ranks";
  }
}

TEST_F(NcclRanks, AddBucketsAsGradientsBecomeReady) {
  const std::vector<int> codes = run(2, [&](Communicator& host) {
    GpuRank rank(host, false);
    for (int round = 0; round < 5; ++round) {
      // In alternation, one rank declares gradients ready and the other does not.
      const bool marks_ready = (round + host.rank()) % 2 == 0;
      const std::vector<float> sum = marks_ready ? rank.reduce_in_buckets(round, soon()) : rank.reduce(round, soon());
      if (!are_same(sum, expected_sum(round, 2))) return kFailed;
    }
    return kPassed;
  });
  if (have_no_device(codes)) GTEST_SKIP() << "no CUDA device";

  EXPECT_EQ(codes, (std::vector<int>{kPassed, kPassed}));
}

// With two summands, the order makes no difference.
TEST_F(NcclRanks, AddInTheOrderOfTheLibrary) {
  const std::vector<int> codes = run(2, [&](Communicator& host) {
    GpuRank rank(host, true);
    return are_same(rank.reduce(1, soon()), expected_sum(1, 2)) ? kPassed : kFailed;
  });
  if (have_no_device(codes)) GTEST_SKIP() << "no CUDA device";

  EXPECT_EQ(codes, (std::vector<int>{kPassed, kPassed}));
}

TEST_F(NcclRanks, BroadcastToRanksThatTake) {
  const std::vector<int> codes = run(3, [&](Communicator& host) {
    GpuRank rank(host, false);
    const std::shared_ptr<float[]> array = device_floats(kFloats);
    for (const bool all : {true, false}) {
      to_device(shard_values(all ? 1 : 2, host.rank()), array.get());
      const bool takes = all || host.rank() == 2;
      rank.exchange->broadcast({array.get(), kFloats}, 1, takes, soon());
      const std::vector<float> expected = shard_values(all ? 1 : 2, takes ? 1 : host.rank());
      if (!are_same(to_host(array.get(), kFloats), expected)) return kFailed;
    }
    return kPassed;
  });
  if (have_no_device(codes)) GTEST_SKIP() << "no CUDA device";

  EXPECT_EQ(codes, (std::vector<int>{kPassed, kPassed, kPassed}));
}

// The peer dies in the middle of a reduction. The survivor aborts it, and the abort must end within its bound.
TEST_F(NcclRanks, SurviveTheDeathOfAPeer) {
  const std::vector<int> codes = run(2, [&](Communicator& host) {
    GpuRank rank(host, false);
    if (!are_same(rank.reduce(0, soon()), expected_sum(0, 2))) return kFailed;
    if (host.rank() == 1) {
      // For the host it has arrived at the reduction, but it sends nothing.
      host.barrier(soon());
      ::kill(::getpid(), SIGKILL);
    }
    try {
      rank.reduce(1, soon());
    } catch (const GenerationEnded&) {
      rank.exchange.reset();
      return NcclLibrary::instance()->is_poisoned() ? kFailed : kPassed;
    }
    return kFailed;
  });
  if (have_no_device(codes)) GTEST_SKIP() << "no CUDA device";

  EXPECT_EQ(codes, (std::vector<int>{kPassed, -1}));
}

}  // namespace
}  // namespace holdfast
