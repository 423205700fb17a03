#include "holdfast/train/savepoint.h"

#include <array>

namespace holdfast {

// Journals hold the names of events and compression.json those of compressions, so a name never changes. Both lists
// are in the order of their enumerators.
static constexpr std::array<std::string_view, 7> kEventNames = {"started", "progress", "durable",           "skipped",
                                                                "waited",  "failed",   "compression_chosen"};
static constexpr std::array<std::string_view, 4> kCompressionNames = {"fast", "none", "zstd", "automatic"};

std::string_view to_string(SavepointEvent::Kind kind) {
  return kEventNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(SavepointCompression compression) {
  return kCompressionNames.at(static_cast<std::size_t>(compression));
}

}  // namespace holdfast
