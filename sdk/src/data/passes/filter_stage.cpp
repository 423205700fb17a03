// The samples are found once, when the user writes the filter. A filter that decided at each load would not know how
// many samples an epoch has, nor which one is at a position. See docs/decisions/stages.md.

#include "data/passes/filter_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "data/passes/sample_index.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

std::vector<std::uint32_t> kept_positions(const Stage& before, const Dataset::FilterFunction& function,
                                          const FilterOptions& options) {
  if (!function) throw Error(ErrorCode::invalid_argument, "filter() was given an empty function");
  if (const char* mixing = mixing_stage(before)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("filter() stands after {}, which brings other samples to the positions that are kept in "
                            "each epoch; filter first, then shuffle",
                            mixing));
  }
  if (before.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("filter() takes up to 4294967295 samples, not {}; filter parts of them", before.size()));
  }
  // The function may change what it looks at, without effect.
  const std::vector<std::int64_t> answers =
      numbers_of_samples(before, {.stage = "filter()", .name = options.name, .index = options.index},
                         [&](const SampleArrays& sample) { return function(sample) ? 1 : 0; });
  std::vector<std::uint32_t> kept;
  for (std::size_t position = 0; position < answers.size(); ++position) {
    if (answers[position] != 0) kept.push_back(static_cast<std::uint32_t>(position));
  }
  if (kept.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("filter() keeps none of the {} samples; look at its function", before.size()));
  }
  return kept;
}

}  // namespace

FilterStage::FilterStage(const std::shared_ptr<const Stage>& before, const Dataset::FilterFunction& function,
                         FilterOptions options)
    : ChosenStage(before, kept_positions(*before, function, options)),
      name_(std::move(options.name)),
      digest_(digest(std::as_bytes(std::span(positions()))).hex()) {}

void FilterStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "filter"}, {"name", name_}, {"kept", size()}, {"digest", digest_}});
}

Dataset Dataset::filter(const FilterFunction& function, std::string name) const {
  return filter(function, FilterOptions{.name = std::move(name)});
}

Dataset Dataset::filter(const FilterFunction& function, FilterOptions options) const {
  check_is_open("filter");
  return Dataset(std::make_shared<FilterStage>(stage_, function, std::move(options)));
}

}  // namespace holdfast
