#pragma once

// Arrays that arrive when a test wants it, as from a device: late, with other values, or never.

#include <algorithm>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/core/memory_space.h"

namespace holdfast {

class HeldByATest final : public HeldArrays {
 public:
  explicit HeldByATest(std::vector<std::vector<float>> arrays) : arrays_(std::move(arrays)), digested_(arrays_) {}

  // What the host will get. digest() stays that of what the device held.
  void arrive_as(std::vector<std::vector<float>> arrays) { arrays_ = std::move(arrays); }
  void fail() { fails_ = true; }

  Digest digest() override {
    DigestBuilder builder;
    for (const auto& array : digested_) builder.update(std::as_bytes(std::span(array)));
    return builder.finish();
  }
  void begin_copy(std::span<const std::span<float>> to) override { to_.assign(to.begin(), to.end()); }
  void finish_copy() override {
    if (fails_) throw Error(ErrorCode::device_failed, "the device failed");
    for (std::size_t i = 0; i < to_.size(); ++i) std::copy(arrays_[i].begin(), arrays_[i].end(), to_[i].begin());
  }

 private:
  std::vector<std::vector<float>> arrays_;
  const std::vector<std::vector<float>> digested_;
  std::vector<std::span<float>> to_;
  bool fails_ = false;
};

}  // namespace holdfast
