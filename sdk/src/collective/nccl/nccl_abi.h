#pragma once

// The part of NCCL's binary interface that Holdfast uses. It has not changed since NCCL 2.18.
//
// It is declared here so that building needs neither a header nor a library of NCCL, and one program works with every
// version that a machine may have. tests/unit/collective/nccl compares it with nccl.h where that is installed.
// See docs/decisions/nccl.md.

#include <climits>
#include <cstddef>

namespace holdfast::nccl {

struct Comm;  // opaque, NCCL's communicator

enum class Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

enum class DataType : int { float32 = 7 };
enum class Operation : int { sum = 0 };

struct UniqueId {
  char bytes[128];
};

// How NCCL encodes its version since 2.9: 2.18.5 is 21805, 2.30.3 is 23003.
constexpr int version_code(int major, int minor, int patch) {
  return major * 10'000 + minor * 100 + patch;
}

constexpr int kOldestVersion = version_code(2, 18, 0);

// The settings of a communicator as of NCCL 2.18. From `size` and `version` a newer library knows that it must use its
// own defaults for settings that came later; it copies no more than `size` bytes.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned int magic = 0xCAFE'BEEF;
  unsigned int version = kOldestVersion;
  int blocking = INT_MIN;  // INT_MIN and null leave a setting to NCCL
  int cga_cluster_size = INT_MIN;
  int minimum_ctas = INT_MIN;
  int maximum_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

extern "C" {
using GetVersion = Result (*)(int* version);
using GetUniqueId = Result (*)(UniqueId* id);
using CommInitRankConfig = Result (*)(Comm** comm, int ranks, UniqueId id, int rank, Config* config);
using CommGetAsyncError = Result (*)(Comm* comm, Result* error);
using CommAbort = Result (*)(Comm* comm);
using CommRevoke = Result (*)(Comm* comm, int flags);
using GroupStart = Result (*)();
using GroupEnd = Result (*)();
using Send = Result (*)(const void* from, std::size_t count, DataType type, int peer, Comm* comm, void* stream);
using Recv = Result (*)(void* to, std::size_t count, DataType type, int peer, Comm* comm, void* stream);
using AllGather = Result (*)(const void* from, void* to, std::size_t count, DataType type, Comm* comm, void* stream);
using AllReduce = Result (*)(const void* from, void* to, std::size_t count, DataType type, Operation operation,
                             Comm* comm, void* stream);
using Broadcast = Result (*)(const void* from, void* to, std::size_t count, DataType type, int root, Comm* comm,
                             void* stream);
using GetErrorString = const char* (*)(Result result);
using GetLastError = const char* (*)(Comm* comm);
}

}  // namespace holdfast::nccl
