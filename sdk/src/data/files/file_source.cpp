// A source of arrays that stay in their files. Its description is that of the same arrays in memory, so that a run may
// go on with either. docs/decisions/array-files.md

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/files/file_array.h"
#include "data/sources/arrays_source.h"
#include "holdfast/base/error.h"
#include "holdfast/data/array_files.h"

namespace holdfast {
namespace {

// Inputs come before targets, as in memory. A digest reads its whole array, once, when the data set is made.
std::vector<std::string> digests_of_files(const std::vector<OpenFileArray>& inputs,
                                          const std::vector<OpenFileArray>& targets) {
  std::vector<std::string> digests;
  for (const std::vector<OpenFileArray>* arrays : {&inputs, &targets}) {
    for (const OpenFileArray& array : *arrays) digests.push_back(array.digest().hex());
  }
  return digests;
}

class FileArraysSource : public ArraysSource {
 public:
  FileArraysSource(SampleLayouts layouts, std::int64_t size, std::vector<OpenFileArray> inputs,
                   std::vector<OpenFileArray> targets)
      : ArraysSource(std::move(layouts), size, digests_of_files(inputs, targets)),
        inputs_(std::move(inputs)),
        targets_(std::move(targets)) {}

  // The targets' file, since mistakes are seen in labels; without targets, that of the first input.
  std::string place(std::int64_t position) const override {
    return fmt::format("row {} of {}", position, (targets_.empty() ? inputs_ : targets_).front().label());
  }
  // The loader then says some samples ahead which ones it needs, see expect().
  bool reads_files() const override { return true; }
  void expect(std::uint64_t, std::int64_t, std::int64_t position) const override {
    for (const OpenFileArray& input : inputs_) input.expect(position);
    for (const OpenFileArray& target : targets_) target.expect(position);
  }

 private:
  void read_inputs(std::int64_t position, std::span<float> row) const override {
    read_arrays(layouts().inputs, inputs_, position, row);
  }
  void read_targets(std::int64_t position, std::span<float> row) const override {
    read_arrays(layouts().targets, targets_, position, row);
  }

  static void read_arrays(const RowLayout& layout, const std::vector<OpenFileArray>& arrays, std::int64_t position,
                          std::span<float> row) {
    // The last word of an array of small elements may have bytes that belong to none of them.
    std::ranges::fill(row, 0.0F);
    const ArrayRow to(layout, row);
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].read(position, 1, to.bytes(i));
  }

  std::vector<OpenFileArray> inputs_;
  std::vector<OpenFileArray> targets_;
};

// Opens the arrays of one role. The first input decides how many samples there are.
RowLayout open_arrays(const std::vector<FileArray>& given, std::optional<std::int64_t>& samples,
                      std::vector<OpenFileArray>& opened) {
  std::vector<ArraySpec> specs;
  for (const FileArray& each : given) {
    opened.emplace_back(posix_file_system(), each);
    const OpenFileArray& array = opened.back();
    // `samples` is shared by inputs and targets, so the first input decides for all of them.
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
