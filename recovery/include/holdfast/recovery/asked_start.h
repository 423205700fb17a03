#pragma once

// How a start of a run was asked for. run_start.h takes the run directory accordingly.

#include <string>

#include "holdfast/base/start.h"

namespace holdfast::recovery {

using holdfast::Start;

// How a start was asked for, and by what.
struct AskedStart {
  Start start = Start::resume;  // whether a run in the directory goes on, or gives way
  // Names the occasion of a fresh start. A start with the token of the directory's run resumes that run, because the
  // occasion is the same, as when a scheduler starts a job again. Empty: each start is another occasion.
  std::string token{};
  std::string asked_by{};  // for sentences; empty for the default
  // The program may begin further runs on the same occasion. Until end_fresh_start() the directory's record says that
  // the fresh start was interrupted. Needs a token.
  bool has_later_runs = false;
  // A later run of such a program: no line in the log says that it resumes.
  bool is_later_run = false;
};

}  // namespace holdfast::recovery
