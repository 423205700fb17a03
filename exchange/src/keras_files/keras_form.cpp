#include "holdfast/format/exchange/keras_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "holdfast/base/error.h"

namespace holdfast::format {

static constexpr std::array<std::string_view, 4> kFormNames = {"weights", "archive", "legacy_weights", "legacy_model"};

std::string_view name(KerasForm form) {
  return kFormNames[static_cast<std::size_t>(form)];
}

KerasForm keras_form_from_name(std::string_view name) {
  const auto found = std::find(kFormNames.begin(), kFormNames.end(), name);
  if (found != kFormNames.end()) return static_cast<KerasForm>(found - kFormNames.begin());
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("\"{}\" is not a form of Keras file; use weights, archive, legacy_weights or legacy_model", name));
}

}  // namespace holdfast::format
