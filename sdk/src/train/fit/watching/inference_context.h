#pragma once

// What evaluate() and predict() show their callbacks. docs/decisions/callbacks.md

#include <cstddef>
#include <cstdint>
#include <string>

#include "holdfast/base/error.h"
#include "train/fit/watching/call_context.h"

namespace holdfast {

class InferenceContext final : public CallContext {
 public:
  // `batches` are those of the data.
  InferenceContext(Training& training, std::size_t call, std::int64_t batches)
      : CallContext(training, call), batches_(batches) {}

  std::int64_t batches_per_epoch() const override { return batches_; }
  bool is_validated() const override { return false; }

  // Callbacks get this as const, so only a cast leads here.
  void stop_training() override { refuse(); }
  void save(const std::string&, const SaveOptions&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw Error(ErrorCode::unsupported,
                "a callback asked evaluate() or predict() for a savepoint or an end, which only fit() can give");
  }

  const std::int64_t batches_;
};

}  // namespace holdfast
