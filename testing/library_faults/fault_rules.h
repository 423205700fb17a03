#pragma once

// Which calls of a library go wrong, and how. Rules are separated by semicolons, their parts by commas:
//
//   function=ncclAllGather,call=12,fault=hang
//
//   function      its name, or * for all
//   rank          only calls about a communicator of this rank; where calls are about none, as those of CUDA, those
//                 of the process that was started as this rank (HOLDFAST_RANK, which replicas have, else RANK)
//   call          only this call of the function, counted from 1 for each rank
//   from          this call and all later ones
//   fault         hang:   the call does not return
//                 fail:   it returns `result` and does nothing
//                 slow:   it takes so many `milliseconds` longer
//                 report: ncclCommGetAsyncError tells of the error `result`
//                 trap:   before it, a kernel of the process traps; of CUDA only
//                 spin:   before it, in the same stream, a kernel begins that does not end; of CUDA only
//   result        a number of ncclResult_t or cudaError_t; where it is not given, that of an internal error of NCCL,
//   and
//                 an unknown one of CUDA
//   milliseconds  1000 where it is not given
//   once          a file: whoever is the first to create it has the fault, and no process that replaces it

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

  // Counts a call, and says what is due in it: of several rules, the first. `rank` is -1 where the call is about no
  // communicator. Any thread.
  std::optional<LibraryFault> enter(const std::string& function, int rank);

 private:
  const std::vector<LibraryFault> faults_;

  std::mutex mutex_;
  std::map<std::pair<std::string, int>, int> calls_;  // guarded by mutex_
};

// The rank that this process was started as; -1 where nobody said so. Throws std::invalid_argument where what was said
// is no number.
int started_rank();

// What rules call a function that CUPTI reports: "cudaMemcpyAsync_ptsz" where a program has a default stream for each
// thread, and "__cudaLaunchKernel" for <<<>>> since CUDA 13.
std::string plain_name(const std::string& reported);

}  // namespace holdfast::resilience
