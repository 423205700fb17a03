// The pages of a device are protected except while a call of this library runs. So code that reads device memory on the
// host ends at once, instead of passing here and failing on a GPU. Copies of held arrays fill their targets with -1
// until they are finished, so that reading one too early shows. See docs/decisions/testing.md.

#include "pretended_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kRegionBytes = std::size_t{1} << 30;
constexpr std::size_t kAlignment = 4096;

std::atomic<int> repeated = 0;

}  // namespace

// Arrays in a second copy. begin_copy() delivers nothing before finish_copy(). Any thread, whatever the others do.
class PretendedMemory::Held final : public HeldArrays {
 public:
  // Arrays of `floats` floats together, beginning with the first one.
  Held(PretendedMemory& memory, std::vector<std::span<const float>> places, std::size_t floats, float* first)
      : memory_(memory), places_(std::move(places)), floats_(floats), first_(first) {}
  ~Held() override {
    const std::lock_guard lock(memory_.mutex_);
    memory_.free_places_.emplace(floats_, first_);
  }

  Digest digest() override {
    const Access access(memory_);
    return host_memory().digest_of(places_);
  }
  void begin_copy(std::span<const std::span<float>> to) override {
    to_.assign(to.begin(), to.end());
    for (const std::span<float> array : to_) std::fill(array.begin(), array.end(), -1.0F);
  }
  void finish_copy() override {
    const Access access(memory_);
    for (std::size_t i = 0; i < to_.size(); ++i) host_memory().copy(places_[i], to_[i]);
  }

 private:
  PretendedMemory& memory_;
  const std::vector<std::span<const float>> places_;
  const std::size_t floats_;
  float* const first_;
  std::vector<std::span<float>> to_;
};

PretendedMemory::PretendedMemory(int device) : device_(device) {
  void* const region = ::mmap(nullptr, kRegionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) throw system_error(errno, "mapping a pretended device's memory failed");
  region_ = static_cast<std::byte*>(region);
}

PretendedMemory::~PretendedMemory() {
  ::munmap(region_, kRegionBytes);
}

void PretendedMemory::protect(int protection) const {
  if (used_ == 0) return;
  if (::mprotect(region_, used_, protection) != 0) throw system_error(errno, "mprotect failed");
}

// Also if another thread has access, because memory may have been allocated meanwhile.
PretendedMemory::Access::Access(PretendedMemory& memory) : memory_(memory) {
  const std::lock_guard lock(memory_.mutex_);
  ++memory_.accesses_;
  memory_.protect(PROT_READ | PROT_WRITE);
}

PretendedMemory::Access::~Access() {
  const std::lock_guard lock(memory_.mutex_);
  if (--memory_.accesses_ == 0) memory_.protect(PROT_NONE);
}

void PretendedMemory::queue(std::function<void()> call) {
  if (recording_ != nullptr) return recording_->push_back(std::move(call));
  const Access access(*this);
  call();
}

// Records when asked for the second time, as a device does.
void PretendedMemory::repeat(std::span<const std::uint64_t> key, std::span<const std::function<void()>> parts,
                             const std::function<void(std::size_t)>& after_part) {
  require_no_recording();
  const char* const wish = std::getenv("HOLDFAST_CUDA_GRAPHS");
  const bool records = wish == nullptr || std::string_view(wish) != "off";
  bool is_new = true;
  std::vector<Calls>* recorded = nullptr;
  if (records) {
    const auto [entry, is_added] = recorded_.try_emplace({key.begin(), key.end()});
    is_new = is_added;
    recorded = &entry->second;
  }
  const bool is_recorded = recorded != nullptr && recorded->size() == parts.size();
  if (!is_new && !is_recorded) recorded->clear();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (is_new) {
      parts[part]();
    } else {
      if (!is_recorded) recorded->push_back(record(parts[part]));
      play((*recorded)[part]);
    }
    after_part(part);
  }
  if (!is_new) ++repeated;
}

void PretendedMemory::play(const Calls& calls) {
  const Access access(*this);
  for (const auto& call : calls) call();
}

int PretendedMemory::repeats() {
  return repeated;
}

PretendedMemory::Calls PretendedMemory::record(const std::function<void()>& queue) {
  Calls calls;
  recording_ = &calls;
  try {
    queue();
  } catch (...) {
    recording_ = nullptr;
    throw;
  }
  recording_ = nullptr;
  return calls;
}

