// What the head reads of an agent: frames that come in pieces, and the introduction in them.

#include <algorithm>

#include "fuzz_input.h"
#include "hosts/frames.h"
#include "hosts/introduction.h"

using namespace holdfast;
using namespace holdfast::recovery;

// The first byte says how long the pieces are.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::span<const std::byte> rest = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t piece = 1 + data[0];
  fuzz::succeeds([&] {
    FrameReader reader(kMostFirstFrameBytes);
    while (!rest.empty()) {
      reader.take(rest.first(std::min(piece, rest.size())));
      rest = rest.subspan(std::min(piece, rest.size()));
      while (const auto message = reader.next()) {
        fuzz::succeeds([&] {
          const Introduction introduction = parse_introduction(*message);
          // What was read can be written and compared.
          if (introduction.protocol == kHostsProtocol) {
            static_cast<void>(parse_introduction(introduction_message(introduction)));
          }
          static_cast<void>(difference({.hosts = 3}, introduction));
        });
      }
    }
  });
  return 0;
}
