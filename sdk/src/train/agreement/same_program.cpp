// Digests are compared, which costs one message. Only where they differ do texts travel, so that each rank can say what
// differs: whichever report the watchdog sees first ends the run. They travel in small pieces, since the blocks of a
// communicator are as large as the model, and it is the model that may differ.

#include "train/agreement/same_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/shown_text.h"
#include "train/state/json_differences.h"

namespace holdfast {
namespace {

constexpr std::size_t kTextPieceBytes = 64;
constexpr std::size_t kShownDifferences = 3;  // differences
constexpr std::size_t kShownValueBytes = 80;  // of a value

// T holds no pointers, since its bytes are what travels. The result is in the order of the ranks.
template <class T>
std::vector<T> gathered_of_ranks(Training& training, const T& own) {
  std::vector<T> all(static_cast<std::size_t>(training.context->size));
  training.runner->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                             training.runner->deadline());
  return all;
}

// The text of each rank.
std::vector<std::string> gathered_texts(Training& training, const std::string& own) {
  const std::vector<std::uint64_t> sizes = gathered_of_ranks(training, static_cast<std::uint64_t>(own.size()));
  const std::uint64_t longest = *std::ranges::max_element(sizes);
  std::vector<std::string> texts(sizes.size());
  // Each rank makes the rounds of the longest text: one that stopped earlier would let the others wait.
  for (std::size_t at = 0; at < longest; at += kTextPieceBytes) {
    std::array<char, kTextPieceBytes> piece{};
    if (at < own.size()) own.copy(piece.data(), piece.size(), at);
    const auto pieces = gathered_of_ranks(training, piece);
    for (std::size_t rank = 0; rank < texts.size(); ++rank) texts[rank].append(pieces[rank].data(), kTextPieceBytes);
  }
  for (std::size_t rank = 0; rank < texts.size(); ++rank) texts[rank].resize(sizes[rank]);
  return texts;
}

// What a rank has in place of what rank 0 has; both are the texts that they compared.
std::string what_differs(const std::string& first, const std::string& other) {
  const std::vector<JsonDifference> differences =
      differences_of("", nlohmann::json::parse(first, nullptr, false), nlohmann::json::parse(other, nullptr, false));
  std::vector<std::string> sentences;
  for (const JsonDifference& difference :
       std::span(differences).first(std::min(differences.size(), kShownDifferences))) {
    // The path begins with a slash.
    const std::string path = difference.path.substr(std::min<std::size_t>(difference.path.size(), 1));
    // Names of maps and layers of the program may hold any characters.
    sentences.push_back(fmt::format("{} is {} there and {} on replica 0", shown_text(path),
                                    shown_text(difference.second, kShownValueBytes),
                                    shown_text(difference.first, kShownValueBytes)));
  }
  if (differences.size() > kShownDifferences)
    sentences.push_back(fmt::format("and {} more", differences.size() - kShownDifferences));
  return fmt::format("{}", fmt::join(sentences, "; "));
}

// The first rank whose text is not that of rank 0, if there is one.
std::optional<std::size_t> first_that_differs(Training& training, const std::string& own) {
  // A rank alone has nobody to differ from.
  if (training.context->size == 1) return std::nullopt;
  training.enter(TrainingPhase::waiting_for_peers);
  const std::vector<Digest> digests = gathered_of_ranks(training, digest(std::as_bytes(std::span(own))));
  const auto other = std::ranges::find_if(digests, [&](const Digest& digest) { return digest != digests.front(); });
  if (other == digests.end()) return std::nullopt;
  return static_cast<std::size_t>(other - digests.begin());
}

}  // namespace

void require_same_program(Training& training, const std::string& what, const std::string& own) {
  const std::optional<std::size_t> rank = first_that_differs(training, own);
  if (!rank) return;
  const std::vector<std::string> texts = gathered_texts(training, own);
  throw Error(
      ErrorCode::incompatible,
      fmt::format("replica {} runs {} with other choices than replica 0: {}. All replicas need the same model, options "
                  "and whole data set: each batch is cut into shards, and each replica computes its own of them, so "
                  "the program must not divide the data by rank",
                  *rank, what, what_differs(texts.front(), texts[*rank])));
}

void require_same_arithmetic(Training& training) {
  const std::string own = training.trainable.arithmetic();
  const std::optional<std::size_t> rank = first_that_differs(training, own);
  if (!rank) return;
  const std::vector<std::string> texts = gathered_texts(training, own);
  const std::string sentence = fmt::format("replica {} computes with {}, and replica 0 with {}, which gives other bits",
                                           *rank, texts[*rank], texts.front());
  if (training.context->accept_other_arithmetic) {
    if (training.is_primary()) log(LogLevel::warning, fmt::format("{}; accepted", sentence));
    return;
  }
  throw Error(ErrorCode::incompatible,
              fmt::format("{}. Use hosts of one kind with the same release of Holdfast; where only the instruction set "
                          "differs, set ONEDNN_MAX_CPU_ISA to the smaller one on all hosts",
                          sentence));
}

}  // namespace holdfast
