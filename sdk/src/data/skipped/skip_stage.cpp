// The stage stands in the description even where it left out nothing: an index of another start may find samples that
// this one could not load, and such a resume must be refused. docs/decisions/stages.md

#include "data/skipped/skip_stage.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "data/kept/folder_lock.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/whole_file.h"

namespace holdfast {
namespace {

std::vector<std::uint32_t> positions_without(const std::vector<std::uint32_t>& bad, std::int64_t samples) {
  std::vector<std::uint32_t> kept;
  kept.reserve(static_cast<std::size_t>(samples) - bad.size());
  auto next = bad.begin();
  // 32 bits are enough and cannot wrap: check_options_of_skip() refuses more than 2^32 - 1 samples.
  for (std::uint32_t position = 0; position < samples; ++position) {
    if (next != bad.end() && *next == position) {
      ++next;
    } else {
      kept.push_back(position);
    }
  }
  HOLDFAST_ASSERT(!kept.empty() && next == bad.end());
  return kept;
}

// A stage before that loads a partner for each sample, for messages. Null if there is none.
const char* stage_with_partners(const Stage& before) {
  if (has_stage(before, StageKind::mixup)) return "mixup()";
  return has_stage(before, StageKind::cutmix) ? "cutmix()" : nullptr;
}

void check_options_of_skip(const Stage& before, const SkipBadOptions& options) {
  if (options.at_most < 1 || options.threads < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("skip_bad() of at most {} samples on {} threads: say how many samples may be bad, such as "
                            "{{.at_most = 100}}, and use one thread or more",
                            options.at_most, options.threads));
  }
  if (const char* mixing = mixing_stage(before)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("skip_bad() stands after {}, which brings other samples to the positions that are left out "
                            "in each epoch; put it before",
                            mixing));
  }
  // Only partners of epoch 0 would be found, and training would end where another epoch draws a bad one.
  if (const char* pairing = stage_with_partners(before)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("skip_bad() stands after {}, which draws other partners in each epoch, bad samples among "
                            "them; put it before",
                            pairing));
  }
  if (before.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("skip_bad() takes up to 4294967295 samples, not {}; use it on parts of them", before.size()));
  }
}

BadSamples bad_samples_of(const Stage& before, const SkipBadOptions& options) {
  FileSystem& files = posix_file_system();
  if (options.index.empty()) return find_bad_samples(before, options);
  const std::string made_of = text_of_samples(before);
  // One process of a host finds the samples, and the others read its index. Those of other hosts find them as well. If
  // they differ, the run is refused, since the description holds a digest of them.
  const std::unique_ptr<FolderLock> lock = lock_unless_there(files, options.index);
  if (files.exists(options.index)) {
    return bad_samples_from_text(read_text_file(files, options.index), made_of, before.size(), options.index);
  }
  BadSamples bad = find_bad_samples(before, options);
  const std::string text = index_text(bad, made_of, before.size());
  // Only a whole search is written, under its name in one step. After an error there is no index.
  write_whole_file(files, options.index, std::as_bytes(std::span(text)));
  return bad;
}

}  // namespace

SkipStage::SkipStage(const std::shared_ptr<const Stage>& before, const BadSamples& bad)
    : ChosenStage(before, positions_without(bad.positions, before->size())),
      skipped_{.count = static_cast<std::int64_t>(bad.positions.size()), .first = bad.reasons},
      digest_(digest(std::as_bytes(std::span(bad.positions))).hex()) {}

void SkipStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  // The digest is that of all positions, since the number alone may be equal where other samples were left out.
  stages.push_back({{"kind", "skip_bad"}, {"skipped", skipped_.count}, {"digest", digest_}});
}

Dataset Dataset::skip_bad(const SkipBadOptions& options) const {
  check_is_open("skip_bad");
  check_options_of_skip(*stage_, options);
  const BadSamples bad = bad_samples_of(*stage_, options);
  const auto count = static_cast<std::int64_t>(bad.positions.size());
  // An index may have been made with a larger limit.
  if (count > options.at_most || count == size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("skip_bad() finds {} of {} samples bad, and at_most allows {}; mend them, or allow more if "
                            "some are left. The first is {}",
                            count, size(), options.at_most, bad.reasons.empty() ? "unknown" : bad.reasons.front()));
  }
  return Dataset(std::make_shared<SkipStage>(stage_, bad));
}

SkippedSamples Dataset::skipped_samples() const {
  // Also what stages further up left out, see skipped_by().
  const Stage* const last = stage_.get();
  return skipped_by(std::span(&last, 1));
}

}  // namespace holdfast
