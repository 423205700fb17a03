#pragma once

#include <cstdint>
#include <string>

#include "holdfast/holdfast.h"

struct WriterOptions {
  std::int64_t length;  // of the samples of the model
  float temperature;    // 0: always the likeliest id; 1: as likely as the model says
  std::uint64_t seed;   // of the draws
};

// Writes text with the model of a Trainer, one id after the other. Both must outlive it.
class Writer {
 public:
  Writer(holdfast::Trainer& trainer, const holdfast::TextEncoder& encoder, const WriterOptions& options)
      : trainer_(trainer), encoder_(encoder), options_(options) {}

  // The beginning of `text`, a quarter of a sample, and then so many ids of the model.
  std::string continued(const holdfast::Text& text, std::int64_t count) const;

 private:
  // What follows, where the model sees as many of the last ids as its samples have.
  std::int32_t next_id(const std::vector<std::int32_t>& ids) const;
  std::int32_t chosen(std::span<const float> scores, std::size_t position) const;
  // The place of one of the scores.
  std::size_t drawn(std::span<const float> scores, std::size_t position) const;

  holdfast::Trainer& trainer_;
  const holdfast::TextEncoder& encoder_;
  WriterOptions options_;
};
