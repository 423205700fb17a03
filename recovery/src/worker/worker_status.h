#pragma once

// Which status of the C interface stands for an error of a worker.

#include "holdfast/base/error.h"
#include "holdfast/recovery/worker_c.h"

namespace holdfast::recovery {

// No `default`: the compiler names an error code that is missing here.
constexpr holdfast_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return HOLDFAST_INVALID_ARGUMENT;
    case ErrorCode::not_found:
      return HOLDFAST_NOT_FOUND;
    case ErrorCode::input_output:
    case ErrorCode::refused:
    case ErrorCode::disk_full:
      return HOLDFAST_INPUT_OUTPUT;
    case ErrorCode::out_of_memory:
      return HOLDFAST_OUT_OF_MEMORY;
    case ErrorCode::deadline_exceeded:
      return HOLDFAST_DEADLINE_EXCEEDED;
    case ErrorCode::cancelled:
      return HOLDFAST_CANCELLED;
    case ErrorCode::incompatible:
      return HOLDFAST_INCOMPATIBLE;
    case ErrorCode::unavailable:
      return HOLDFAST_UNAVAILABLE;
    case ErrorCode::unsupported:
      return HOLDFAST_UNSUPPORTED;
    // What a worker does not throw: it opens no files of arrays, owns no run directory, and computes nothing.
    case ErrorCode::invalid_file:
    case ErrorCode::already_running:
    case ErrorCode::device_failed:
    case ErrorCode::failed_replica:
    case ErrorCode::not_finite:
    case ErrorCode::diverged:
      return HOLDFAST_FAILED;
  }
  // Only a number that is not an enumerator comes here.
  return HOLDFAST_FAILED;
}

}  // namespace holdfast::recovery
