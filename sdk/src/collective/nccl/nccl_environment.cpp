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

// This variable overrides Config::blocking. With 1, connecting would wait for peers that never come, whatever the
// deadline. It is set even if the user has not, because NCCL's configuration files fill in what the environment lacks.
void require_no_blocking() {
  const char* const given = std::getenv(kBlocking);
  // From the second generation on it is 0 already. Threads of NCCL may read the environment then, so it must not be
  // written.
  if (given != nullptr && std::string_view(given) == "0") return;
  if (given != nullptr) {
    log(LogLevel::warning,
        fmt::format("{}={} is ignored and set to 0: with blocking calls of NCCL, neither a deadline nor the end of a "
                    "generation would end a wait",
                    kBlocking, given));
  }
  ::setenv(kBlocking, "0", 1);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> nccl_environment(const NcclSituation& situation) {
  std::vector<std::pair<std::string, std::string>> settings = {{"NCCL_NVLS_ENABLE", "0"},
                                                               {"NCCL_SET_THREAD_NAME", "1"}};
  // No process outside of this host should be able to connect.
  if (situation.is_one_host) settings.emplace_back("NCCL_SOCKET_IFNAME", "=lo");
  // Always set, because NCCL reads it once and a spare may later share a device that one rank had for itself.
  const bool lets_ranks_share = situation.version >= kFirstWithRanksOnOneGpu;
  if (lets_ranks_share) settings.emplace_back("NCCL_MULTI_RANK_GPU_ENABLE", "1");
  if (!situation.shares_device) return settings;
  // The kernels of all ranks must fit on the GPU at once, since they wait for each other.
  settings.emplace_back("NCCL_MAX_CTAS", "4");
  if (!lets_ranks_share) {
    settings.emplace_back("NCCL_HOSTID", situation.process_name);
    // Between different hosts NCCL would try a plugin or InfiniBand first.
    settings.emplace_back("NCCL_NET", "Socket");
  }
  return settings;
}

void set_nccl_environment(const NcclSituation& situation) {
  require_no_blocking();
  for (const auto& [name, value] : nccl_environment(situation)) ::setenv(name.c_str(), value.c_str(), 0);
}

}  // namespace holdfast
