// Digests are compared, which costs one message. Only where they differ do texts travel, so that each rank can say what
// differs: whichever report the watchdog sees first ends the run. They travel in small pieces, since the blocks of a
// communicator are as large as the model, and it is the model that may differ.

#include "train/agreement/same_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "train/state/json_differences.h"

namespace holdfast {
namespace {

constexpr std::size_t kPieceBytes = 64;
constexpr std::size_t kShownDifferences = 3;
constexpr std::size_t kShownBytes = 80;  // of a value

template <class T>
std::vector<T> gathered(Training& training, const T& own) {
  std::vector<T> all(static_cast<std::size_t>(training.context->size));
  training.runner->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                             training.runner->deadline());
  return all;
}

// The text of each rank.
std::vector<std::string> gathered_texts(Training& training, const std::string& own) {
  const std::vector<std::uint64_t> sizes = gathered(training, static_cast<std::uint64_t>(own.size()));
  const std::uint64_t longest = *std::ranges::max_element(sizes);
  std::vector<std::string> texts(sizes.size());
  for (std::size_t at = 0; at < longest; at += kPieceBytes) {
    std::array<char, kPieceBytes> piece{};
    if (at < own.size()) own.copy(piece.data(), piece.size(), at);
    const auto pieces = gathered(training, piece);
    for (std::size_t rank = 0; rank < texts.size(); ++rank) texts[rank].append(pieces[rank].data(), kPieceBytes);
  }
  for (std::size_t rank = 0; rank < texts.size(); ++rank) texts[rank].resize(sizes[rank]);
  return texts;
}

std::string shortened(const std::string& value) {
  return value.size() <= kShownBytes ? value : value.substr(0, kShownBytes) + "...";
}

}  // namespace

void require_same_program(Training& training, const std::string& what, const std::string& own) {
  if (training.context->size == 1) return;
  training.enter(TrainingPhase::waiting_for_peers);
  const std::vector<Digest> digests = gathered(training, digest(std::as_bytes(std::span(own))));
  const auto other = std::ranges::find_if(digests, [&](const Digest& digest) { return digest != digests.front(); });
  if (other == digests.end()) return training.enter(TrainingPhase::callbacks);
  const std::vector<std::string> texts = gathered_texts(training, own);
  const auto rank = static_cast<std::size_t>(other - digests.begin());
  const std::vector<JsonDifference> differences =
      differences_of("", nlohmann::json::parse(texts.front()), nlohmann::json::parse(texts[rank], nullptr, false));
  std::vector<std::string> sentences;
  for (const JsonDifference& difference : differences) {
    if (sentences.size() == kShownDifferences) {
      sentences.push_back(fmt::format("and {} more", differences.size() - kShownDifferences));
      break;
    }
    // The path begins with a slash.
    sentences.push_back(fmt::format("{} is {} there and {} on replica 0", difference.path.substr(1),
                                    shortened(difference.second), shortened(difference.first)));
  }
  throw Error(
      ErrorCode::incompatible,
      fmt::format("replica {} runs {} with other choices than replica 0: {}. All replicas need the same model, options "
                  "and whole data set: each batch is cut into shards, and each replica computes its own of them, so "
                  "the program must not divide the data by rank",
                  rank, what, fmt::join(sentences, "; ")));
}

}  // namespace holdfast
