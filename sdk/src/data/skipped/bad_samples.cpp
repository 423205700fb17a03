// All samples are looked at before training, since the order of an epoch is a function of their number. A sample that
// was only found when it is due would change the batches of one rank and not of the others. docs/decisions/stages.md

#include "data/skipped/bad_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "core/first_failure.h"
#include "core/json_text.h"
#include "core/worker_pool.h"
#include "data/stages/user_function.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kIndexFormat = "holdfast bad samples";
// Raised with any other meaning of a member. An index of another version is refused: finding it anew only takes time.
constexpr int kIndexVersion = 1;

// Whether a failure of this kind belongs to the sample. A file system that fails, or memory that is short, would leave
// out samples that another rank or start can load.
bool tells_of_sample(ErrorCode code) {
  return code == ErrorCode::invalid_argument || code == ErrorCode::invalid_file || code == ErrorCode::not_found ||
         code == ErrorCode::unsupported || code == ErrorCode::not_finite;
}

// Samples that are looked at between two counts: the same for any number of threads, so that messages are the same.
constexpr std::int64_t kSamplesTogether = 1024;

// What is wrong with the samples [begin, begin + size of `reasons`).
void look_at(const Stage& stage, std::int64_t begin, WorkerPool& pool, std::span<std::optional<std::string>> reasons) {
  FirstFailure failure;
  pool.run(static_cast<int>(reasons.size()), [&](int, int task) {
    const auto i = static_cast<std::size_t>(task);
    if (failure.is_before(i)) return;
    // Each task has memory of its own, since tasks run at once and what they load is thrown away.
    std::vector<float> features(stage.feature_words());
    std::vector<float> targets(stage.target_words());
    try {
      stage.load(0, 0, begin + task, {.features = features, .targets = targets});
    } catch (const Error& error) {
      // Ends the search. FirstFailure keeps the one that is first in order, so the error does not depend on threads.
      if (!tells_of_sample(error.code())) return failure.note(i);
      const auto* const failed = dynamic_cast<const FailedFunction*>(&error);
      // The number of the sample comes before the reason.
      reasons[i] = failed == nullptr ? error.what() : failed->problem();
    } catch (...) {
      failure.note(i);
    }
  });
  failure.rethrow_if_there();
}

[[noreturn]] void refuse_index(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::invalid_file, fmt::format("skip_bad() read the index {}: {}; remove it, and it is made anew",
                                                   quoted_path(path), reason));
}

// Throws Json::exception for members that are missing or of another type. Positions are read as what they must be: the
// library would make one of any number, also of -1 or 1.5.
BadSamples bad_samples_from_json(const Json& content) {
  BadSamples bad{.positions = {}, .reasons = content.at("first").get<std::vector<std::string>>()};
  for (const Json& position : content.at("bad").get_ref<const Json::array_t&>()) {
    const std::uint64_t number = position.get_ref<const Json::number_unsigned_t&>();
    // No stage has a sample at this largest position, so is_possible() refuses it and all above it.
    constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();
    bad.positions.push_back(static_cast<std::uint32_t>(std::min(number, kLargest)));
  }
  return bad;
}

bool is_possible(const BadSamples& bad, std::int64_t samples) {
  const auto rises = [](std::uint32_t a, std::uint32_t b) { return a >= b; };
  return std::ranges::adjacent_find(bad.positions, rises) == bad.positions.end() &&
         (bad.positions.empty() || bad.positions.back() < samples) &&
         bad.reasons.size() == std::min(bad.positions.size(), SkippedSamples::kMostNamed);
}

std::string digest_of(const std::string& text) {
  return digest(std::as_bytes(std::span(text))).hex();
}

}  // namespace

BadSamples find_bad_samples(const Stage& stage, const SkipBadOptions& options) {
  WorkerPool pool(options.threads);
  BadSamples bad;
  std::vector<std::optional<std::string>> reasons;
  for (std::int64_t begin = 0; begin < stage.size(); begin += kSamplesTogether) {
    const std::int64_t count = std::min(kSamplesTogether, stage.size() - begin);
    reasons.assign(static_cast<std::size_t>(count), std::nullopt);
    look_at(stage, begin, pool, reasons);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::optional<std::string>& reason = reasons[static_cast<std::size_t>(i)];
      if (!reason) continue;
      bad.positions.push_back(static_cast<std::uint32_t>(begin + i));
      if (bad.reasons.size() < SkippedSamples::kMostNamed) {
        bad.reasons.push_back(fmt::format("sample {}: {}", begin + i, *reason));
      }
    }
    // After each group and not after each sample: which samples of a group were looked at depends on threads.
    if (std::cmp_greater(bad.positions.size(), options.at_most)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("skip_bad() found {} bad samples among the first {}, and at_most allows {}; mend them, or "
                      "allow more. The first is {}",
                      bad.positions.size(), begin + count, options.at_most, bad.reasons.front()));
    }
  }
  return bad;
}

// The content is a text of its own, so that its digest does not depend on how JSON is printed.
std::string index_text(const BadSamples& bad, const std::string& made_of, std::int64_t samples) {
  // `made_of` may be long and hold paths, so the index has a digest of it, which is all that a comparison needs.
  const OrderedJson content = {
      {"made_of", digest_of(made_of)}, {"samples", samples}, {"bad", bad.positions}, {"first", bad.reasons}};
  // Reasons quote names of files, which may hold any bytes.
  const std::string text = content.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  const OrderedJson index = {
      {"format", kIndexFormat}, {"version", kIndexVersion}, {"digest", digest_of(text)}, {"content", text}};
  return index.dump(1) + "\n";
}

BadSamples bad_samples_from_text(const std::string& text, const std::string& made_of, std::int64_t samples,
                                 const std::string& path) {
  BadSamples bad;
  try {
    if (is_deep_json(text)) refuse_index(path, "it is nested too deep");
    const Json index = Json::parse(text);
    if (index.at("format") != kIndexFormat) refuse_index(path, "it is not an index of bad samples");
    if (index.at("version") != kIndexVersion) refuse_index(path, "another version of Holdfast wrote it");
    const auto content_text = index.at("content").get<std::string>();
    if (index.at("digest") != digest_of(content_text)) refuse_index(path, "its digest is wrong, so it was changed");
    if (is_deep_json(content_text)) refuse_index(path, "its content is nested too deep");
    const Json content = Json::parse(content_text);
    // An index of other data is not damaged. It may belong to another run, so the message offers another name too.
    if (content.at("made_of") != digest_of(made_of) || content.at("samples") != samples) {
      throw Error(ErrorCode::incompatible,
                  fmt::format("skip_bad() read the index {}, which was made of other data; remove it, or name another "
                              "file",
                              quoted_path(path)));
    }
    bad = bad_samples_from_json(content);
  } catch (const Json::exception&) {
    refuse_index(path, "it is damaged");
  }
  // The digest was right, so such an index was written by another program. SkipStage asserts what is checked here.
  if (!is_possible(bad, samples)) refuse_index(path, "its samples cannot be right");
  return bad;
}

}  // namespace holdfast
