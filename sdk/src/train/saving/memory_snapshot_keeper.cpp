// The run may go on from a copy after this process is dead, so a copy must be right before it counts: what arrived on
// the host is digested there and compared with what the device held. That, and the check for NaN, happens on a thread
// of its own while training goes on. docs/decisions/device-copies.md

#include "train/saving/memory_snapshot_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast {
namespace {

// Where the image has its arrays: after its header, without gaps.
std::vector<std::span<float>> places_of(const StateImage& image, std::span<std::byte> bytes) {
  std::vector<std::span<float>> places;
  auto* next = reinterpret_cast<float*>(bytes.data() + image.header.size());
  for (const std::span<const float> array : image.arrays) {
    places.emplace_back(next, array.size());
    next += array.size();
  }
  return places;
}

// Buffers may hold anything, so only some arrays are looked at.
std::vector<std::span<const float>> finite_ones(const std::vector<std::span<float>>& places,
                                                const std::vector<bool>& must_be_finite) {
  std::vector<std::span<const float>> chosen;
  for (std::size_t i = 0; i < must_be_finite.size(); ++i) {
    if (must_be_finite[i]) chosen.emplace_back(places.at(i));
  }
  return chosen;
}

bool are_finite(const std::vector<std::span<const float>>& arrays, std::int64_t step) {
  const auto is_finite = [](std::span<const float> array) { return host_memory().is_finite(array); };
  if (std::all_of(arrays.begin(), arrays.end(), is_finite)) return true;
  log(LogLevel::warning,
      fmt::format("the state of step {} is not finite, so it is not kept in memory; the snapshot before it stays",
                  step));
  return false;
}

}  // namespace

// The thread writes to memory that is unpinned below.
MemorySnapshotKeeper::~MemorySnapshotKeeper() {
  if (work_.valid()) work_.wait();
  unpin();
}

MemorySnapshotKeeper::Clock::duration MemorySnapshotKeeper::keep(State state) {
  finish();
  const Clock::time_point begin = now_();
  const std::optional<OutlivingMemory> target = supervision_.begin_in_memory(state.step, state.image.size_bytes());
  if (!target) return {};
  pin(*target, state.image.memory);
  const Clock::duration preparation = now_() - begin;
  const std::size_t header_bytes = state.image.header.size();
  std::memcpy(target->bytes.data(), state.image.header.data(), header_bytes);
  const std::vector<std::span<float>> places = places_of(state.image, target->bytes);
  state.held->begin_copy(places);
  work_ = std::async(std::launch::async,
                     [held = std::move(state.held), target = *target, step = state.step, header_bytes,
                      finite = finite_ones(places, state.must_be_finite), now = now_, begin = now_()]() mutable {
                       held->finish_copy();
                       const Digest expected = held->digest();
                       // The device can hold the next state now.
                       held.reset();
                       Digest arrived;
                       target.keep([&](std::span<const std::byte> image) {
                         arrived = digest(image.subspan(header_bytes));
                         return arrived == expected && are_finite(finite, step);
                       });
                       require_arrived(step, expected, arrived);
                       return Times{begin, now()};
                     });
  return preparation;
}

// A device copies straight into registered memory. Registering takes as long as several copies, but only once.
void MemorySnapshotKeeper::pin(const OutlivingMemory& target, MemorySpace& memory) {
  // The same memory as for the last state.
  if (pinned_mapping_ == target.mapping) return;
  unpin();
  memory.pin(target.all);
  pinned_in_ = &memory;
  pinned_ = target.all;
  pinned_mapping_ = target.mapping;
}

// Called before the mapping goes. A failure is ignored: when the device fails, the process is about to end.
void MemorySnapshotKeeper::unpin() noexcept {
  try {
    if (pinned_in_ != nullptr) pinned_in_->unpin(pinned_);
  } catch (const Error&) {
  }
  pinned_in_ = nullptr;
  pinned_mapping_.reset();
}

bool MemorySnapshotKeeper::is_busy() const {
  return work_.valid() && work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

std::optional<MemorySnapshotKeeper::Times> MemorySnapshotKeeper::take_finished() {
  if (!work_.valid() || is_busy()) return std::nullopt;
  return work_.get();
}

void MemorySnapshotKeeper::finish() {
  if (work_.valid()) work_.get();
}

}  // namespace holdfast
