// Samples of a shuffle lie anywhere in memory. The processor notices a run of addresses only after some lines of a row,
// and rows of a few KB end soon after. So several rows are copied side by side, a line of each in turn: then several
// runs are on their way at once. The rows after them are asked for meanwhile. docs/decisions/loading.md

#include "data/batches/gathered_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace holdfast {
namespace {

constexpr std::size_t kFloatsOfLine = 64 / sizeof(float);
// The processor finds the rest of a longer row by itself, and asking for it would only cost time.
constexpr std::size_t kMostAskedFloats = 4096 / sizeof(float);
// With more, their lines drive each other out of the nearest cache: for rows of 3 KB, 4 and 6 were best; for rows of
// 12 KB, 4, and 16 took longer than 1 (AMD EPYC, 2026-11-29).
constexpr std::size_t kRowsTogether = 4;

// Where rows begin in an array.
using Rows = std::array<const float*, kRowsTogether>;

Rows rows_at(std::span<const float> array, const std::array<std::size_t, kRowsTogether>& positions, std::size_t words) {
  Rows rows{};
  for (std::size_t row = 0; row < kRowsTogether; ++row) rows[row] = array.data() + positions[row] * words;
  return rows;
}

void copy_row(const float* from, float* to, std::size_t words) {
  if (words > 0) std::memcpy(to, from, words * sizeof(float));
}

// Asks for the rows `next` meanwhile.
void copy_rows(const Rows& rows, const Rows& next, float* to, std::size_t words) {
  const bool is_asking = words <= kMostAskedFloats;
  std::size_t at = 0;
  for (; at + kFloatsOfLine <= words; at += kFloatsOfLine) {
    for (std::size_t row = 0; row < kRowsTogether; ++row) {
      if (is_asking) __builtin_prefetch(next[row] + at, 0, 2);
      // A size that the compiler knows, so that it makes no call.
      std::memcpy(to + row * words + at, rows[row] + at, kFloatsOfLine * sizeof(float));
    }
  }
  for (std::size_t row = 0; row < kRowsTogether; ++row) {
    if (is_asking) __builtin_prefetch(next[row] + at, 0, 2);
    copy_row(rows[row] + at, to + row * words + at, words - at);
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
  const auto position_of = [&](std::size_t i) {
    return static_cast<std::size_t>(last_.source_position(seed, epoch, first + static_cast<std::int64_t>(i)));
  };
  std::size_t sample = 0;
  std::array<std::size_t, kRowsTogether> positions{};
  std::array<std::size_t, kRowsTogether> next{};
  // Beyond the last sample, the last one stands for those that are missing: it is asked for once more.
  const auto find = [&](std::size_t begin) {
    for (std::size_t row = 0; row < kRowsTogether; ++row) next[row] = position_of(std::min(begin + row, count - 1));
  };
  if (count >= kRowsTogether) find(0);
  for (; sample + kRowsTogether <= count; sample += kRowsTogether) {
    positions = next;
    find(sample + kRowsTogether);
    copy_rows(rows_at(arrays_.features, positions, feature_words), rows_at(arrays_.features, next, feature_words),
              features.data() + sample * feature_words, feature_words);
    copy_rows(rows_at(arrays_.targets, positions, target_words), rows_at(arrays_.targets, next, target_words),
              targets.data() + sample * target_words, target_words);
  }
  for (; sample < count; ++sample) {
    const std::size_t position = position_of(sample);
    copy_row(arrays_.features.data() + position * feature_words, features.data() + sample * feature_words,
             feature_words);
    copy_row(arrays_.targets.data() + position * target_words, targets.data() + sample * target_words, target_words);
  }
}

}  // namespace holdfast
