#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/stages/stage.h"
#include "data/stages/user_function.h"
#include "holdfast/base/error.h"
#include "holdfast/data/source.h"

namespace holdfast {
namespace {

Error refused_source(const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("from_source(): {}", reason));
}

class FunctionSource : public SourceStage {
 public:
  FunctionSource(SampleLayouts layouts, std::int64_t size, std::string content, SampleFunction function)
      : SourceStage(std::move(layouts), size), content_(std::move(content)), function_(std::move(function)) {}

  // The user's function gets no seed and no epoch, since a source has one sample for each position. Any thread calls
  // it, several at once.
  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    // The function may leave words out. They must not hold what another sample left there.
    std::ranges::fill(destination.features, 0.0F);
    std::ranges::fill(destination.targets, 0.0F);
    const SampleArrays sample{.inputs = {layouts().inputs, destination.features},
                              .targets = {layouts().targets, destination.targets}};
    call_for_sample([&] { return fmt::format("sample {}", position); }, "from_source()", {},
                    [&] { function_(position, sample); });
    check_integers(layouts(), destination, position);
  }
  std::string content() const override { return fmt::format("source {} {}", size(), content_); }
  void describe(nlohmann::ordered_json& stages) const override {
    stages.push_back({{"kind", "source"}, {"content", content_}});
  }

 private:
  std::string content_;
  SampleFunction function_;
};

}  // namespace

Dataset from_source(SourceOptions options, SampleFunction function) {
  if (options.size < 1) throw refused_source(fmt::format("needs one sample or more, not {}", options.size));
  if (options.inputs.empty()) throw refused_source("needs at least one input");
  // No code can tell what a function will return. The application must, or a resume could train on other samples.
  if (options.content.empty()) {
    throw refused_source(
        "needs a `content`, a text that changes with the samples; else a run would resume with others");
  }
  if (!function) throw refused_source("was given an empty function");
  SampleLayouts layouts{.inputs = RowLayout(std::move(options.inputs)),
                        .targets = RowLayout(std::move(options.targets))};
  return Dataset(std::make_shared<FunctionSource>(std::move(layouts), options.size, std::move(options.content),
                                                  std::move(function)));
}

}  // namespace holdfast
