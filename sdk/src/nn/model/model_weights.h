#pragma once

// The weights that all copies of a model share.

#include <memory>
#include <mutex>
#include <vector>

namespace holdfast {

class ModelWeights {
 public:
  // Arenas of the model's layouts, padding included. They never change: a replacement is another object.
  struct Values {
    std::vector<float> parameters;
    std::vector<float> buffers;
  };

  // Null if there are none yet. Any thread may call all functions, and what it gets stays alive while it holds the
  // pointer.
  std::shared_ptr<const Values> values() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  // Throws Error{invalid_argument} if there are none.
  std::shared_ptr<const Values> values_or_error() const;
  void replace(Values values) {
    auto replacement = std::make_shared<const Values>(std::move(values));
    const std::lock_guard lock(mutex_);
    values_ = std::move(replacement);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Values> values_;  // guarded by mutex_
};

}  // namespace holdfast
