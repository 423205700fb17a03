// These names are in run.json and in savepoints, so they never change.

#include "holdfast/train/reduction.h"

#include <fmt/format.h>

#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

std::string_view name(Reduction reduction) {
  return reduction == Reduction::shard_order ? "shard_order" : "fastest";
}

Reduction reduction_from_name(std::string_view text) {
  for (const Reduction reduction : {Reduction::shard_order, Reduction::fastest}) {
    if (name(reduction) == text) return reduction;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no reduction \"{}\"; use shard_order or fastest", text));
}

}  // namespace holdfast
