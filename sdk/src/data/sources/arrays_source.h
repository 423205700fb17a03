#pragma once

// The frame of a source of several arrays, wherever they are: in memory or in files. Equal arrays give equal
// descriptions, so a run may go on with either.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {

class ArraysSource : public SourceStage {
 public:
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const final;
  void load_targets(std::uint64_t, std::int64_t, std::int64_t position, std::span<float> targets) const final {
    read_targets(position, targets);
  }
  std::string content() const final;
  void describe(nlohmann::ordered_json& stages) const final;

 protected:
  // `digests` are those of all inputs, then of all targets, in hexadecimal.
  ArraysSource(SampleLayouts layouts, std::int64_t size, std::vector<std::string> digests)
      : SourceStage(std::move(layouts), size), digests_(std::move(digests)) {}

  // Write one row each. Words that belong to no element become zero, so that equal samples have equal rows.
  virtual void read_inputs(std::int64_t position, std::span<float> row) const = 0;
  virtual void read_targets(std::int64_t position, std::span<float> row) const = 0;

 private:
  std::vector<std::string> digests_;
};

}  // namespace holdfast
