#include "train/session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/resume.h"
#include "train/warm_up.h"

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

}  // namespace

Trainer::Session::Session(Replica& replica, std::unique_ptr<Trainable> owned, Trainable& trainable)
    : place_(replica.shared_place()),
      owned_(std::move(owned)),
      trainable_(trainable),
      supervision_(*place_->supervision),
      memory_schedule_(claim(*place_).memory_snapshot_every),
      savepoint_journal_(supervision_),
      writer_(*place_->file_system, [this](const SavepointEvent& event) { savepoint_journal_.note(event); }) {
  supervision_.enter(TrainingPhase::starting, 0);
  supervision_.reach(FaultPoint::start, -1);
  prepare_workers();
  state_.seed = place_->seed;
  state_.shards = place_->shards;
  state_.threads_per_shard = place_->threads_per_shard;
  state_.graph = nlohmann::json::parse(trainable_.graph()).dump();
  state_.configuration = nlohmann::json::parse(trainable_.configuration()).dump();
  trainable_.initialize(place_->seed);
  if (!place_->run_directory.empty()) StepRunner::prepare_memory(*place_, trainable_);
}

void Trainer::Session::join() {
  if (!std::exchange(has_joined_, true)) enter_generation();
}

void Trainer::Session::join(const Dataset& data, WarmUp what) {
  if (!has_joined_ && !place_->run_directory.empty()) warm_up(*place_, trainable_, data, prepared_workers_, what);
  join();
}

// The state of step 0, also where another was given up.
void Trainer::Session::begin_anew() {
  state_.step = 0;
  state_.epoch = 0;
  state_.batch = 0;
  state_.calls.clear();
  state_.callbacks.clear();
  trainable_.initialize(place_->seed);
  is_epoch_begun_ = false;
  has_state_ = true;
  has_taken_state_ = true;
}

Trainer::Session::~Session() {
  place_->has_trainer = false;
}

void Trainer::Session::enter_generation() {
  is_stop_requested_ = false;
  is_regroup_requested_ = false;
  is_comparison_requested_ = false;
  is_savepoint_requested_ = false;
  for (;;) {
    try {
      runner_.reset();
      supervision_.reach(FaultPoint::rendezvous, -1);
      place_->enter_generation(has_state_ ? state_.step : -1);
      prepare_workers();
      runner_.emplace(*place_, trainable_);
      settle_state();
      // Whoever waits for nobody any more is looked at again.
      return supervision_.enter(TrainingPhase::callbacks, state_.step);
    } catch (const GenerationEnded& ended) {
      log(LogLevel::info, std::string("replica: ") + ended.what() + "; it waits for the next");
    }
  }
}

void Trainer::Session::prepare_workers() {
  const int workers = StepRunner::workers_of(*place_);
  if (workers <= prepared_workers_) return;
  trainable_.prepare({.count = workers, .threads_per_shard = place_->threads_per_shard});
  prepared_workers_ = workers;
}

Trainer::Session::Position Trainer::Session::position() const {
  if (!has_state_) return {};
  const auto finished =
      std::count_if(state_.calls.begin(), state_.calls.end(), [](const auto& call) { return call.is_finished; });
  return {.has_state = 1,
          .calls = static_cast<std::int64_t>(state_.calls.size()),
          .finished_calls = finished,
          .epoch = state_.epoch,
          .batch = state_.batch,
          .step = state_.step,
          .is_epoch_begun = is_epoch_begun_ ? 1 : 0};
}

std::vector<Trainer::Session::Standing> Trainer::Session::exchange_standings() {
  const Standing own{
      .position = position(), .is_doubtful = is_doubtful_ ? 1 : 0, .rolled_back_step = rolled_back_step_};
  std::vector<Standing> all(static_cast<std::size_t>(place_->size));
  runner_->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                     runner_->deadline());
  return all;
}

