// NCCL is looked up at run time, so that one program works on machines with any NCCL from 2.18 on, and with none. Its
// symbols stay private: PyTorch in the same process may have loaded another version. See docs/decisions/nccl.md.

#include "collective/nccl/nccl_library.h"

#include <fmt/format.h>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr int kFirstWithRevoke = nccl::version_code(2, 28, 7);

Error unusable(const std::string& problem, const char* what_to_install = "NCCL 2.18 or newer") {
  return {ErrorCode::unavailable, fmt::format("{}; install {}, or set HOLDFAST_NCCL to the path of its libnccl.so.2",
                                              problem, what_to_install)};
}

// The library's own error names a file, but not what needs it.
SharedLibrary open(const std::string& path) {
  try {
    return SharedLibrary::load(path);
  } catch (const Error& error) {
    throw unusable(
        fmt::format("replicas on GPUs cannot connect, because NCCL cannot be loaded from {}: {}", path, error.what()));
  }
}

}  // namespace

std::string NcclLibrary::default_path() {
  const char* const given = std::getenv("HOLDFAST_NCCL");
  return given != nullptr && *given != '\0' ? given : "libnccl.so.2";
}

// Never destroyed: what lost kernels may still use must not be freed at the end of the process either.
const std::shared_ptr<NcclLibrary>& NcclLibrary::instance() {
  static const auto& library = *new std::shared_ptr<NcclLibrary>(std::make_shared<NcclLibrary>(default_path()));
  return library;
}

template <class Function>
void NcclLibrary::find(const char* name, Function& function) {
  function = library_.find<std::remove_pointer_t<Function>>(name);
  if (function != nullptr) return;
  throw unusable(fmt::format("NCCL at {} has no function {}", path_, name));
}

NcclLibrary::NcclLibrary(const std::string& path) : library_(open(path)), path_(library_.path()) {
  nccl::GetVersion get_version = nullptr;
  // The version first: an old library lacks functions, and its version is the better explanation.
  find("ncclGetVersion", get_version);
  find("ncclGetErrorString", get_error_string);
  find("ncclGetLastError", get_last_error);
  const nccl::Result asked = get_version(&version_);
  if (asked != nccl::Result::success) {
    throw unusable(fmt::format("asking NCCL at {} for its version failed: {}", path_, describe(asked, nullptr)));
  }
  if (version_ < nccl::kOldestVersion) {
    throw unusable(fmt::format("NCCL at {} is version {}, but Holdfast needs 2.18 or newer", path_, version_text()),
                   "that");
  }
  find("ncclGetUniqueId", get_unique_id);
  find("ncclCommInitRankConfig", comm_init_rank_config);
  find("ncclCommGetAsyncError", comm_get_async_error);
  find("ncclCommAbort", comm_abort);
  // Older libraries are used without it: an abort alone ends a connection, too.
  if (version_ >= kFirstWithRevoke) find("ncclCommRevoke", comm_revoke);
  find("ncclGroupStart", group_start);
  find("ncclGroupEnd", group_end);
  find("ncclSend", send);
  find("ncclRecv", recv);
  find("ncclAllGather", all_gather);
  find("ncclAllReduce", all_reduce);
  find("ncclBroadcast", broadcast);
}

std::string NcclLibrary::version_text() const {
  // Before 2.9 a version was a multiple of 1000, 100 and 1.
  if (version_ < 10'000) {
    return fmt::format("{}.{}.{}", version_ / 1000, version_ / 100 % 10, version_ % 100);
  }
  return fmt::format("{}.{}.{}", version_ / 10'000, version_ / 100 % 100, version_ % 100);
}

bool NcclLibrary::survives_abort() const {
  const bool crashes = version_ >= nccl::version_code(2, 28, 3) && version_ < nccl::version_code(2, 28, 9);
  return version_ >= nccl::version_code(2, 19, 0) && !crashes;
}

// The flag is read without the lock, at the start of each connection.
void NcclLibrary::poison(std::shared_ptr<void> kept) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(kept));
  is_poisoned_ = true;
}

std::string NcclLibrary::describe(nccl::Result result, nccl::Comm* comm) const {
  const char* const text = get_error_string(result);
  std::string sentence = fmt::format("{} ({})", text == nullptr ? "unknown result" : text, static_cast<int>(result));
  // The last error often names the call that failed.
  const char* const last = comm == nullptr ? nullptr : get_last_error(comm);
  if (last != nullptr && *last != '\0') sentence += fmt::format("; last error: {}", last);
  return sentence;
}

}  // namespace holdfast
