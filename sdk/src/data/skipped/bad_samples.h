#pragma once

// The samples of a stage that cannot be loaded: found by loading each one, or read from an index file.

#include <cstdint>
#include <string>
#include <vector>

#include "data/stages/stage.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

struct BadSamples {
  std::vector<std::uint32_t> positions;  // rising
  std::vector<std::string> reasons;      // of the first ones, at most SkippedSamples::kMostNamed
};

// Loads all samples of epoch 0 with seed 0. Throws Error{invalid_argument} soon after more than options.at_most are
// found, and the first exception in order that says nothing of a sample.
BadSamples find_bad_samples(const Stage& stage, const SkipBadOptions& options);

// The text of an index file: JSON with a digest of its content. `made_of` is text_of_samples().
std::string index_text(const BadSamples& bad, const std::string& made_of, std::int64_t samples);
// Reads it. `path` is for messages. Throws Error{incompatible} for an index of other samples, and Error{invalid_file}
// for a text that index_text() did not write, or that was changed.
BadSamples bad_samples_from_text(const std::string& text, const std::string& made_of, std::int64_t samples,
                                 const std::string& path);

}  // namespace holdfast
