#pragma once

#include <cstdint>

namespace holdfast::recovery {

// What a worker does in the background, while it trains.
struct BackgroundPulse {
  std::uint64_t number = 0;  // each piece of work has another number; 0: no work
  std::uint64_t bytes = 0;   // that this has to get to the storage or from there
  bool is_callback = false;  // of the application
};

}  // namespace holdfast::recovery