void Trainer::Session::settle_state() {
  if (place_->run_directory.empty()) {
    has_state_ = true;
    return;
  }
  supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
  std::vector<Standing> standings = exchange_standings();
  drop_disputed_state(standings);
  const bool has_any = std::any_of(standings.begin(), standings.end(),
                                   [](const Standing& standing) { return standing.position.has_state != 0; });
  if (has_any) {
    share_newest_state(standings);
  } else {
    load_state();
  }
  rolled_back_step_ = 0;
}

// Some ranks may have learned that the states differ, and others been cut off before. What any of them found wrong is
// wrong for all; all but those who were cut off keep what they know of who had which state.
void Trainer::Session::drop_disputed_state(std::vector<Standing>& standings) {
  std::int64_t step = 0;
  for (const Standing& standing : standings) step = std::max(step, standing.rolled_back_step);
  if (step == 0) return;
  const bool was_cut_off = has_state_ && state_.step == step;
  Digest own{};
  if (was_cut_off) {
    own = state_digest();
  } else if (dispute_ && dispute_->own) {
    own = *dispute_->own;
  }
  std::vector<Digest> all(standings.size());
  runner_->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                     runner_->deadline());
  if (was_cut_off) dispute_ = Dispute{.step = step, .own = own};
  if (dispute_) dispute_->all = all;
  rolled_back_step_ = step;
  if (place_->rank == 0) {
    const std::string why = rolled_back_why_.empty() ? "another replica found it wrong" : rolled_back_why_;
    supervision_.report_event("rolled_back", nlohmann::json{{"step", step}, {"why", why}}.dump());
  }
  rolled_back_why_.clear();
  const bool is_disputed = state_.step >= step - 1;
  has_state_ = has_state_ && !is_disputed;
  standings = exchange_standings();
}

// Of those who have come furthest. A state whose comparison was cut off is compared again, and given up where its owner
// is the only one that has it.
void Trainer::Session::share_newest_state(const std::vector<Standing>& standings) {
  const auto newest = std::max_element(standings.begin(), standings.end(),
                                       [](const Standing& a, const Standing& b) { return a.position < b.position; });
  std::ptrdiff_t owners = 0;
  bool is_doubtful = false;
  for (const Standing& standing : standings) {
    if (standing.position != newest->position) continue;
    ++owners;
    is_doubtful = is_doubtful || standing.is_doubtful != 0;
  }
  if (is_doubtful && owners == 1) {
    has_state_ = has_state_ && position() < newest->position;
    is_doubtful_ = false;
    const std::vector<Standing> others = exchange_standings();
    const bool has_any = std::any_of(others.begin(), others.end(),
                                     [](const Standing& standing) { return standing.position.has_state != 0; });
    return has_any ? share_newest_state(others) : load_state();
  }
  share_state(static_cast<int>(newest - standings.begin()), position() < newest->position);
  is_doubtful_ = false;
  if (is_doubtful) agree();
}

// From the watchdog's memory or a savepoint, by rank 0; or the state of step 0.
void Trainer::Session::load_state() {
  std::string text;
  if (place_->rank == 0) {
    supervision_.enter(TrainingPhase::starting, state_.step);
    check_arithmetic();
    text = find_state();
    supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
  }
  text = share_text(std::move(text), 0);
  if (text.empty()) return begin_anew();
  share_arrays(0, true);
  take_state(text, false);
}

// What a survivor brings along: the arrays, and the rest as JSON.
void Trainer::Session::share_state(int root, bool takes) {
  if (!takes && running_fit_ != nullptr) collect_callback_states(*running_fit_);
  std::string text;
  if (place_->rank == root) text = (is_epoch_begun_ ? "1" : "0") + to_json(state_);
  text = share_text(std::move(text), root);
  has_state_ = has_state_ && !takes;
  share_arrays(root, takes);
  if (takes) take_state(text.substr(1), text.front() == '1');
}

