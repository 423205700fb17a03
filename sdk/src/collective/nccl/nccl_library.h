#pragma once

// The NCCL library of this machine, version 2.18 or newer. It is loaded when replicas on GPUs first connect, and asked
// for its version, which decides what is used of it. It is never unloaded, because calls that never returned may still
// run in it. See docs/decisions/nccl.md.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collective/nccl/nccl_abi.h"
#include "holdfast/base/shared_library.h"

namespace holdfast {

class NcclLibrary {
 public:
  // What HOLDFAST_NCCL names, or else "libnccl.so.2", which is also looked for in HOLDFAST_LIBRARY_PATH.
  static std::string default_path();
  // The library at default_path(), loaded by the first call and never unloaded. Any thread.
  static const std::shared_ptr<NcclLibrary>& instance();

  // Throws Error{unavailable} if the file cannot be loaded, lacks a function, or is older than 2.18.
  explicit NcclLibrary(const std::string& path);

  int version() const { return version_; }
  std::string version_text() const;  // "2.28.9"

  // Whether a process may abort a communicator from another thread and then connect again. Versions 2.28.3 to 2.28.8
  // crash when they connect again (release notes of NVIDIA's resiliency extension 0.5). Before 2.19 such an abort may
  // hang (nccl#992).
  bool survives_abort() const;

  // Declares that a call or a kernel does not end: this process cannot communicate any more and must be replaced.
  // `kept` is never freed, because freeing device memory would wait for the kernel. Any thread.
  void poison(std::shared_ptr<void> kept);
  bool is_poisoned() const { return is_poisoned_; }

  // "unhandled cuda error (1); last error: ..."; `comm` may be null.
  std::string describe(nccl::Result result, nccl::Comm* comm) const;

  // NCCL's functions, without the prefix "nccl".
  nccl::GetUniqueId get_unique_id = nullptr;
  nccl::CommInitRankConfig comm_init_rank_config = nullptr;
  nccl::CommGetAsyncError comm_get_async_error = nullptr;
  nccl::CommAbort comm_abort = nullptr;
  nccl::CommRevoke comm_revoke = nullptr;  // null before 2.28.7
  nccl::GroupStart group_start = nullptr;
  nccl::GroupEnd group_end = nullptr;
  nccl::Send send = nullptr;
  nccl::Recv recv = nullptr;
  nccl::AllGather all_gather = nullptr;
  nccl::AllReduce all_reduce = nullptr;
  nccl::Broadcast broadcast = nullptr;
  nccl::GetErrorString get_error_string = nullptr;
  nccl::GetLastError get_last_error = nullptr;

 private:
  template <class Function>
  void find(const char* name, Function& function);

  const SharedLibrary library_;
  const std::string path_;
  int version_ = 0;
  std::atomic<bool> is_poisoned_ = false;

  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> kept_;  // guarded by mutex_
};

}  // namespace holdfast
