// A process that begins in the middle of a run passes the calls of earlier Trainers by itself. It could not meet the
// other ranks there: they have arrays of another model. So the record must be in the run directory before any rank
// enters the next Trainer. It is small. The arrays are in the savepoint that the last fit() has left.
// docs/decisions/calls.md

#include "train/fit/ended_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/state/resume.h"
#include "train/state/state_finder.h"

namespace holdfast {

std::string path_of_ended_trainer(const Replica::Context& context, int trainer) {
  return fmt::format("{}/trainer{}.json", context.run_directory, trainer + 1);
}

void leave_to_next_trainer(const Training& training) {
  Replica::Context& context = *training.context;
  context.earlier_steps += training.state.step;
  const auto open = std::ranges::find(training.state.calls, false, &CallRecord::is_finished);
  if (open != training.state.calls.end()) {
    // No state is left then, and the next Trainer refuses to begin.
    context.open_call =
        fmt::format("its call {}, {}(), has not ended", open - training.state.calls.begin() + 1, open->kind);
    return;
  }
  TrainState ended = training.state;
  // No fit() of it comes again.
  ended.callbacks.clear();
  context.ended_trainer = ended.trainer;
  context.ended_state = to_json(ended);
}

void record_trainer_before(Replica::Context& context) {
  if (!context.open_call.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Trainer {} of the run cannot begin, since the one before it was left: {}. The other "
                            "replicas may still be in that call; let its error leave the training function",
                            context.trainer + 1, context.open_call));
  }
  if (context.ended_state.empty() || !context.writes_files) return;
  const std::string path = path_of_ended_trainer(context, context.ended_trainer);
  const std::string text = std::exchange(context.ended_state, {});
  FileSystem& files = *context.file_system;
  // All ranks have the same record, and the first of them writes it.
  if (files.exists(path)) return;
  write_whole_file(files, path, std::as_bytes(std::span(text)));
}

std::optional<TrainState> find_ended_trainer(const Training& training) {
  const Replica::Context& context = *training.context;
  if (!training.is_supervised()) return std::nullopt;
  const std::string path = path_of_ended_trainer(context, training.state.trainer);
  FileSystem& files = *context.file_system;
  if (!files.exists(path)) return std::nullopt;
  TrainState ended = train_state_from_json(read_text_file(files, path), path);
  require_same_choices(ended, training.state, path);
  return ended;
}

std::size_t load_ended_arrays(Training& training, const TrainState& ended) {
  Replica::Context& context = *training.context;
  std::size_t calls = 0;
  const auto load = [&](const std::string& path) {
    const TrainState saved =
        load_savepoint(*context.file_system, path, training.trainable, [&](const TrainState& candidate) {
          require_same_choices(candidate, training.state, path);
          training.trainable.lay_out(laid_out_training(candidate));
        });
    const auto is_open = [](const CallRecord& call) { return !call.is_finished; };
    calls = static_cast<std::size_t>(std::ranges::find_if(saved.calls, is_open) - saved.calls.begin());
  };
  const auto report = [](const std::string& path, const std::string& why, const std::string&) {
    log(LogLevel::warning, fmt::format("passed over {}: {}", path, why));
  };
  std::vector<std::string> folders = context.copies_of_trainer();
  folders.insert(folders.begin(), context.trainer_directory());
  // Several replicas may look at once, so none of them changes the folder.
  if (!find_newest_savepoint(*context.file_system, folders, load, report, false)) {
    training.trainable.lay_out({});
    training.trainable.initialize(context.seed);
  }
  // The arrays have the results of the first `calls` calls. Later ones are repeated, but a fit() cannot be.
  for (std::size_t call = calls; call < ended.calls.size(); ++call) {
    if (ended.calls[call].kind != "fit") continue;
    throw Error(ErrorCode::not_found,
                fmt::format("the run has gone on to its Trainer {}, and the savepoint that call {} (fit) of Trainer {} "
                            "ended with is not in {} any more; restore the file, or start anew",
                            ended.trainer + 2, call + 1, ended.trainer + 1, context.trainer_directory()));
  }
  return calls;
}

}  // namespace holdfast
