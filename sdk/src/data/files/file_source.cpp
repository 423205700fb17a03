// A source of arrays that stay in their files. Its description is that of the same arrays in memory, so that a run may
// go on with either.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/files/file_array.h"
#include "data/sources/array_description.h"
#include "data/stages/stage.h"
#include "holdfast/base/error.h"
#include "holdfast/data/array_files.h"

namespace holdfast {
namespace {

class FileArraysSource : public Stage {
 public:
  FileArraysSource(SampleLayouts layouts, std::int64_t size, std::vector<OpenFileArray> inputs,
                   std::vector<OpenFileArray> targets)
      : Stage(std::move(layouts), size, 0), inputs_(std::move(inputs)), targets_(std::move(targets)) {
    for (const std::vector<OpenFileArray>* arrays : {&inputs_, &targets_}) {
      for (const OpenFileArray& array : *arrays) digests_.push_back(array.digest().hex());
    }
  }

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override {
    load_row(layouts().inputs, inputs_, position, destination.features);
    load_targets(seed, epoch, position, destination.targets);
    check_integers(layouts(), destination, position);
  }
  void load_targets(std::uint64_t, std::int64_t, std::int64_t position, std::span<float> targets) const override {
    load_row(layouts().targets, targets_, position, targets);
  }
  const Stage* source() const override { return this; }
  std::int64_t source_position(std::uint64_t, std::int64_t, std::int64_t position) const override { return position; }
  StageKind kind() const override { return StageKind::source; }
  std::string content() const override { return content_of_arrays(size(), digests_); }
  void describe(nlohmann::ordered_json& stages) const override { stages.push_back(description_of_arrays(digests_)); }

 private:
  static void load_row(const RowLayout& layout, const std::vector<OpenFileArray>& arrays, std::int64_t position,
                       std::span<float> row) {
    // Words that belong to no element are zero, so that equal samples have equal rows.
    std::ranges::fill(row, 0.0F);
    const ArrayRow to(layout, row);
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].read(position, 1, to.bytes(i));
  }

  std::vector<OpenFileArray> inputs_;
  std::vector<OpenFileArray> targets_;
  std::vector<std::string> digests_;
};

// Opens the arrays of one role. The first input decides how many samples there are.
RowLayout open_arrays(const std::vector<FileArray>& given, std::optional<std::int64_t>& samples,
                      std::vector<OpenFileArray>& opened) {
  std::vector<ArraySpec> specs;
  for (const FileArray& each : given) {
    opened.emplace_back(posix_file_system(), each);
    const OpenFileArray& array = opened.back();
    if (array.shape().rank() > 0 && !samples) samples = array.shape()[0];
    if (array.shape().rank() == 0 || array.shape()[0] != *samples || *samples == 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} has the shape {}; the first axis of all arrays of a data set counts samples, and the "
                              "first input has {} of them",
                              array.label(), array.shape().to_string(), samples.value_or(0)));
    }
    specs.push_back({.name = each.name.empty() ? each.array : each.name,
                     .shape = array.shape().without_batch(),
                     .dtype = array.dtype()});
  }
  return RowLayout(std::move(specs));
}

}  // namespace

Dataset from_files(const std::vector<FileArray>& inputs, const std::vector<FileArray>& targets) {
  if (inputs.empty()) throw Error(ErrorCode::invalid_argument, "from_files() needs at least one input");
  std::optional<std::int64_t> samples;
  std::vector<OpenFileArray> opened_inputs;
  std::vector<OpenFileArray> opened_targets;
  RowLayout input_layout = open_arrays(inputs, samples, opened_inputs);
  RowLayout target_layout = open_arrays(targets, samples, opened_targets);
  return Dataset(std::make_shared<FileArraysSource>(
      SampleLayouts{.inputs = std::move(input_layout), .targets = std::move(target_layout)}, *samples,
      std::move(opened_inputs), std::move(opened_targets)));
}

}  // namespace holdfast
