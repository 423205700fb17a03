// The snapshot in memory is preferred unless a savepoint is newer, so a run loses as few steps as possible. A damaged
// savepoint is set aside, and the one before it is taken. A savepoint that cannot be read ends the start instead: an
// error of the disk may pass, and going back would silently cost work. docs/decisions/savepoints.md

#include "train/state/state_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/shown_text.h"
#include "train/context/other_choices.h"
#include "train/state/resume.h"

namespace holdfast {

StateFinder::StateFinder(Replica::Context& context, Trainable& trainable, StateArrays arrays, const TrainState& choices)
    : context_(context),
      trainable_(trainable),
      arrays_(arrays),
      supervision_(*context.supervision),
      choices_(choices) {}

// The arithmetic is a property of the machine and not of the state, so it is recorded next to the savepoints, not in
// them.
void StateFinder::check_arithmetic() {
  FileSystem& files = *context_.file_system;
  const std::string path = context_.run_directory + "/arithmetic.txt";
  const std::string now = trainable_.arithmetic() + "\n";
  if (files.exists(path)) {
    const std::string recorded = read_text_file(files, path);
    if (recorded == now) return;
    // Half a line may be the beginning of the right one, so it is damage and not another machine.
    const bool is_whole = recorded.size() > 1 && recorded.find('\n') == recorded.size() - 1;
    const std::string sentence =
        is_whole ? fmt::format("the run was started with {} and would go on with {}, which gives other bits",
                               shown_text(recorded.substr(0, recorded.size() - 1)), trainable_.arithmetic())
                 : fmt::format(
                       "{} is damaged: it holds \"{}\" instead of the line that names the run's arithmetic; the run "
                       "would go on with {}",
                       path, shown_text(recorded), trainable_.arithmetic());
    const std::string advice =
        is_whole ? "Continue on a machine like the first, with the same release of Holdfast and the same precision"
                 : "Restore the file";
    if (!context_.accept_other_arithmetic) {
      // Another model may be what changes the arithmetic, and is then what must be told.
      const auto states = list_states();
      if (!states.empty()) require_same_choices(states.front().second, choices_, states.front().first);
      throw OtherChoices(fmt::format("{}. {}, set accept_other_arithmetic, or {}", sentence, advice, kHowToStartAnew));
    }
    log(LogLevel::warning, fmt::format("{}; accepted", sentence));
  }
  if (!context_.writes_files) return;
  write_whole_file(files, path, std::as_bytes(std::span(now)));
}

std::string StateFinder::find() {
  // Memory first: its state is mostly newer, and takes no reading.
  if (const std::optional<std::string> kept = find_in_memory()) return *kept;
  const auto report = [&](const std::string& path, const std::string& why, const std::string& set_aside_as) {
    // Both are told to the user and to the journal, which outlives the log.
    const bool is_set_aside = !set_aside_as.empty();
    log(LogLevel::warning, is_set_aside ? fmt::format("set aside a damaged savepoint as {}: {}", set_aside_as, why)
                                        : fmt::format("passed over {}: {}", path, why));
    supervision_.report_event(is_set_aside ? "savepoint_set_aside" : "savepoint_passed_over",
                              nlohmann::json{{"path", path}, {"why", why}}.dump());
  };
  TrainState state;
  const auto load = [&](const std::string& path) {
    state = load_savepoint(*context_.file_system, path, arrays_,
                           [&](const TrainState& candidate) { begin_to_restore(candidate, path); });
  };
  const std::optional<std::string> path =
      find_newest_savepoint(*context_.file_system, savepoint_folders(), load, report, context_.writes_files);
  return path ? found(state, *path) : "";
}

std::vector<std::pair<std::string, TrainState>> StateFinder::list_states() const {
  std::vector<std::pair<std::string, TrainState>> states;
  for (const std::string& folder : savepoint_folders()) {
    for (const std::string& path : list_savepoint_paths(*context_.file_system, folder)) {
      try {
        states.emplace_back(path, train_state_from_json(savepoint_metadata(*context_.file_system, path), path));
      } catch (const Error& failure) {
        log(LogLevel::warning, fmt::format("savepoint {} is passed over: {}", path, failure.what()));
      }
    }
  }
  // Stable: of equal steps, the run directory comes before its copies.
  std::stable_sort(states.begin(), states.end(),
                   [](const auto& a, const auto& b) { return a.second.step > b.second.step; });
  return states;
}

std::string StateFinder::find_before_later_fit(std::size_t call) {
  // A later evaluate() changes no weights, so it does not count.
  const auto has_later_fit = [call](const TrainState& state) {
    return std::any_of(state.calls.begin() + static_cast<std::ptrdiff_t>(std::min(call + 1, state.calls.size())),
                       state.calls.end(), changes_weights);
  };
  const auto states = list_states();
  const auto wanted =
      std::find_if(states.begin(), states.end(), [&](const auto& state) { return !has_later_fit(state.second); });
  if (wanted == states.end()) {
    throw OtherChoices(
        fmt::format("call {} of the Trainer (fit) cannot get more epochs: a later fit() has begun since, and no "
                    "savepoint from before it is left. Use as many epochs as before, or {}",
                    call + 1, kHowToStartAnew));
  }
  Snapshot snapshot = read_savepoint(*context_.file_system, wanted->first);
  begin_to_restore(snapshot.state, wanted->first);
  restore_arrays(snapshot, arrays_, wanted->first);
  if (context_.writes_files) {
    for (auto later = states.begin(); later != wanted; ++later) replace_savepoint(*context_.file_system, later->first);
  }
  return found(snapshot.state, wanted->first);
}

// A savepoint may be newer than the snapshot: one that was made on request, or under an earlier watchdog.
std::optional<std::string> StateFinder::find_in_memory() {
  std::optional<std::string> text;
  // The memory belongs to the watchdog, so it is only valid within this call.
  supervision_.read_from_memory([&](std::span<const std::byte> image) {
    const Snapshot kept = view_of_image(image);
    // An earlier Trainer may have left it.
    if (kept.state.trainer != choices_.trainer) return;
    if (newest_savepoint_step().value_or(-1) > kept.state.step) return;
    const std::string origin = "the snapshot in the watchdog's memory";
    begin_to_restore(kept.state, origin);
    restore_arrays(kept, arrays_, origin);
    text = found(kept.state, origin);
  });
  return text;
}

std::optional<std::int64_t> StateFinder::newest_savepoint_step() const {
  std::optional<std::int64_t> newest;
  for (const std::string& folder : savepoint_folders()) {
    newest = std::max(newest, holdfast::newest_savepoint_step(*context_.file_system, folder));
  }
  return newest;
}

std::vector<std::string> StateFinder::savepoint_folders() const {
  std::vector<std::string> folders = {context_.trainer_directory()};
  // The run directory first: of equal savepoints its own is taken.
  const std::vector<std::string> copies = context_.copies_of_trainer();
  folders.insert(folders.end(), copies.begin(), copies.end());
  return folders;
}

void StateFinder::begin_to_restore(const TrainState& state, const std::string& origin) {
  supervision_.reach(FaultPoint::load, state.step);
  require_same_choices(state, choices_, origin);
  arrays_.lay_out(state);
}

std::string StateFinder::found(const TrainState& state, const std::string& origin) {
  found_ = {.origin = origin, .step = state.step};
  return to_json(state);
}

void StateFinder::tell_of_found() const {
  if (!found_) return;
  supervision_.report_event("resumed", nlohmann::json{{"path", found_->origin}, {"step", found_->step}}.dump());
  log(LogLevel::info, fmt::format("continuing from {} at step {}", found_->origin, found_->step));
}

}  // namespace holdfast
