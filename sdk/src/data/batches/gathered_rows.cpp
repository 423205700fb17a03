// Samples of a shuffle lie anywhere in memory. The processor notices a run of addresses only after some lines of a row,
// and rows of a few KB end soon after. So each row is asked for while the rows before it are copied.
// docs/decisions/loading.md

#include "data/batches/gathered_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace holdfast {
namespace {

constexpr std::size_t kFloatsOfLine = 64 / sizeof(float);
// The processor finds the rest of a longer row by itself.
constexpr std::size_t kMostAskedFloats = 4096 / sizeof(float);
constexpr std::size_t kRowsAhead = 4;

void ask_for_row(const float* row, std::size_t floats) {
  for (std::size_t at = 0; at < std::min(floats, kMostAskedFloats); at += kFloatsOfLine) {
    __builtin_prefetch(row + at, 0, 2);
  }
}

}  // namespace

GatheredRows::GatheredRows(const Stage& last) : last_(last) {
  // A cache in a file is there to be read, and checked.
  if (last.source() != nullptr && !has_stage(last, StageKind::cache)) arrays_ = last.source()->arrays();
}

void GatheredRows::gather(std::uint64_t seed, std::int64_t epoch, std::int64_t first, std::span<float> features,
                          std::span<float> targets) const {
  const std::size_t feature_words = last_.feature_words();
  const std::size_t target_words = last_.target_words();
  const std::size_t count = feature_words > 0 ? features.size() / feature_words : targets.size() / target_words;
  std::array<std::size_t, kRowsAhead> positions{};  // of samples i to i + kRowsAhead - 1, by their remainder
  const auto find = [&](std::size_t i) {
    if (i >= count) return;
    const auto position =
        static_cast<std::size_t>(last_.source_position(seed, epoch, first + static_cast<std::int64_t>(i)));
    positions[i % kRowsAhead] = position;
    ask_for_row(arrays_.features.data() + position * feature_words, feature_words);
    ask_for_row(arrays_.targets.data() + position * target_words, target_words);
  };
  for (std::size_t i = 0; i < kRowsAhead; ++i) find(i);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t position = positions[i % kRowsAhead];
    std::ranges::copy(arrays_.features.subspan(position * feature_words, feature_words),
                      features.begin() + static_cast<std::ptrdiff_t>(i * feature_words));
    std::ranges::copy(arrays_.targets.subspan(position * target_words, target_words),
                      targets.begin() + static_cast<std::ptrdiff_t>(i * target_words));
    find(i + kRowsAhead);
  }
}

}  // namespace holdfast
