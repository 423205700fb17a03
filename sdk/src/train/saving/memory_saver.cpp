// A snapshot in memory costs a comparison of all replicas and a copy. On the host both are done at once; on a device
// the copy travels while training goes on. docs/decisions/device-copies.md

#include "train/saving/memory_saver.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <vector>

#include "holdfast/base/log.h"
#include "train/saving/callback_states.h"

namespace holdfast {

MemorySaver::MemorySaver(Training& training, Agreement& agreement, Saver& saver)
    : training_(training),
      agreement_(agreement),
      saver_(saver),
      schedule_(training.context->memory_snapshot_every),
      keeper_(training.supervision, training.context->now) {}

bool MemorySaver::is_due() {
  const bool is_writing = keeper_.is_busy();
  if (!is_writing) {
    // Counts the part of the last snapshot that was done while training went on.
    if (const auto times = keeper_.take_finished()) schedule_.written(times->begin, times->end);
  }
  return training_.is_primary() && schedule_.is_due(training_.state.step + 1, training_.context->now(), is_writing);
}

// The newest snapshot is the one of the highest step, and each Trainer of a run counts its own from 0.
std::int64_t MemorySaver::step_of_run() const {
  return training_.context->earlier_steps + training_.state.step;
}

void MemorySaver::keep() {
  if (!training_.is_supervised()) return;
  if (training_.trainable.memory().is_host()) return keep_hosts_state();
  keep_devices_state();
}

// Memory of rank 0's host is lost with that host.
bool MemorySaver::keeps_for_a_host() const {
  return training_.is_primary() || training_.context->keeps_for_its_host;
}

void MemorySaver::keep_hosts_state() {
  const auto now = [this] { return training_.context->now(); };
  const auto begin = now();
  agreement_.agree();
  if (!keeps_for_a_host()) return;
  training_.enter(TrainingPhase::saving);
  training_.runner->reach(FaultPoint::snapshot, training_.state.step);
  collect_callback_states(training_);
  const StateImage image = image_of(training_.state, training_.state_arrays());
  // Done once, so it is not counted as a cost of this snapshot.
  const auto prepared_from = now();
  training_.supervision.prepare_in_memory(image.size_bytes());
  const auto preparation = now() - prepared_from;
  const std::optional<Digest> copied = copy_to_memory(image, agreement_.agreed_digest());
  if (copied) agreement_.require_unchanged(*copied);
  schedule_.taken(begin + preparation, now());
}

// The head of several hosts may be lost for good. Then nobody asks for this state, and the agent saves what is in its
// memory. Nobody is there to compare the state with, as where a run has one replica.
void MemorySaver::keep_while_waiting() {
  MemorySpace& memory = training_.trainable.memory();
  if (!keeps_for_a_host() || !memory.is_host() || agreement_.is_doubtful()) return;
  try {
    collect_callback_states(training_);
    const StateImage image = image_of(training_.state, training_.state_arrays());
    const std::vector<bool> must_be_finite = agreement_.must_be_finite();
    for (std::size_t i = 0; i < must_be_finite.size(); ++i) {
      if (must_be_finite[i] && !memory.is_finite(image.arrays.at(i))) return;
    }
    if (!copy_to_memory(image, memory.digest_of(image.arrays))) return;
    log(LogLevel::info, fmt::format("replica: the state of step {} is kept in memory while no generation begins",
                                    training_.state.step));
  } catch (const std::exception& failure) {
    log(LogLevel::warning, fmt::format("the state of step {} could not be kept in memory while this replica waits: {}",
                                       training_.state.step, failure.what()));
  }
}

std::optional<Digest> MemorySaver::copy_to_memory(const StateImage& image, const Digest& expected) {
  std::optional<Digest> copied;
  const auto write = [&](std::size_t at, std::span<std::byte> piece) { image.copy(at, piece); };
  training_.supervision.keep_in_memory(step_of_run(), image.size_bytes(), write, [&](std::span<const std::byte> copy) {
    copied = digest(copy.subspan(image.header.size()));
    return *copied == expected;
  });
  return copied;
}

// The replicas compare the copy that is on its way to the host; what happens to the state meanwhile shows in the next
// comparison. A replica without peers waits neither for the digest nor for a check for NaN.
void MemorySaver::keep_devices_state() {
  // One copy is enough: all ranks have agreed on the same bits.
  if (!training_.is_primary()) return agreement_.agree();
  const std::int64_t step = training_.state.step;
  training_.enter(TrainingPhase::saving);
  keeper_.finish();
  const auto begin = training_.context->now();
  training_.runner->reach(FaultPoint::snapshot, step);
  collect_callback_states(training_);
  StateImage image = image_of(training_.state, training_.state_arrays());
  const std::shared_ptr<HeldArrays> held = saver_.hold(image.arrays);
  if (training_.context->size > 1 || agreement_.is_disputed()) agreement_.agree(held->digest());
  const auto preparation = keeper_.keep(
      {.step = step_of_run(), .image = std::move(image), .must_be_finite = agreement_.must_be_finite(), .held = held});
  schedule_.taken(begin + preparation, training_.context->now());
}

}  // namespace holdfast