void Trainer::Session::share_arrays(int root, bool takes) {
  const std::vector<StateSpan> spans = trainable_.state();
  for (std::size_t i = 0; i < spans.size(); ++i) {
    // Behind the first one: who fails here leaves replicas behind that have half a state.
    if (i == 1) supervision_.reach(FaultPoint::broadcast, -1);
    runner_->communicator().broadcast(std::as_writable_bytes(spans[i].values), root, takes, runner_->deadline());
  }
}

void Trainer::Session::take_state(const std::string& text, bool is_epoch_begun) {
  state_ = train_state_from_json(text, "the state that another replica sent");
  is_epoch_begun_ = is_epoch_begun;
  has_state_ = true;
  has_taken_state_ = true;
}

std::vector<std::string> Trainer::Session::savepoint_folders() const {
  std::vector<std::string> folders = {place_->run_directory};
  folders.insert(folders.end(), place_->savepoint_copies.begin(), place_->savepoint_copies.end());
  return folders;
}

// Returns the state's JSON, its arrays being in the Trainable; nothing when the run begins at step 0.
std::string Trainer::Session::find_state() {
  if (const std::optional<Snapshot> kept = find_in_memory()) {
    restore(*kept, "the snapshot in the watchdog's memory");
    return to_json(kept->state);
  }
  const auto report = [&](const std::string& path, const std::string& why, const std::string& set_aside_as) {
    const bool is_set_aside = !set_aside_as.empty();
    log(LogLevel::warning,
        (is_set_aside ? "set aside a damaged savepoint as " + set_aside_as : "passed over " + path) + ": " + why);
    supervision_.report_event(is_set_aside ? "savepoint_set_aside" : "savepoint_passed_over",
                              nlohmann::json{{"path", path}, {"why", why}}.dump());
  };
  const std::optional<FoundSavepoint> found = find_newest_savepoint(*place_->file_system, savepoint_folders(), report);
  if (!found) return "";
  restore(found->snapshot, found->path);
  return to_json(found->snapshot.state);
}

void Trainer::Session::restore(const Snapshot& snapshot, const std::string& origin) {
  supervision_.reach(FaultPoint::load, snapshot.state.step);
  require_same_choices(snapshot.state, state_, origin);
  restore_arrays(snapshot, trainable_, origin);
  supervision_.report_event("resumed", nlohmann::json{{"path", origin}, {"step", snapshot.state.step}}.dump());
  log(LogLevel::info, "continuing from " + origin + " at step " + std::to_string(snapshot.state.step));
}

// None where a savepoint is newer: one that was made on demand, or by an earlier watchdog.
std::optional<Snapshot> Trainer::Session::find_in_memory() const {
  std::optional<Snapshot> snapshot;
  supervision_.read_from_memory([&](std::span<const std::byte> image) { snapshot = snapshot_from_image(image); });
  if (snapshot && newest_savepoint_step().value_or(-1) > snapshot->state.step) return std::nullopt;
  return snapshot;
}

std::optional<std::int64_t> Trainer::Session::newest_savepoint_step() const {
  std::optional<std::int64_t> newest;
  for (const std::string& folder : savepoint_folders()) {
    newest = std::max(newest, holdfast::newest_savepoint_step(*place_->file_system, folder));
  }
  return newest;
}

