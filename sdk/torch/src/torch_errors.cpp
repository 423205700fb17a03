#include "torch_errors.h"

#include <fmt/format.h>

namespace holdfast::torch {

// LibTorch has one class for all refusals. The word tells an operation without a deterministic form from a mistake in
// the module.
void refuse_as_torch(const char* what, const std::string& said) {
  const bool is_unsupported = said.find("deterministic") != std::string::npos;
  throw Error(
      is_unsupported ? ErrorCode::unsupported : ErrorCode::invalid_argument,
      fmt::format("LibTorch refused {} of the module: {}{}", what, said,
                  is_unsupported ? "; a run that repeats a step needs the same bits, so replace this operation" : ""));
}

}  // namespace holdfast::torch
