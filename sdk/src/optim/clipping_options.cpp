// All optimizers have these three options. One rule refuses more than one of them: clipping twice is mostly a mistake.

#include "optim/clipping_options.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "holdfast/base/error.h"
#include "optim/check_option.h"

namespace holdfast {

// One table, so that the checks and the configuration name the options alike.
static std::array<std::pair<const char*, std::optional<float>>, 3> by_option(const GradientClipping& clipping) {
  return {{{"clip_value", clipping.value}, {"clip_norm", clipping.norm}, {"global_clip_norm", clipping.global_norm}}};
}

void check_clipping(const std::string& optimizer, const GradientClipping& clipping) {
  std::string given;
  for (const auto& [option, limit] : by_option(clipping)) {
    if (!limit) continue;
    check_option(optimizer, option, *limit, *limit > 0, "positive");
    if (!given.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} and {} exclude each other; gradients are clipped in one way, so set one of them",
                              optimizer, given, option));
    }
    given = option;
  }
}

void add_clipping(JsonObject& configuration, const GradientClipping& clipping) {
  for (const auto& [option, limit] : by_option(clipping)) {
    if (limit) configuration.number(option, *limit);
  }
}

}  // namespace holdfast
