#include "holdfast/compute/padding.h"

#include <fmt/format.h>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// Configurations in savepoints have these names, so they never change.
std::string_view name(Padding padding) {
  switch (padding) {
    case Padding::valid:
      return "valid";
    case Padding::same:
      return "same";
    case Padding::causal:
      return "causal";
  }
  // Without a default case above, the compiler names the enumerator that is missing.
  HOLDFAST_ASSERT(false);
}

Padding padding_from_name(std::string_view text) {
  for (const Padding padding : {Padding::valid, Padding::same, Padding::causal}) {
    if (name(padding) == text) return padding;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a padding; choose valid, same or causal", text));
}

}  // namespace holdfast
