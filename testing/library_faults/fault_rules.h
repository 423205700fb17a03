#pragma once

// Rules that say which calls of a library go wrong, and how. Rules are separated by semicolons, and their parts by
// commas:
//
//   function=ncclAllGather,call=12,fault=hang
//
//   function      the name of a function, or * for all functions
//   rank          only calls with a communicator of this rank. CUDA's calls have no communicator; for them, only calls
//                 of the process that was started as this rank (HOLDFAST_RANK, or else RANK)
//   call          only this call of the function, counted from 1 for each rank
//   from          this call and all later ones
//   fault         hang:   the call does not return
//                 fail:   it returns `result` and does nothing (with CUDA, the call is made first)
//                 slow:   it takes `milliseconds` longer
//                 report: ncclCommGetAsyncError reports the error `result`
//                 trap:   CUDA only; a kernel of the process traps before the call
//                 spin:   CUDA only; a kernel that does not end begins in the same stream before the call
//   result        a number of ncclResult_t or cudaError_t; by default an internal error (NCCL), or an unknown error
//   (CUDA) milliseconds  1000 by default once          a file. The first process that creates it has the fault;
//   processes that replace it do not.

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::resilience {

struct LibraryFault {
  enum class Kind { hang, fail, slow, report, trap, spin };

  std::string function;
  std::optional<int> rank{};
  int first_call = 1;
  std::optional<int> last_call{};
  Kind kind = Kind::fail;
  std::optional<int> result{};
  std::chrono::milliseconds delay{1000};
  std::string once{};
};

class LibraryFaults {
 public:
  // Throws std::invalid_argument with a sentence that names the part that is wrong.
  explicit LibraryFaults(const std::string& rules);

  // Counts a call, and returns the fault that is due in it. The first rule that matches decides. `rank` is -1 for a
  // call without a communicator. Thread-safe.
  std::optional<LibraryFault> enter(const std::string& function, int rank);

 private:
  const std::vector<LibraryFault> faults_;

  std::mutex mutex_;
  std::map<std::pair<std::string, int>, int> calls_;  // guarded by mutex_
};

// The value of an environment variable, or `otherwise` if it is not set.
std::string variable(const char* name, const char* otherwise);

// The rank as which this process was started, from its environment; -1 if that has none. Throws std::invalid_argument
// when the value is not a number.
int started_rank();

// The name in rules of a function that CUPTI reports. CUPTI adds "_ptsz" in a program that has a default stream for
// each thread, and reports "__cudaLaunchKernel" for <<<>>> since CUDA 13.
std::string plain_name(const std::string& reported);

}  // namespace holdfast::resilience
