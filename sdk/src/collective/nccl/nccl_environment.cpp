#include "collective/nccl/nccl_environment.h"

#include <fmt/format.h>
#include <cstdlib>
#include <string_view>

#include "collective/nccl/nccl_abi.h"
#include "holdfast/base/log.h"

namespace holdfast {
namespace {

constexpr int kFirstWithRanksOnOneGpu = nccl::version_code(2, 30, 3);
constexpr const char* kBlocking = "NCCL_COMM_BLOCKING";

// This variable goes before Config::blocking, and 1 would let connecting wait for peers that never come, whatever the
// deadline. It is set where nobody has: NCCL's own files of settings fill in what the environment lacks.
void require_no_blocking() {
  const char* const given = std::getenv(kBlocking);
  // As it is from the second generation on, when threads of NCCL may read the environment.
  if (given != nullptr && std::string_view(given) == "0") return;
  if (given != nullptr) {
    log(LogLevel::warning,
        fmt::format("{}={} is replaced by 0: calls of NCCL that block know neither deadlines nor the "
                    "end of a generation",
                    kBlocking, given));
  }
  ::setenv(kBlocking, "0", 1);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> nccl_environment(const NcclSituation& situation) {
  std::vector<std::pair<std::string, std::string>> settings = {{"NCCL_NVLS_ENABLE", "0"},
                                                               {"NCCL_SET_THREAD_NAME", "1"}};
  // Nobody outside this host shall be able to connect.
  if (situation.is_one_host) settings.emplace_back("NCCL_SOCKET_IFNAME", "=lo");
  // Always: NCCL reads it once, and a spare may come to share a device with a rank that had its own.
  const bool lets_ranks_share = situation.version >= kFirstWithRanksOnOneGpu;
  if (lets_ranks_share) settings.emplace_back("NCCL_MULTI_RANK_GPU_ENABLE", "1");
  if (!situation.shares_device) return settings;
  // All ranks' kernels must find room on the GPU.
  settings.emplace_back("NCCL_MAX_CTAS", "4");
  if (!lets_ranks_share) {
    settings.emplace_back("NCCL_HOSTID", situation.process_name);
    // Between such hosts a plugin or InfiniBand would be tried first.
    settings.emplace_back("NCCL_NET", "Socket");
  }
  return settings;
}

void set_nccl_environment(const NcclSituation& situation) {
  require_no_blocking();
  for (const auto& [name, value] : nccl_environment(situation)) ::setenv(name.c_str(), value.c_str(), 0);
}

}  // namespace holdfast
