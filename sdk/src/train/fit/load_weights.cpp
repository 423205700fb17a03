// Other weights are another state, so loading them is a call of the run, as fit() is: a process that joins later gets
// them with the state, and a run that starts again after it loads them again. So it is where the averages become the
// weights: taking them twice is taking them once. docs/decisions/calls.md

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "train/fit/session.h"
#include "train/state/run_results.h"
#include "train/state/snapshot.h"
#include "train/step/model_trainable.h"

namespace holdfast {

void Trainer::Session::load_weights(const std::string& path, Weights weights) {
  Snapshot saved = read_model(training_.files, path);
  if (weights == Weights::averaged) use_averages(saved, path);
  const Digest digest = digest_of_weights(saved, training_.trainable, path);
  generation_.join();
  CallRecord begun;
  begun.kind = "load_weights";
  begun.epochs = 1;
  // The content and not the path: a resumed run that would load other weights is refused.
  begun.data = nlohmann::json{{"weights", digest.hex()}}.dump();
  const std::size_t call = join_call(begun);
  // In a Trainer that has ended, the arrays may still be those from before this call, although its record is there.
  if (is_repeated(call)) restore_weights(saved, training_.trainable, path);
  in_call(call, [&] { run_load_weights(call, begun, saved, path); });
  weights_of_model_ = Weights::trained;
  note_results(*training_.context, training_.state, training_.weights_digest());
}

void Trainer::Session::run_load_weights(std::size_t call, const CallRecord& begun, const Snapshot& saved,
                                        const std::string& path) {
  const Digest digest = digest_of_weights(saved, training_.trainable, path);
  while (!record_of(call).is_finished) {
    try {
      require_same_weights(digest, path);
      // Nothing in here waits for another rank. So a rank either has all of these weights or none, and a state that is
      // shared after a failure is never half of each.
      restore_weights(saved, training_.trainable, path);
      record_of(call).is_finished = true;
    } catch (const GenerationEnded&) {
      begin_next_generation(begun);
    } catch (const RollBack&) {
      generation_.give_up_state();
      begin_next_generation(begun);
    }
  }
}

// Each rank has read the file by itself, and it may have changed in between.
void Trainer::Session::require_same_weights(const Digest& digest, const std::string& path) {
  if (!training_.is_supervised()) return;
  training_.enter(TrainingPhase::waiting_for_peers);
  std::vector<Digest> all(static_cast<std::size_t>(training_.context->size));
  training_.runner->communicator().gather_all(std::as_bytes(std::span(&digest, 1)),
                                              std::as_writable_bytes(std::span(all)), training_.runner->deadline());
  training_.enter(TrainingPhase::callbacks);
  if (std::ranges::all_of(all, [&](const Digest& other) { return other == digest; })) return;
  throw Error(ErrorCode::incompatible,
              fmt::format("the replicas have read different weights from {}: it changed meanwhile, or each host has a "
                          "file of its own there; load a file that stays as it is",
                          path));
}

// By name: frozen parameters have no average.
static void copy_averages_to_weights(Trainable& trainable) {
  const std::string prefix = fmt::format("optimizer/{}/", kAverageSlot);
  const std::vector<StateSpan> spans = trainable.state();
  for (const StateSpan& average : spans) {
    if (!average.name.starts_with(prefix)) continue;
    const auto weight = std::ranges::find(spans, "model/" + average.name.substr(prefix.size()), &StateSpan::name);
    HOLDFAST_ASSERT(weight != spans.end());
    trainable.memory().copy(average.values, weight->values);
  }
}

// A Trainable of one's own chooses the names of its state.
static void require_averages_by_name(Trainable& trainable) {
  const std::string prefix = fmt::format("optimizer/{}/", kAverageSlot);
  const std::vector<StateSpan> spans = trainable.state();
  bool has_any = false;
  for (const StateSpan& average : spans) {
    if (!average.name.starts_with(prefix)) continue;
    has_any = true;
    const std::string weight = "model/" + average.name.substr(prefix.size());
    if (std::ranges::find(spans, weight, &StateSpan::name) != spans.end()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("take_averages(): the state has \"{}\", but no weights \"{}\"; name both alike",
                            average.name, weight));
  }
  if (has_any || dynamic_cast<ModelTrainable*>(&trainable) != nullptr) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("take_averages(): no array of the state has a name that begins with \"{}\", as averages of "
                          "weights \"model/...\" do; name them so",
                          prefix));
}

void Trainer::Session::take_averages() {
  require_averages(Weights::averaged, "take_averages()");
  require_averages_by_name(training_.trainable);
  generation_.join();
  CallRecord begun;
  begun.kind = "take_averages";
  begun.epochs = 1;
  begun.data = "null";
  const std::size_t call = join_call(begun);
  if (is_repeated(call)) copy_averages_to_weights(training_.trainable);
  in_call(call, [&] { run_take_averages(call, begun); });
  weights_of_model_ = Weights::trained;
  // As at the end of fit(), the model of the program gets them.
  if (auto* const trainable = dynamic_cast<ModelTrainable*>(&training_.trainable)) trainable->on_fit_end();
  note_results(*training_.context, training_.state, training_.weights_digest());
}

void Trainer::Session::run_take_averages(std::size_t call, const CallRecord& begun) {
  while (!record_of(call).is_finished) {
    try {
      training_.enter(TrainingPhase::callbacks);
      // Nothing in here waits for another rank, as in load_weights().
      copy_averages_to_weights(training_.trainable);
      record_of(call).is_finished = true;
    } catch (const GenerationEnded&) {
      begin_next_generation(begun);
    } catch (const RollBack&) {
      generation_.give_up_state();
      begin_next_generation(begun);
    }
  }
}

}  // namespace holdfast
