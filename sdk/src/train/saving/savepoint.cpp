#include "holdfast/train/savepoint.h"

#include "holdfast/base/error.h"

namespace holdfast {

std::string_view to_string(SavepointEvent::Kind kind) {
  switch (kind) {
    case SavepointEvent::Kind::started:
      return "started";
    case SavepointEvent::Kind::progress:
      return "progress";
    case SavepointEvent::Kind::durable:
      return "durable";
    case SavepointEvent::Kind::skipped:
      return "skipped";
    case SavepointEvent::Kind::waited:
      return "waited";
    case SavepointEvent::Kind::failed:
      return "failed";
    case SavepointEvent::Kind::compression_chosen:
      return "compression_chosen";
  }
  HOLDFAST_ASSERT(false);
}

std::string_view to_string(SavepointCompression compression) {
  switch (compression) {
    case SavepointCompression::fast:
      return "fast";
    case SavepointCompression::none:
      return "none";
    case SavepointCompression::zstd:
      return "zstd";
    case SavepointCompression::automatic:
      return "automatic";
  }
  HOLDFAST_ASSERT(false);
}

}  // namespace holdfast
