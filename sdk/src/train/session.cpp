#include "train/session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/resume.h"

namespace holdfast {
namespace {

// A write that takes longer than this is taken for stuck.
constexpr auto kSaveTimeout = std::chrono::minutes(10);

Replica::Place& claim(Replica::Place& place) {
  if (place.has_trainer) {
    throw Error(ErrorCode::invalid_argument,
                "a run has one Trainer, which holds its whole state; this program makes a second one");
  }
  place.has_trainer = true;
  return place;
}

// Faults of phase "save" strike when all bytes are written and none is durable.
std::unique_ptr<FileSystem> with_fault_point(FileSystem& files, Supervision& supervision,
                                             const std::atomic<std::int64_t>& step) {
  return watched_file_system(files, [&](const FileOperation& operation) {
    if (operation.name == "sync") supervision.reach(FaultPoint::save, step);
  });
}

}  // namespace

Trainer::Session::Session(Replica& replica, std::unique_ptr<Trainable> owned, Trainable& trainable)
    : place_(replica.shared_place()),
      owned_(std::move(owned)),
      trainable_(trainable),
      supervision_(*place_->supervision),
      runner_(claim(*place_), trainable),
      files_(with_fault_point(*place_->file_system, supervision_, written_step_)),
      savepoint_journal_(supervision_),
      writer_(*files_, [this](const SavepointEvent& event) { savepoint_journal_.note(event); }) {
  supervision_.enter(TrainingPhase::starting, 0);
  state_.seed = place_->seed;
  state_.shards = place_->shards;
  state_.threads_per_shard = place_->threads_per_shard;
  state_.graph = nlohmann::json::parse(trainable_.graph()).dump();
  state_.configuration = nlohmann::json::parse(trainable_.configuration()).dump();
  trainable_.initialize(place_->seed);
  if (!place_->run_directory.empty()) join_run();
}

Trainer::Session::~Session() {
  place_->has_trainer = false;
}

void Trainer::Session::join_run() {
  std::string text;
  if (place_->rank == 0) {
    check_arithmetic();
    text = find_state();
  }
  broadcast_text(text);
  if (text.empty()) return;
  state_ = train_state_from_json(text, "the savepoint that rank 0 found");
  for (const StateSpan& span : trainable_.state()) {
    runner_.communicator().broadcast(std::as_writable_bytes(span.values), 0, runner_.deadline());
  }
}

// Returns the state's JSON, its arrays being in the Trainable; nothing when the run begins at step 0.
std::string Trainer::Session::find_state() {
  const auto report = [&](const std::string& path, const std::string& why, const std::string& set_aside_as) {
    const bool is_set_aside = !set_aside_as.empty();
    log(LogLevel::warning,
        (is_set_aside ? "set aside a damaged savepoint as " + set_aside_as : "passed over " + path) + ": " + why);
    supervision_.report_event(is_set_aside ? "savepoint_set_aside" : "savepoint_passed_over",
                              nlohmann::json{{"path", path}, {"why", why}}.dump());
  };
  std::vector<std::string> folders = {place_->run_directory};
  folders.insert(folders.end(), place_->savepoint_copies.begin(), place_->savepoint_copies.end());
  const std::optional<FoundSavepoint> found = find_newest_savepoint(*place_->file_system, folders, report);
  if (!found) return "";
  require_same_choices(found->snapshot.state, state_, found->path);
  restore_arrays(found->snapshot, trainable_, found->path);
  supervision_.report_event("resumed",
                            nlohmann::json{{"path", found->path}, {"step", found->snapshot.state.step}}.dump());
  log(LogLevel::info, "continuing from " + found->path + " at step " + std::to_string(found->snapshot.state.step));
  return to_json(found->snapshot.state);
}

void Trainer::Session::broadcast_text(std::string& text) {
  std::uint64_t bytes = text.size();
  runner_.communicator().broadcast(std::as_writable_bytes(std::span(&bytes, 1)), 0, runner_.deadline());
  text.resize(bytes);
  runner_.communicator().broadcast(std::as_writable_bytes(std::span(text)), 0, runner_.deadline());
}

// What the bits depend on beside the options belongs to the machine, so it is kept beside the savepoints, not in them.
void Trainer::Session::check_arithmetic() {
  FileSystem& files = *place_->file_system;
  const std::string path = place_->run_directory + "/arithmetic.txt";
  const std::string now = trainable_.arithmetic() + "\n";
  if (files.exists(path)) {
    const std::string recorded = read_text_file(files, path);
    if (recorded == now) return;
    const std::string sentence = "the run was started with " + recorded.substr(0, recorded.size() - 1) +
                                 " and would go on with " + trainable_.arithmetic() + ", which gives other bits";
    if (!place_->accept_other_arithmetic) {
      throw Error(ErrorCode::incompatible,
                  sentence + "; go on on a machine like the first, or set accept_other_arithmetic");
    }
    log(LogLevel::warning, sentence + "; accepted");
  }
  write_whole_file(files, path, std::as_bytes(std::span(now)));
}

void Trainer::Session::check_data(const Dataset& data, const char* purpose) const {
  const auto require = [&](bool condition, const std::string& sentence) {
    if (!condition)
      throw Error(ErrorCode::invalid_argument, "the data set given to " + std::string(purpose) + " " + sentence);
  };
  require(data.batch_size() > 0, "has no batch size: end it with batch(n)");
  require(data.batches() > 0, "has no whole batch: it has " + std::to_string(data.size()) + " samples");
  require(data.feature_shape() == trainable_.feature_shape(),
          "has samples of shape " + data.feature_shape().to_string() + ", the model takes " +
              trainable_.feature_shape().to_string());
  require(data.target_shape() == trainable_.target_shape(), "has targets of shape " + data.target_shape().to_string() +
                                                                ", the loss takes " +
                                                                trainable_.target_shape().to_string());
}

CallRecord& Trainer::Session::join_call(const std::string& kind, const Dataset& data, std::int64_t epochs) {
  const std::size_t index = calls_made_++;
  CallRecord record;
  record.kind = kind;
  record.data = nlohmann::json::parse(data.description()).dump();
  record.epochs = epochs;
  if (index == state_.calls.size()) {
    state_.calls.push_back(std::move(record));
    state_.epoch = 0;
    state_.batch = 0;
    return state_.calls.back();
  }
  HOLDFAST_ASSERT(index < state_.calls.size());
  TrainState now = state_;
  now.calls[index].kind = record.kind;
  now.calls[index].data = record.data;
  now.calls[index].epochs = record.epochs;
  require_same_choices(state_, now, "its savepoint");
  return state_.calls[index];
}

std::unique_ptr<BatchLoader> Trainer::Session::open_loader(const Dataset& data, std::int64_t epoch, std::int64_t batch,
                                                           std::int64_t end_epoch) const {
  return std::make_unique<BatchLoader>(data, place_->seed, place_->shards, runner_.shards().begin, runner_.shards().end,
                                       epoch, batch, end_epoch);
}

Logs Trainer::Session::evaluate(const Dataset& data) {
  check_data(data, "evaluate()");
  CallRecord& record = join_call("evaluate", data, 1);
  if (!record.is_finished) {
    record.results = evaluation_pass(data);
    record.is_finished = true;
  }
  return record.results;
}

Tensor Trainer::Session::predict(const Tensor& features, std::int64_t batch_size) {
  const Shape& shape = features.shape();
  if (shape.rank() == 0 || shape.without_batch() != trainable_.feature_shape() || batch_size < 1) {
    throw Error(ErrorCode::invalid_argument, "predict() takes features of shape " +
                                                 trainable_.feature_shape().to_string() +
                                                 " behind a first axis of any length, not " + shape.to_string() +
                                                 ", and a batch size of at least 1, not " + std::to_string(batch_size));
  }
  Tensor outputs(trainable_.output_shape().with_batch(shape[0]));
  const auto feature_count = static_cast<std::size_t>(trainable_.feature_shape().element_count());
  const auto output_count = static_cast<std::size_t>(trainable_.output_shape().element_count());
  for (std::int64_t first = 0; first < shape[0]; first += batch_size) {
    const std::int64_t samples = std::min(batch_size, shape[0] - first);
    const auto begin = static_cast<std::size_t>(first);
    const auto count = static_cast<std::size_t>(samples);
    trainable_.predict({.seed = place_->seed,
                        .step = state_.step,
                        .first_sample = first,
                        .samples = samples,
                        .batch_samples = samples,
                        .features = features.values().subspan(begin * feature_count, count * feature_count),
                        .targets = {}},
                       outputs.values().subspan(begin * output_count, count * output_count));
  }
  return outputs;
}

Digest Trainer::Session::weights_digest() const {
  DigestBuilder builder;
  for (const StateSpan& span : trainable_.state()) {
    if (span.kind == StateKind::parameter) builder.update(std::as_bytes(span.values));
  }
  return builder.finish();
}

Digest Trainer::Session::save(const std::string& path) const {
  return write_savepoint(*place_->file_system, path, take_snapshot(state_, trainable_),
                         {.threads = place_->saving_threads});
}

// Peers wait in a collective meanwhile. They must not give up before this replica has said what is wrong.
Deadline Trainer::Session::save_deadline() const {
  if (place_->size == 1) return Deadline::after(kSaveTimeout);
  return Deadline::after(std::min<Deadline::Clock::duration>(kSaveTimeout, place_->collective_timeout * 3 / 4));
}

void Trainer::Session::submit_savepoint(const std::string& path, SaveOptions options) {
  supervision_.enter(TrainingPhase::saving, state_.step);
  const std::int64_t step = state_.step;
  if (options.threads == 0) options.threads = place_->saving_threads;
  writer_.submit({.path = path,
                  .step = step,
                  .take_snapshot = [this] { return take_snapshot(state_, trainable_); },
                  .options = std::move(options),
                  .when_started = [this, step] { written_step_ = step; }},
                 save_deadline(), [this, step] { supervision_.enter(TrainingPhase::saving, step); });
}

void Trainer::Session::flush_savepoints() {
  const auto show_life = [this] { supervision_.enter(TrainingPhase::saving, state_.step); };
  show_life();
  writer_.flush(save_deadline(), show_life);
}

void Trainer::Session::save_before_stop() {
  const std::string name = savepoint_name(state_.step);
  const auto keep = make_savepoint_keeper(*place_->file_system, place_->run_directory, place_->savepoint_copies,
                                          {.keep_last = 0, .threads = place_->saving_threads});
  submit_savepoint(place_->run_directory + "/" + name, {.when_durable = [keep, name] { keep(name); }});
  flush_savepoints();
}

// All ranks come here after the same step. The others wait for the savepoint, so that none ends before the state is
// durable.
void Trainer::Session::stop() {
  if (!place_->run_directory.empty()) {
    if (place_->rank == 0) {
      if (running_fit_ == nullptr) {
        save_before_stop();
      } else {
        collect_callback_states(*running_fit_);
        act_and_tell(*running_fit_, [&] { save_before_stop(); });
      }
    }
    supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
    runner_.communicator().barrier(Deadline::after(kSaveTimeout));
  }
  throw StopRequested{};
}

}  // namespace holdfast
