#pragma once

// The error for a start that would compute other bits than the run in its directory, and what a user can do then.

#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// The run in the directory was started with other choices (options, model, data) than this program makes.
class OtherChoices : public Error {
 public:
  explicit OtherChoices(const std::string& what) : Error(ErrorCode::incompatible, what) {}
};

// The end of the error's sentence, after the earlier choices.
inline constexpr const char* kHowToStartAnew =
    "start anew with HOLDFAST_START=fresh in the environment (or SuperviseOptions::start, or --fresh of a program that "
    "has it), which keeps the earlier run under another name";

}  // namespace holdfast
