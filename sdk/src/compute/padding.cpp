#include "holdfast/compute/padding.h"

#include <fmt/format.h>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

std::string_view name(Padding padding) {
  return padding == Padding::valid ? "valid" : "same";
}

Padding padding_from_name(std::string_view text) {
  for (const Padding padding : {Padding::valid, Padding::same}) {
    if (name(padding) == text) return padding;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a padding; choose valid or same", text));
}

}  // namespace holdfast
