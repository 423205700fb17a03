// A libnccl that forwards what Holdfast calls to the real library, and makes chosen calls go wrong. The program gets
// its name, and it gets its rules (fault_rules.h), from the environment:
//
//   HOLDFAST_NCCL=libholdfast_nccl_faults.so HOLDFAST_NCCL_FAULTS=function=ncclAllGather,call=12,fault=hang ./train
//
// The real library is libnccl.so.2, or the one that HOLDFAST_NCCL_REAL names. It is searched like Holdfast does it, in
// the folders of HOLDFAST_LIBRARY_PATH first. If it cannot be loaded, or a rule cannot be read, every call fails, and
// ncclGetErrorString says why. Types are those of NCCL's binary interface.

#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>

#include "fault_rules.h"
#include "holdfast/base/shared_library.h"

namespace {

using holdfast::resilience::LibraryFault;
using holdfast::resilience::LibraryFaults;
using holdfast::resilience::variable;

using Result = int;
constexpr Result kSuccess = 0;
constexpr Result kInternalError = 3;
constexpr Result kInProgress = 7;
constexpr int kNoRank = -1;

struct UniqueId {
  char bytes[128];
};

// The state of this library. It is never destroyed, since calls that hang may outlive everything else.
class Forwarder {
 public:
  Forwarder() {
    try {
      faults_ = std::make_unique<LibraryFaults>(variable("HOLDFAST_NCCL_FAULTS", ""));
      real_ = holdfast::SharedLibrary::load(variable("HOLDFAST_NCCL_REAL", "libnccl.so.2"));
    } catch (const std::exception& failure) {
      what_is_wrong_ = std::string("libholdfast_nccl_faults.so: ") + failure.what();
    }
  }

  const std::string& what_is_wrong() const { return what_is_wrong_; }
  LibraryFaults& faults() { return *faults_; }

  // Looked up at each call. Calls of NCCL take much longer than a lookup by the loader.
  template <class Function>
  Function find(const char* name) const {
    return real_ ? real_->find<std::remove_pointer_t<Function>>(name) : nullptr;
  }

  // NCCL's calls name a communicator and no rank, so ranks are noted when communicators are made.
  int rank_of(const void* comm) {
    const std::lock_guard lock(mutex_);
    const auto found = ranks_.find(comm);
    return found == ranks_.end() ? kNoRank : found->second;
  }
  void remember(const void* comm, int rank) {
    const std::lock_guard lock(mutex_);
    ranks_[comm] = rank;
  }

 private:
  std::string what_is_wrong_;
  std::unique_ptr<LibraryFaults> faults_;
  std::optional<holdfast::SharedLibrary> real_;

  std::mutex mutex_;
  std::map<const void*, int> ranks_;  // by communicator; guarded by mutex_
};

Forwarder& forwarder() {
  static Forwarder& only = *new Forwarder;
  return only;
}

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

template <class... Parameters, class... Arguments>
Result call_real(Result (*)(Parameters...), const char* name, Arguments... arguments) {
  const auto function = forwarder().find<Result (*)(Parameters...)>(name);
  return function == nullptr ? kInternalError : function(arguments...);
}

// `self` is the forwarding function itself, for its type.
template <class Self, class... Arguments>
Result forward(Self self, const char* name, int rank, Arguments... arguments) {
  if (!forwarder().what_is_wrong().empty()) return kInternalError;
  const std::optional<LibraryFault> fault = forwarder().faults().enter(name, rank);
  if (fault && fault->kind == LibraryFault::Kind::hang) hang();
  if (fault && fault->kind == LibraryFault::Kind::fail) return fault->result.value_or(kInternalError);
  if (fault && fault->kind == LibraryFault::Kind::slow) std::this_thread::sleep_for(fault->delay);
  return call_real(self, name, arguments...);
}

}  // namespace

extern "C" {

Result ncclGetVersion(int* version) {
  return forward(&ncclGetVersion, "ncclGetVersion", kNoRank, version);
}

Result ncclGetUniqueId(UniqueId* id) {
  return forward(&ncclGetUniqueId, "ncclGetUniqueId", kNoRank, id);
}

Result ncclCommInitRankConfig(void** comm, int ranks, UniqueId id, int rank, void* config) {
  const Result result = forward(&ncclCommInitRankConfig, "ncclCommInitRankConfig", rank, comm, ranks, id, rank, config);
  // A communicator that is made without blocking is in progress, and has its address already.
  if (result == kSuccess || result == kInProgress) forwarder().remember(*comm, rank);
  return result;
}

Result ncclCommGetAsyncError(void* comm, Result* error) {
  if (!forwarder().what_is_wrong().empty()) return kInternalError;
  const std::optional<LibraryFault> fault =
      forwarder().faults().enter("ncclCommGetAsyncError", forwarder().rank_of(comm));
  if (fault && fault->kind == LibraryFault::Kind::hang) hang();
  if (fault && fault->kind == LibraryFault::Kind::fail) return fault->result.value_or(kInternalError);
  if (fault && fault->kind == LibraryFault::Kind::slow) std::this_thread::sleep_for(fault->delay);
  const Result result = call_real(&ncclCommGetAsyncError, "ncclCommGetAsyncError", comm, error);
  if (fault && fault->kind == LibraryFault::Kind::report) *error = fault->result.value_or(kInternalError);
  return result;
}

Result ncclCommAbort(void* comm) {
  return forward(&ncclCommAbort, "ncclCommAbort", forwarder().rank_of(comm), comm);
}

Result ncclCommRevoke(void* comm, int flags) {
  return forward(&ncclCommRevoke, "ncclCommRevoke", forwarder().rank_of(comm), comm, flags);
}

Result ncclGroupStart() {
  return forward(&ncclGroupStart, "ncclGroupStart", kNoRank);
}

Result ncclGroupEnd() {
  return forward(&ncclGroupEnd, "ncclGroupEnd", kNoRank);
}

Result ncclSend(const void* from, std::size_t count, int type, int peer, void* comm, void* stream) {
  return forward(&ncclSend, "ncclSend", forwarder().rank_of(comm), from, count, type, peer, comm, stream);
}

Result ncclRecv(void* to, std::size_t count, int type, int peer, void* comm, void* stream) {
  return forward(&ncclRecv, "ncclRecv", forwarder().rank_of(comm), to, count, type, peer, comm, stream);
}

Result ncclAllGather(const void* from, void* to, std::size_t count, int type, void* comm, void* stream) {
  return forward(&ncclAllGather, "ncclAllGather", forwarder().rank_of(comm), from, to, count, type, comm, stream);
}

Result ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, void* comm, void* stream) {
  return forward(&ncclAllReduce, "ncclAllReduce", forwarder().rank_of(comm), from, to, count, type, operation, comm,
                 stream);
}

Result ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, void* comm, void* stream) {
  return forward(&ncclBroadcast, "ncclBroadcast", forwarder().rank_of(comm), from, to, count, type, root, comm, stream);
}

// Also says why nothing works: Holdfast asks for this text when a call has failed.
const char* ncclGetErrorString(Result result) {
  const std::string& wrong = forwarder().what_is_wrong();
  if (!wrong.empty()) return wrong.c_str();
  const auto function = forwarder().find<const char* (*)(Result)>("ncclGetErrorString");
  return function == nullptr ? "no text" : function(result);
}

const char* ncclGetLastError(void* comm) {
  const auto function = forwarder().find<const char* (*)(void*)>("ncclGetLastError");
  return function == nullptr ? "" : function(comm);
}
}
