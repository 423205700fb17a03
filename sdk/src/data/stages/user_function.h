#pragma once

// Calls of functions that an application gave to stages and sources. Such a function knows neither its stage nor the
// place of its sample in the data, so what it throws gets the names of both here.

#include <exception>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// An Error of a function for one sample: "sample 7 of the data set: the function of map() \"shift\" failed: ...".
class FailedFunction : public Error {
 public:
  FailedFunction(ErrorCode code, const std::string& sample, const std::string& problem)
      : Error(code, sample + " of the data set: " + problem), problem_(problem) {}

  // The sentence without the sample, for those who name it themselves.
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

// Within the handler of an exception of a function of `stage`, "map()", that the application called `name`, which may
// be empty. An Error becomes a FailedFunction of the same code. Another exception does not become an Error, as
// skip_bad() and the watchdog tell the two apart, and becomes a std::runtime_error. Both are nested:
// std::rethrow_if_nested() throws what the function threw.
[[noreturn]] void rethrow_for_sample(const std::string& sample, const char* stage, const std::string& name);

// Returns what `call` returns. `sample` gives the name of the sample, and is called after a failure alone.
template <class NameOfSample, class Call>
auto call_for_sample(const NameOfSample& sample, const char* stage, const std::string& name, const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    rethrow_for_sample(sample(), stage, name);
  }
}

}  // namespace holdfast