std::string Trainer::Session::share_text(std::string text, int root) {
  std::uint64_t bytes = text.size();
  runner_->communicator().broadcast(std::as_writable_bytes(std::span(&bytes, 1)), root, true, runner_->deadline());
  text.resize(bytes);
  runner_->communicator().broadcast(std::as_writable_bytes(std::span(text)), root, true, runner_->deadline());
  return text;
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

Digest Trainer::Session::state_digest() const {
  DigestBuilder builder;
  for (const StateSpan& span : trainable_.state()) builder.update(std::as_bytes(span.values));
  return builder.finish();
}

void Trainer::Session::agree() {
  supervision_.enter(TrainingPhase::saving, state_.step);
  const Digest own = state_digest();
  agreed_ = own;
  if (place_->size == 1 && !dispute_) return;
  supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
  is_doubtful_ = true;
  std::vector<Digest> all(static_cast<std::size_t>(place_->size));
  runner_->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                     runner_->deadline());
  supervision_.enter(TrainingPhase::callbacks, state_.step);
  const bool is_agreed =
      std::all_of(all.begin(), all.end(), [&](const Digest& digest) { return digest == all.front(); });
  if (is_agreed) {
    is_doubtful_ = false;
    return settle_dispute(own);
  }
  std::string digests;
  for (const Digest& digest : all) digests += (digests.empty() ? "" : ", ") + digest.hex();
  if (dispute_ && dispute_->own && dispute_->step == state_.step) {
    throw Error(ErrorCode::diverged, "the replicas disagree about step " + std::to_string(state_.step) +
                                         " again, by rank: " + digests +
                                         "; one of the machine's parts computes wrongly");
  }
  dispute_ = Dispute{.step = state_.step, .own = own, .all = all};
  roll_back(state_.step,
            "the replicas hold different states behind step " + std::to_string(state_.step) + ", by rank: " + digests);
}

// Between the comparison and a copy the state may have changed, which nobody but this replica has seen.
void Trainer::Session::require_unchanged(const Digest& copied) const {
  if (copied == agreed_) return;
  throw Error(ErrorCode::diverged, "this replica's state of step " + std::to_string(state_.step) + " was " +
                                       agreed_.hex() + ", as the others', and " + copied.hex() + " when it was copied");
}

Snapshot Trainer::Session::copy_of_agreed_state() {
  Snapshot snapshot = take_snapshot(state_, trainable_);
  DigestBuilder builder;
  for (const SnapshotArray& array : snapshot.arrays) builder.update(std::as_bytes(std::span(array.values)));
  require_unchanged(builder.finish());
  return snapshot;
}

// Behind the step that was disputed: whoever had another state than computing it again gives, where a peer had that
// one, is not to be trusted. Where nobody had it, the wrong numbers of one had reached the others by then, and who
// began cannot be told.
void Trainer::Session::settle_dispute(const Digest& agreed) {
  if (!dispute_ || state_.step < dispute_->step) return;
  const Dispute settled = *std::exchange(dispute_, std::nullopt);
  if (settled.step != state_.step || !settled.own || *settled.own == agreed) return;
  const bool can_tell = std::find(settled.all.begin(), settled.all.end(), agreed) != settled.all.end();
  if (!can_tell) {
    if (place_->rank != 0) return;
    supervision_.report_event("dispute_settled", nlohmann::json{{"step", settled.step}, {"guilty", "unknown"}}.dump());
    return;
  }
  throw Error(ErrorCode::diverged, "this replica's state behind step " + std::to_string(settled.step) + " was " +
                                       settled.own->hex() + ", and " + agreed.hex() + " when all computed it again");
}

void Trainer::Session::roll_back(std::int64_t step, const std::string& why) {
  log(LogLevel::warning,
      "replica " + std::to_string(place_->rank) + ": " + why + "; all go back to the last state that they agreed on");
  rolled_back_step_ = step;
  rolled_back_why_ = why;
  is_doubtful_ = false;
  throw RollBack{};
}

void Trainer::Session::on_not_finite(const std::string& what, const FitOptions& options) {
  const std::string sentence = "in step " + std::to_string(state_.step) + " (epoch " + std::to_string(state_.epoch) +
                               ", batch " + std::to_string(state_.batch) + ") " + what;
  if (options.when_not_finite == WhenNotFinite::skip_step) {
    if (place_->rank != 0) return;
    log(LogLevel::warning, sentence + "; the step is skipped");
    supervision_.report_event("step_skipped", nlohmann::json{{"step", state_.step}, {"why", what}}.dump());
    return;
  }
  const bool is_repeated = dispute_ && !dispute_->own && dispute_->step == state_.step + 1;
  const bool can_roll_back = !place_->run_directory.empty() && options.when_not_finite == WhenNotFinite::roll_back;
  if (is_repeated || !can_roll_back) {
    throw Error(ErrorCode::not_finite, sentence + (is_repeated ? ", again after the replicas went back" : "") +
                                           "; look at the data of that batch, or lower the learning rate");
  }
  dispute_ = Dispute{.step = state_.step + 1};
  roll_back(state_.step + 1, sentence);
}

