#pragma once

// The refusal of a start that would compute other bits than the run in its directory, and the way out.

#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// The run in the directory was started with other choices (options, model, data) than the program has.
class OtherChoices : public Error {
 public:
  explicit OtherChoices(const std::string& what) : Error(ErrorCode::incompatible, what) {}
};

// The end of such a sentence, where it has named the earlier choices.
inline constexpr const char* kHowToStartAnew =
    "start anew with HOLDFAST_START=fresh in the environment (or SuperviseOptions::start, or --fresh of a program that "
    "has it), which keeps the earlier run under another name";

}  // namespace holdfast