void PretendedMemory::require_no_recording() const {
  HOLDFAST_ASSERT(recording_ == nullptr);
}

// Pages that were never written are zero.
std::shared_ptr<float[]> PretendedMemory::allocate(std::size_t floats) {
  require_no_recording();
  const std::size_t bytes = (floats * sizeof(float) + kAlignment) / kAlignment * kAlignment;
  if (bytes > kRegionBytes - used_) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{} has {} bytes left, and {} were asked for", device(), kRegionBytes - used_, bytes));
  }
  auto* const first = reinterpret_cast<float*>(region_ + used_);
  used_ += bytes;
  // A caller that has access gets it to the new pages, too.
  const std::lock_guard lock(mutex_);
  if (accesses_ > 0) protect(PROT_READ | PROT_WRITE);
  return {first, [](float*) {}};
}

void PretendedMemory::copy_to_host(std::span<const float> from, std::span<float> to) {
  require_no_recording();
  const Access access(*this);
  host_memory().copy(from, to);
}

void PretendedMemory::copy_from_host(std::span<const float> from, std::span<float> to) {
  copy_to_host(from, to);
}

void PretendedMemory::copy(std::span<const float> from, std::span<float> to) {
  queue([from, to] { host_memory().copy(from, to); });
}

void PretendedMemory::gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) {
  queue([from, numbers = std::vector(rows.begin(), rows.end()), to] { host_memory().gather(from, numbers, to); });
}

// Copies at once, into two alternating buffers: code that reads a buffer too late reads the next rows.
class PretendedMemory::Feed final : public RowFeed {
 public:
  Feed(PretendedMemory& memory, std::span<const float> from, std::size_t row_floats)
      : memory_(memory), from_(from), row_floats_(row_floats) {}

  void begin(std::span<const std::int64_t> rows) override {
    HOLDFAST_ASSERT(begun_ - taken_ < places_.size());
    Place& place = places_[begun_++ % places_.size()];
    const std::size_t floats = rows.size() * row_floats_;
    if (floats > place.room) {
      place.memory = memory_.allocate(floats);
      place.room = floats;
    }
    place.floats = floats;
    const Access access(memory_);
    host_memory().gather(from_, rows, {place.memory.get(), floats});
  }
  std::span<const float> take() override {
    HOLDFAST_ASSERT(taken_ < begun_);
    const Place& place = places_[taken_++ % places_.size()];
    return {place.memory.get(), place.floats};
  }

 private:
  struct Place {
    std::shared_ptr<float[]> memory;
    std::size_t room = 0;
    std::size_t floats = 0;
  };

  PretendedMemory& memory_;
  const std::span<const float> from_;
  const std::size_t row_floats_;
  std::array<Place, 2> places_;
  std::size_t begun_ = 0;
  std::size_t taken_ = 0;
};

std::unique_ptr<RowFeed> PretendedMemory::feed(std::span<const float> from, std::size_t row_floats) {
  return std::make_unique<Feed>(*this, from, row_floats);
}

void PretendedMemory::add(std::span<const float> summand, std::span<float> sum) {
  queue([summand, sum] { host_memory().add(summand, sum); });
}

bool PretendedMemory::is_finite(std::span<const float> array) {
  require_no_recording();
  const Access access(*this);
  return host_memory().is_finite(array);
}

void PretendedMemory::fill_zero(std::span<float> array) {
  queue([array] { host_memory().fill_zero(array); });
}

Digest PretendedMemory::digest_of(std::span<const std::span<const float>> arrays) {
  require_no_recording();
  const Access access(*this);
  return host_memory().digest_of(arrays);
}

std::unique_ptr<HeldArrays> PretendedMemory::hold(std::span<const std::span<const float>> arrays) {
  std::size_t floats = 0;
  for (const std::span<const float> array : arrays) floats += array.size();
  float* const place = place_of(floats);
  std::vector<std::span<const float>> places;
  float* next = place;
  for (const std::span<const float> array : arrays) {
    copy(array, {next, array.size()});
    places.emplace_back(next, array.size());
    next += array.size();
  }
  return std::make_unique<Held>(*this, std::move(places), floats, place);
}

float* PretendedMemory::place_of(std::size_t floats) {
  {
    const std::lock_guard lock(mutex_);
    const auto free = free_places_.find(floats);
    if (free != free_places_.end()) {
      float* const place = free->second;
      free_places_.erase(free);
      return place;
    }
  }
  return allocate(floats).get();
}

}  // namespace holdfast