void Trainer::Session::settle_gradients(const StepRunner::Outcome& outcome, const FitOptions& options) {
  // Who has a wrong state computes wrong gradients, however often: that is settled first, and sends all back.
  agree();
  const CheckVerdict& verdict = *outcome.check;
  if (verdict.kind == CheckVerdict::Kind::outvoted && verdict.spares_somebody(place_->size)) {
    leave_if_wrong(outcome, state_.step, options);
    // The end of whoever leaves ends this wait.
    supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
    runner_->communicator().barrier(runner_->deadline());
  }
  throw Undecided("the gradients of step " + std::to_string(state_.step) + " (epoch " + std::to_string(state_.epoch) +
                  ", batch " + std::to_string(state_.batch) +
                  ") differ between those who computed them, also when all did so again: " + outcome.check_reports +
                  "; one of the machine's parts computes wrongly, or compute_gradients() or a map() of the data is no "
                  "function of what it is given; check_gradients.every = 0 would not look");
}

void Trainer::Session::leave_if_wrong(const StepRunner::Outcome& outcome, std::int64_t step,
                                      const FitOptions& options) {
  if (!outcome.check || !outcome.check->is_wrong(place_->rank)) return;
  std::string sentence = "this replica computed gradients of step " + std::to_string(step) + " wrongly:";
  for (const WrongDigest& wrong : outcome.check->wrong) {
    if (wrong.rank != place_->rank) continue;
    const auto shards = runner_->drawn_shards_of(wrong.owner, step, checked_shards(options.check_gradients, step));
    const nlohmann::json detail{{"step", step},
                                {"rank", wrong.rank},
                                {"owner", wrong.owner},
                                {"shards", shards},
                                {"digest", wrong.digest.hex()},
                                {"right", wrong.right.hex()},
                                {"reports", outcome.check_reports}};
    supervision_.report_event("wrong_gradient", detail.dump());
    sentence += " of rank " + std::to_string(wrong.owner) + "'s " + wrong.digest.hex() + " instead of " +
                wrong.right.hex() + ";";
  }
  sentence.back() = '.';
  // Where nobody else is left to keep the state, it was wrong for a moment only.
  if (outcome.check->spares_somebody(place_->size)) throw Error(ErrorCode::diverged, sentence);
  log(LogLevel::warning, sentence + " The step was computed again");
}

std::size_t Trainer::Session::join_call(const std::string& kind, const Dataset& data, std::int64_t epochs) {
  ++calls_made_;
  CallRecord record;
  record.kind = kind;
  record.data = nlohmann::json::parse(data.description()).dump();
  record.epochs = epochs;
  rejoin_call(record);
  return calls_made_ - 1;
}

void Trainer::Session::rejoin_call(const CallRecord& call) {
  const std::size_t index = calls_made_ - 1;
  const auto is_open = [](const CallRecord& record) { return !record.is_finished; };
  if (std::any_of(state_.calls.begin(),
                  state_.calls.begin() + static_cast<std::ptrdiff_t>(std::min(index, state_.calls.size())), is_open) ||
      index > state_.calls.size()) {
    // The program cannot go back to an earlier call; a process that begins anew can.
    throw Error(ErrorCode::cancelled, "the run went back to a call before the one that this replica is in");
  }
  if (index == state_.calls.size()) {
    state_.calls.push_back(call);
    state_.epoch = 0;
    state_.batch = 0;
    is_epoch_begun_ = false;
    return;
  }
  TrainState now = state_;
  now.calls[index].kind = call.kind;
  now.calls[index].data = call.data;
  now.calls[index].epochs = call.epochs;
  require_same_choices(state_, now, "its savepoint");
}

