// The plain way to hold a state: it stays where it is, and training waits until it has been copied. Devices use it when
// their memory has no room for a second copy.

#include "core/held_in_place.h"

#include <utility>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// The digest is taken at once: after begin_copy() training may change the arrays.
class HeldInPlace final : public HeldArrays {
 public:
  HeldInPlace(MemorySpace& memory, std::span<const std::span<const float>> arrays, std::string why)
      : memory_(memory),
        arrays_(arrays.begin(), arrays.end()),
        digest_(memory.digest_of(arrays)),
        why_(std::move(why)) {}

  Digest digest() override { return digest_; }
  void begin_copy(std::span<const std::span<float>> to) override {
    HOLDFAST_ASSERT(to.size() == arrays_.size());
    for (std::size_t i = 0; i < to.size(); ++i) memory_.copy_to_host(arrays_[i], to[i]);
  }
  // begin_copy() has copied everything already.
  void finish_copy() override {}
  std::string obstacle() const override { return why_; }

 private:
  MemorySpace& memory_;
  const std::vector<std::span<const float>> arrays_;
  const Digest digest_;
  const std::string why_;
};

}  // namespace

std::unique_ptr<HeldArrays> hold_in_place(MemorySpace& memory, std::span<const std::span<const float>> arrays,
                                          std::string why) {
  return std::make_unique<HeldInPlace>(memory, arrays, std::move(why));
}

}  // namespace holdfast
