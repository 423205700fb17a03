#pragma once

// What a worker does in the background while it trains, as its life page says it.

#include <cstdint>

namespace holdfast::recovery {

struct BackgroundPulse {
  std::uint64_t number = 0;  // different for each piece of work; 0: no work
  std::uint64_t bytes = 0;   // that this piece of work reads or writes
  bool is_callback = false;  // it is a callback of the application
};

}  // namespace holdfast::recovery