std::unique_ptr<BatchLoader> Trainer::Session::open_loader(const Dataset& data, std::int64_t epoch, std::int64_t batch,
                                                           std::int64_t end_epoch) const {
  return std::make_unique<BatchLoader>(data, place_->seed, place_->shards, runner_->shards().begin,
                                       runner_->shards().end, epoch, batch, end_epoch);
}

void Trainer::Session::carry_through(std::size_t call, const std::function<void()>& act) {
  const CallRecord begun = record_of(call);
  while (!record_of(call).is_finished) {
    try {
      act();
      continue;
    } catch (const GenerationEnded&) {
    } catch (const RollBack&) {
      has_state_ = false;
    }
    enter_generation();
    rejoin_call(begun);
    if (has_taken_state_ && running_fit_ != nullptr) restore_callbacks(*running_fit_);
  }
}

Logs Trainer::Session::evaluate(const Dataset& data) {
  check_data(data, "evaluate()");
  join(data, WarmUp::inference);
  const std::size_t call = join_call("evaluate", data, 1);
  carry_through(call, [&] {
    const Logs results = evaluation_pass(data);
    record_of(call).results = results;
    record_of(call).is_finished = true;
  });
  return record_of(call).results;
}

Tensor Trainer::Session::predict(const Tensor& features, std::int64_t batch_size) {
  const Shape& shape = features.shape();
  if (shape.rank() == 0 || shape.without_batch() != trainable_.feature_shape() || batch_size < 1) {
    throw Error(ErrorCode::invalid_argument, "predict() takes features of shape " +
                                                 trainable_.feature_shape().to_string() +
                                                 " behind a first axis of any length, not " + shape.to_string() +
                                                 ", and a batch size of at least 1, not " + std::to_string(batch_size));
  }
  join();
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

std::int64_t Trainer::Session::step() {
  join();
  return state_.step;
}

Digest Trainer::Session::weights_digest() {
  join();
  DigestBuilder builder;
  for (const StateSpan& span : trainable_.state()) {
    if (span.kind == StateKind::parameter) builder.update(std::as_bytes(span.values));
  }
  return builder.finish();
}

Digest Trainer::Session::save(const std::string& path) {
  join();
  return write_savepoint(*place_->file_system, path, take_snapshot(state_, trainable_),
                         {.threads = place_->saving_threads});
}

// Peers wait in a collective meanwhile. They must not give up before this replica has said what is wrong.
Deadline Trainer::Session::save_deadline() const {
  if (place_->size == 1) return Deadline::after(kSaveTimeout);
  return Deadline::after(std::min<Deadline::Clock::duration>(kSaveTimeout, place_->collective_timeout * 3 / 4));
}

bool Trainer::Session::submit_savepoint(const std::string& path, SaveOptions options,
                                        std::function<void(const std::string& why)> when_failed) {
  supervision_.enter(TrainingPhase::saving, state_.step);
  const std::int64_t step = state_.step;
  if (options.threads == 0) options.threads = place_->saving_threads;
  return writer_.submit({.path = path,
                         .step = step,
                         .take_snapshot = [this] { return copy_of_agreed_state(); },
                         .options = std::move(options),
                         .when_failed = std::move(when_failed)},
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
    agree();
    if (place_->rank == 0) {
      if (running_fit_ == nullptr) {
        save_before_stop();
      } else {
        collect_callback_states(*running_fit_);
        act_and_tell(*running_fit_, [&] { save_before_stop(); });
      }
    }
    supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
    runner_->communicator().barrier(Deadline::after(kSaveTimeout));
  }
  throw StopRequested{};
}

}  // namespace holdfast
