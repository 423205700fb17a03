#pragma once

// NCCL as this machine has it, from version 2.18 on: loaded when replicas on GPUs meet, asked for its version, and used
// for what that version can. It stays loaded, for calls that never came back are still in it.

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
  // "libnccl.so.2", which HOLDFAST_LIBRARY_PATH may have, or what HOLDFAST_NCCL names.
  static std::string default_path();
  // The library at default_path(), loaded by the first call and never given back. Any thread.
  static const std::shared_ptr<NcclLibrary>& instance();

  // Throws Error{unavailable}: the file cannot be loaded, lacks a function, or is older than 2.18.
  explicit NcclLibrary(const std::string& path);

  int version() const { return version_; }
  std::string version_text() const;  // "2.28.9"

  // Whether a process may abort a communicator, from another thread, and make another one. Versions 2.28.3 to 2.28.8
  // crash then (release notes of NVIDIA's resiliency extension 0.5); before 2.19 such an abort may hang (nccl#992).
  bool survives_abort() const;

  // A call, or a kernel, that does not end: this process can communicate no more and must be replaced. `kept` lives as
  // long as the library: freeing device memory would wait for the kernel. Any thread.
  void give_up(std::shared_ptr<void> kept);
  bool was_given_up() const { return was_given_up_; }

  // "unhandled cuda error (1); last error: ..."; `comm` may be null.
  std::string describe(nccl::Result result, nccl::Comm* comm) const;

  // NCCL's functions by their names, without "nccl".
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
  std::atomic<bool> was_given_up_ = false;

  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> kept_;  // guarded by mutex_
};

}  // namespace holdfast
