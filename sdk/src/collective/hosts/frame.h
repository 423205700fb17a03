#pragma once

// What ranks of different hosts send each other: frames of a header and a body. The receiver knows which frame comes
// next from which peer, so the header only proves that the two agree. A frame of another generation, lane, sender or
// call, or of another size, is an error: a rank never guesses.
//
// Numbers have the byte order of the hosts, which is one in a run. A peer of the other order has a wrong magic number.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/base/error.h"

namespace holdfast {

enum class FrameKind : std::uint8_t {
  values = 1,  // a partial sum, on its way to the host that adds it
  sums = 2,    // a whole sum, on its way to all hosts
  small = 3,   // what a barrier or a gathering exchanges
  piece = 4,   // of a broadcast
};

// The fields of a header that differ from frame to frame.
struct Frame {
  FrameKind kind = FrameKind::small;
  bool is_finite = true;    // of sums: whether all that the sender has added so far is
  std::uint32_t index = 0;  // counts the frames of a kind in a call
  std::uint32_t bytes = 0;  // of the body
};

// The fields that say whose frames these are.
struct FrameOrigin {
  std::uint64_t generation = 0;  // rises with each generation of a run, also when the run goes on after a start
  int lane = 0;
  int host = 0;
  std::uint32_t call = 0;  // counts the collective calls of a generation
};

inline constexpr std::size_t kFrameHeaderBytes = 32;
using FrameHeader = std::array<std::byte, kFrameHeaderBytes>;

// What is wrong with a frame.
enum class FrameFault {
  garbage,           // not a frame at all
  other_generation,  // of another generation of the run
  other_lane,        // of another lane or host than this connection is for
  other_call,        // the peer makes another collective call
  other_content,     // another kind, place or size than the one that comes next
};
std::string_view to_string(FrameFault fault);

// A peer sent what this rank cannot use.
class FrameError : public Error {
 public:
  FrameError(FrameFault fault, const std::string& sentence) : Error(ErrorCode::input_output, sentence), fault_(fault) {}

  FrameFault fault() const { return fault_; }

 private:
  FrameFault fault_;
};

FrameHeader to_header(const FrameOrigin& origin, const Frame& frame);
// Throws FrameError if the header is not one of this origin. The sentence does not name the peer, which the caller
// does.
Frame from_header(const FrameHeader& header, const FrameOrigin& expected);

}  // namespace holdfast
