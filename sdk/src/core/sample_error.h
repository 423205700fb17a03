#pragma once

// An error of one sample. The code that finds it counts the samples that it was given: those of a part of a batch, or
// rows of them. A caller that knows more about these samples catches it and says which one it is.

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

class SampleError : public Error {
 public:
  // `problem` is the rest of the sentence: "has the class label 12; ...".
  SampleError(std::int64_t sample, std::int64_t samples, const std::string& problem)
      : SampleError(fmt::format("sample {} of {}", sample, samples), sample, problem) {}

  std::int64_t sample() const { return sample_; }

  // The same error of sample `sample` of others, which `name` calls by its name: "sample 7 of the 64 of step 3".
  SampleError renamed(const std::string& name, std::int64_t sample) const { return {name, sample, problem_}; }
  // The same error at a position in its sample.
  SampleError at_position(std::int64_t position, std::int64_t sample, std::int64_t samples) const {
    return {sample, samples, fmt::format("at position {} {}", position, problem_)};
  }

 private:
  SampleError(const std::string& name, std::int64_t sample, const std::string& problem)
      : Error(ErrorCode::invalid_argument, fmt::format("{} {}", name, problem)), sample_(sample), problem_(problem) {}

  std::int64_t sample_;
  std::string problem_;
};

}  // namespace holdfast
