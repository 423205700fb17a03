#pragma once

// Which calls of a library go wrong, and how. Rules are separated by semicolons, their parts by commas:
//
//   function=ncclAllGather,call=12,fault=hang
//
//   function      its name, or * for all
//   rank          only calls about a communicator of this rank
//   call          only this call of the function, counted from 1 for each rank
//   from          this call and all later ones
//   fault         hang:   the call does not return
//                 fail:   it returns `result` and does nothing
//                 slow:   it takes so many `milliseconds` longer
//                 report: ncclCommGetAsyncError tells of the error `result`
//   result        a number of ncclResult_t; 3 (internal error) where it is not given
//   milliseconds  1000 where it is not given

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::resilience {

struct LibraryFault {
  enum class Kind { hang, fail, slow, report };

  std::string function;
  std::optional<int> rank{};
  int first_call = 1;
  std::optional<int> last_call{};
  Kind kind = Kind::fail;
  int result = 3;
  std::chrono::milliseconds delay{1000};
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

}  // namespace holdfast::resilience
