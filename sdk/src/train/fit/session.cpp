// Calls are numbered in the state. So a process that joins late, or a program that is started again, passes the
// finished calls with their recorded results. What a call was given is compared twice: with the record of an earlier
// start, and with what the other ranks were given. docs/decisions/calls.md

#include "train/fit/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <typeinfo>
#include <utility>

#include "core/integer_range.h"
#include "core/json_object.h"
#include "core/json_text.h"
#include "core/tensor_rows.h"
#include "data/batches/sample_places.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/shown_text.h"
#include "nn/operations/checks.h"
#include "train/agreement/same_program.h"
#include "train/context/configuration_json.h"
#include "train/context/other_choices.h"
#include "train/fit/ended_trainer.h"
#include "train/fit/fit_checks.h"
#include "train/fit/means.h"
#include "train/fit/watching/inference_context.h"
#include "train/fit/weights_in_use.h"
#include "train/state/attached_texts.h"
#include "train/state/run_results.h"
#include "train/step/model_trainable.h"

namespace holdfast {
Trainer::Session::Claim::Claim(std::shared_ptr<Replica::Context> context) : context_(std::move(context)) {
  if (context_->has_trainer) {
    throw Error(ErrorCode::invalid_argument,
                "a run has one Trainer at a time, which holds its whole state, and this program makes another one: end "
                "the first one's scope before, train and evaluate with the first, or give the other one, which is not "
                "part of the run then, a Replica::alone()");
  }
  // A host that comes back learns from the record of the first one that it has ended, and has no such record.
  if (context_->has_own_folders && context_->trainer >= 0) {
    throw Error(ErrorCode::unsupported,
                "the program makes a second Trainer in a run whose hosts have run directories of their own, where a "
                "host that comes back could not learn how the first one ended; use a run directory that all hosts "
                "share, or a run of its own for each Trainer");
  }
  context_->has_trainer = true;
  ++context_->trainer;
  context_->earlier_results = context_->results;
  context_->skipped.clear();
}

Trainer::Session::Session(Replica& replica, std::unique_ptr<Trainable> owned, Trainable& trainable)
    : claim_(replica.shared_context()),
      owned_(std::move(owned)),
      training_{.context = replica.shared_context(),
                .trainable = trainable,
                .supervision = *replica.shared_context()->supervision,
                .files = watched_files(*replica.shared_context())},
      agreement_(training_),
      saver_(training_, agreement_, training_.context->saving_watch),
      memory_saver_(training_, agreement_, saver_),
      samples_(training_),
      generation_(training_, agreement_, saver_, memory_saver_, samples_) {
  Replica::Context& context = *training_.context;
  // What follows may take long, and the watchdog has a limit of its own for a start.
  training_.supervision.enter(TrainingPhase::starting, 0);
  training_.supervision.reach(FaultPoint::start, -1);
  generation_.prepare_workers();
  TrainState& state = training_.state;
  state.seed = context.seed;
  state.shards = context.shards;
  state.threads_per_shard = context.threads_per_shard;
  state.reduction = context.reduction;
  // A program without a run directory has no run that its Trainers could be numbered in.
  state.trainer = training_.is_supervised() ? context.trainer : 0;
  // Logs are a map by name, so two sums of one name would become one without a message.
  require_distinct_sums(trainable.result_names());
  const std::string whose = name_of_class("model", "", typeid(trainable));
  state.graph = json_given_by(whose, "graph()", trainable.graph()).dump();
  state.configuration = json_given_by(whose, "configuration()", trainable.configuration()).dump();
  trainable.initialize(context.seed);
  // Before the process joins, while no other rank waits for it: a first step that touched this memory would be slow.
  if (training_.is_supervised()) StepRunner::prepare_memory(context, trainable);
}

// What waits for a device's stream comes after the runner, whose end aborts collectives that peers have left.
Trainer::Session::~Session() {
  // Asked first: without a runner nothing shows it any more.
  const bool was_in_generation = generation_.has_entered();
  training_.runner.reset();
  if (!training_.is_supervised()) return;
  if (was_in_generation) training_.context->is_in_generation = true;
  try {
    if (generation_.has_joined()) leave_to_next_trainer(training_);
  } catch (const std::exception& failure) {
    // A destructor must not throw. The next Trainer tells it.
    training_.context->open_call = failure.what();
  }
}

CallRecord Trainer::Session::new_call(const std::string& kind, const Dataset& data, std::int64_t epochs) {
  CallRecord call;
  call.kind = kind;
  // With sorted members, as a savepoint gives it back: a resume compares texts.
  call.data = nlohmann::json::parse(data.description()).dump();
  call.epochs = epochs;
  return call;
}

// What all ranks must be given alike. Weights from a file have a comparison, and a sentence, of their own.
static std::string arguments_of(const CallRecord& call, const std::string& further) {
  return JsonObject()
      .value("call", json_string(call.kind))
      .value("data", call.kind == "load_weights" ? "null" : call.data)
      .integer("epochs", call.epochs)
      .integer("steps_per_epoch", call.steps_per_epoch)
      .integer("accumulate", call.accumulate)
      .value("options", further)
      .text();
}

std::size_t Trainer::Session::join_call(const CallRecord& call, const std::string& further) {
  if (training_.running_fit != nullptr) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}() was called while fit() is under way, by a callback or in a loop over steps(); wait "
                            "until it has ended. FitOptions::validation evaluates after epochs",
                            call.kind));
  }
  // A savepoint of the last call may still be written from the state itself, which changes now.
  saver_.take_state_back();
  ++training_.calls_made;
  rejoin_call(call);
  const std::size_t index = training_.calls_made - 1;
  arguments_ = arguments_of(call, further);
  in_call(index, [&] {
    if (!compare_arguments()) begin_next_generation(call);
  });
  return index;
}

// In each generation before a rank goes on with a call: so all ranks compare, those that come from the generation
// before and those that are new.
bool Trainer::Session::compare_arguments() {
  const std::size_t index = training_.calls_made - 1;
  if (generation_.has_ended() || record_of(index).is_finished) return true;
  try {
    require_same_program(training_, fmt::format("call {} of the Trainer", index + 1), arguments_);
    training_.enter(TrainingPhase::callbacks);
    return true;
  } catch (const GenerationEnded&) {
    return false;
  }
}

void Trainer::Session::rejoin_call(const CallRecord& call) {
  TrainState& state = training_.state;
  const std::size_t index = training_.calls_made - 1;
  // Calls before this one, as many as the run has got to.
  const auto earlier_end = state.calls.begin() + static_cast<std::ptrdiff_t>(std::min(index, state.calls.size()));
  if (generation_.has_ended() && index >= state.calls.size()) {
    throw OtherChoices(fmt::format(
        "the run has gone on to its Trainer {}, and the program now makes a call {} ({}) of Trainer {}, which "
        "ended with {} calls; make the earlier calls, or {}",
        state.trainer + 2, index + 1, call.kind, state.trainer + 1, state.calls.size(), kHowToStartAnew));
  }
  // An earlier call that is open means that this rank is ahead of the run, whose state went back.
  const bool is_earlier_open =
      std::any_of(state.calls.begin(), earlier_end, [](const CallRecord& record) { return !record.is_finished; });
  if (is_earlier_open || index > state.calls.size()) {
    if (failed_call_ && failed_call_->index < index) refuse_later_call(index);
    // The program cannot go back to an earlier call; a process that begins anew can.
    throw Error(ErrorCode::cancelled, fmt::format("the run went back to an earlier call than number {}, which this "
                                                  "replica is in; a new process takes its place",
                                                  index + 1));
  }
  // The run has not been in this call before.
  if (index == state.calls.size()) {
    state.calls.push_back(call);
    state.epoch = 0;
    state.batch = 0;
    state.stage = call.kind == "fit" ? FitStage::before_epoch : FitStage::between_calls;
    return settle_kept_weights(index, call.keeps_weights);
  }
  // Before the comparison, since more epochs than recorded are not another choice.
  if (call.kind == "fit" && state.calls[index].kind == "fit") give_more_epochs(index, call.epochs);
  // The program may have been edited since the call was recorded.
  // Only what the program has just asked for differs in this copy, so only that can be named.
  TrainState now = state;
  now.calls[index].kind = call.kind;
  now.calls[index].data = call.data;
  now.calls[index].epochs = call.epochs;
  now.calls[index].steps_per_epoch = call.steps_per_epoch;
  now.calls[index].accumulate = call.accumulate;
  now.calls[index].adds_as_one_batch = call.adds_as_one_batch;
  now.calls[index].per_replica = call.per_replica;
  require_same_choices(state, now, "its savepoint");
  settle_kept_weights(index, call.keeps_weights);
}

// The callbacks of an edited program may begin or cease to keep weights. All ranks come here with the same program.
void Trainer::Session::settle_kept_weights(std::size_t call, bool keeps) {
  CallRecord& record = record_of(call);
  if (!record.is_finished && record.keeps_weights != keeps) {
    record.keeps_weights = keeps;
    record.kept_epoch = -1;
  }
  // Room for a copy of the weights is a part of the state's arrays, so it appears and goes on all ranks at once.
  const bool has_room = keeps_weights(training_.state);
  if (has_room == training_.kept.has_room()) return;
  // A snapshot on its way may be of the arrays that go.
  memory_saver_.finish();
  training_.kept.lay_out(has_room, training_.trainable);
}

// With other replicas or a run directory, the call is open: the others are in it, and a new start goes on with it.
void Trainer::Session::note_failure(std::size_t call, const std::string& sentence) {
  failed_call_ = {.index = call, .sentence = sentence};
  TrainState& state = training_.state;
  if (training_.is_supervised() || training_.context->size > 1 || call + 1 != state.calls.size()) return;
  // Alone, nobody will go on with it. Its steps stay, and the next call takes its number.
  state.calls.pop_back();
  training_.calls_made = call;
  std::erase_if(state.callbacks, [prefix = fmt::format("{}/", call)](const auto& callback) {
    return callback.first.starts_with(prefix);
  });
  state.epoch = 0;
  state.batch = 0;
  state.stage = FitStage::between_calls;
  asked_ = {};
  failed_call_.reset();
}

// Bad samples are the user's choice, and still a loss, so each reader of the results sees their number.
void Trainer::Session::note_skipped(std::size_t call, std::initializer_list<const Dataset*> data) {
  std::vector<const Stage*> stages;
  for (const Dataset* each : data) stages.push_back(each->last_stage().get());
  const SkippedSamples skipped = skipped_by(stages);
  training_.context->skipped.erase(call);
  if (skipped.count == 0) return;
  training_.context->skipped[call] = skipped;
  if (!training_.is_primary()) return;
  log(LogLevel::warning,
      fmt::format("{} left out of the data, as skip_bad() or skip_ragged allows. The first: {}",
                  skipped.count == 1 ? "1 bad sample was" : fmt::format("{} bad samples were", skipped.count),
                  fmt::join(skipped.first, "; ")));
  const nlohmann::json details{{"count", skipped.count}, {"first", skipped.first}};
  training_.supervision.report_event("samples_skipped",
                                     details.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Trainer::Session::refuse_later_call(std::size_t index) const {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("call {} of the Trainer cannot begin, since call {} ended with an error that the program "
                          "caught: {}. The other replicas may still be in that call. Let the error leave the training "
                          "function; a new start goes on with that call from the newest savepoint",
                          index + 1, failed_call_->index + 1, failed_call_->sentence));
}

void Trainer::Session::begin_next_generation(const CallRecord& call) {
  // A generation may end while its ranks compare, and the next one compares again.
  do {
    asked_ = {};
    generation_.enter();
    rejoin_call(call);
  } while (!compare_arguments());
}

// A fit() that ended by its epochs goes on as one that had more from the start. All ranks do the same, since all have
// the same state. docs/decisions/training-loop.md
void Trainer::Session::give_more_epochs(std::size_t call, std::int64_t epochs) {
  if (epochs <= record_of(call).epochs) return;
  if (generation_.has_ended()) {
    throw OtherChoices(
        fmt::format("call {} of Trainer {} of the run (fit) cannot get more epochs, since the run has gone "
                    "on to the next Trainer; use {} epochs as before, or {}",
                    call + 1, training_.state.trainer + 1, record_of(call).epochs, kHowToStartAnew));
  }
  const auto ended_by_its_epochs = [](const CallRecord& record) {
    return record.is_finished && !record.is_ended_by_callback &&
           static_cast<std::int64_t>(record.history.size()) == record.epochs;
  };
  TrainState& state = training_.state;
  if (ended_by_its_epochs(record_of(call))) {
    const auto later = state.calls.begin() + static_cast<std::ptrdiff_t>(call) + 1;
    // A later call has changed these weights, so the state of this call's end is only in a savepoint.
    const bool has_later_fit = std::any_of(later, state.calls.end(), changes_weights);
    if (has_later_fit) {
      asked_ = {};
      generation_.go_back_before_later_fit(call);
    }
  }
  if (ended_by_its_epochs(record_of(call))) {
    // Later calls have evaluated weights that are now trained further.
    state.calls.resize(call + 1);
    record_of(call).is_finished = false;
    if (std::exchange(record_of(call).kept_use, CallRecord::KeptUse::unused) == CallRecord::KeptUse::restored) {
      training_.kept.exchange(training_.trainable);
    }
    state.epoch = record_of(call).epochs;
    state.batch = 0;
    state.stage = FitStage::before_epoch;
    is_extended_ = true;
  }
  record_of(call).epochs = epochs;
}

void Trainer::Session::require_averages(Weights weights, const char* purpose) const {
  if (weights == Weights::trained || training_.trainable.keeps_averages()) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} asks for moving averages of the weights, and the optimizer keeps none; give it the option "
                  ".use_ema = true",
                  purpose));
}

Weights Trainer::Session::weights_for(AskedWeights asked, const char* purpose) const {
  const Weights weights = asked.value_or(weights_of_model_);
  require_averages(weights, purpose);
  return weights;
}

CallRecord Trainer::Session::new_call_with(const std::string& kind, const Dataset& data, Weights weights) {
  CallRecord call = new_call(kind, data, 1);
  // Another choice is another result, so a resumed run is refused.
  if (weights == Weights::averaged) {
    call.data = nlohmann::json{{"data", nlohmann::json::parse(call.data)}, {"weights", "averaged"}}.dump();
  }
  return call;
}

Logs Trainer::Session::evaluate(const Dataset& data, const InferenceOptions& options) {
  require_fitting_data(data, training_.trainable, "evaluate()");
  const Weights weights = weights_for(options.weights, "evaluate()");
  generation_.join(data, WarmUp::inference);
  const CallRecord begun = new_call_with("evaluate", data, weights);
  const std::size_t call = join_call(begun, watchers_as_arguments(options.callbacks));
  note_skipped(call, {&data});
  const InferenceContext context(training_, call, data.batches());
  const Watchers watchers(training_, options.callbacks, context);
  in_call(call, [&] { run_evaluate(call, begun, {data, weights, watchers}); });
  note_results(*training_.context, training_.state, training_.weights_digest());
  return record_of(call).results;
}

void Trainer::Session::run_evaluate(std::size_t call, const CallRecord& begun, const Inference& asked) {
  while (!record_of(call).is_finished) {
    try {
      const Logs results = evaluate_once(asked);
      if (!asked.watchers.empty()) meet_at_the_end();
      training_.enter(TrainingPhase::callbacks);
      record_of(call).results = results;
      record_of(call).is_finished = true;
    } catch (const GenerationEnded&) {
      begin_next_generation(begun);
    } catch (const RollBack&) {
      generation_.give_up_state();
      begin_next_generation(begun);
    }
  }
}

// Batches are sharded as in fit(), so the means have the same bits on any number of replicas.
Logs Trainer::Session::evaluate_once(const Inference& asked) {
  const Dataset& data = asked.data;
  const WeightsInUse in_use(training_.trainable, asked.weights);
  asked.watchers.tell(&Callback::on_test_begin);
  const auto loader = samples_.open(data, {});
  std::vector<double> sums(training_.trainable.sum_names().size());
  double samples = 0;  // or their weight
  std::vector<double> divisors;
  const auto results = [&] { return results_by_name(training_.trainable, sums, samples, divisors); };
  for (;;) {
    training_.enter(TrainingPhase::reading_data);
    const std::optional<Batch> batch = loader->next();
    if (!batch) break;
    asked.watchers.tell(&Callback::on_test_batch_begin, batch->index);
    const StepRunner::Outcome outcome = naming_sample_of(data, training_.context->seed, *batch, [&] {
      return training_.runner->evaluate(*batch, training_.state.step);
    });
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += outcome.sums[i];
    add_divisors(outcome.divisors, divisors);
    samples += batch->has_weights() ? outcome.weight : static_cast<double>(batch->samples);
    // A savepoint or a comparison is for the end of a step.
    asked_ |= {.stop = outcome.requests.stop, .regroup = outcome.requests.regroup};
    if (!asked.watchers.empty()) asked.watchers.tell(&Callback::on_test_batch_end, batch->index, results());
    end_where_asked();
  }
  Logs logs = results();
  asked.watchers.tell(&Callback::on_test_end, logs);
  return logs;
}

// If a rank fails before its last callback or sink returns, no rank may take the call for finished: a file that is
// written there would lack an end.
void Trainer::Session::meet_at_the_end() {
  training_.enter(TrainingPhase::waiting_for_peers);
  training_.runner->communicator().barrier(training_.runner->deadline());
  training_.enter(TrainingPhase::callbacks);
}

Tensor Trainer::Session::predict(const Tensor& features, std::int64_t batch_size, AskedWeights asked) {
  const Tensor* const input = &features;
  std::vector<Tensor> outputs = predict_arrays(std::span(&input, 1), batch_size, asked);
  // A Tensor is returned for one output, and the caller could not see which of several it is.
  if (outputs.size() == 1) return std::move(outputs.front());
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the model has {} outputs; call predict() with a list of its inputs", outputs.size()));
}

std::vector<Tensor> Trainer::Session::predict(const std::vector<Tensor>& inputs, std::int64_t batch_size,
                                              AskedWeights asked) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return predict_arrays(pointers, batch_size, asked);
}

// The elements that so many samples have.
static std::size_t elements_of(const Tensor& tensor, std::int64_t samples) {
  return static_cast<std::size_t>(samples * tensor.shape().without_batch().element_count());
}

static void check_predicted_inputs(const std::vector<ArraySpec>& wanted, std::span<const Tensor* const> inputs,
                                   std::int64_t batch_size) {
  if (wanted.size() != inputs.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("predict() takes a tensor for each of the {} inputs, not {}",
                                                         wanted.size(), inputs.size()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    check_prediction(wanted[i].shape, inputs[i]->shape(), batch_size);
    if (inputs[i]->dtype() == wanted[i].dtype && inputs[i]->shape()[0] == inputs[0]->shape()[0]) {
      check_integer_range(*inputs[i], wanted[i], i);
      continue;
    }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("predict() got {} {} for the input {}; all inputs need the model's types and the same "
                            "number of samples, so make the tensor anew, or declare the input with its type: "
                            "input(shape, {{.dtype = ...}})",
                            name(inputs[i]->dtype()), inputs[i]->shape().to_string(), wanted[i].to_string()));
  }
}

// Each rank predicts all samples by itself: nothing is summed, so no rank waits for another.
std::vector<Tensor> Trainer::Session::predict_arrays(std::span<const Tensor* const> inputs, std::int64_t batch_size,
                                                     AskedWeights asked) {
  Trainable& trainable = training_.trainable;
  const std::vector<ArraySpec> specs = trainable.inputs();
  check_predicted_inputs(specs, inputs, batch_size);
  const Weights weights = weights_for(asked, "predict()");
  generation_.join();
  const WeightsInUse in_use(trainable, weights);
  const RowLayout layout(specs);
  const std::int64_t all = inputs.front()->shape()[0];
  std::vector<Tensor> results;
  for (const ArraySpec& output : trainable.outputs()) results.emplace_back(output.shape.with_batch(all));
  std::vector<float> rows;
  std::vector<float> outputs;
  for (std::int64_t first = 0; first < all; first += batch_size) {
    const std::int64_t samples = std::min(batch_size, all - first);
    // Rows are made as a data set makes them, so a model reads inputs of any types in one way.
    rows.resize(static_cast<std::size_t>(samples) * layout.words());
    for (std::int64_t i = 0; i < samples; ++i) {
      read_row(layout, inputs, first + i,
               std::span(rows).subspan(static_cast<std::size_t>(i) * layout.words(), layout.words()));
    }
    std::size_t floats = 0;
    for (const Tensor& result : results) floats += elements_of(result, samples);
    outputs.resize(floats);
    trainable.predict({.seed = training_.context->seed,
                       .step = training_.state.step,
                       .first_sample = first,
                       .samples = samples,
                       .batch_samples = all,
                       .features = rows,
                       .targets = {},
                       .input_layout = layout.is_plain() ? nullptr : &layout},
                      outputs);
    const float* from = outputs.data();
    for (Tensor& result : results) {
      const std::size_t count = elements_of(result, samples);
      std::copy_n(from, count, result.values().data() + elements_of(result, first));
      from += count;
    }
  }
  return results;
}

// Before the state is compared with that of a savepoint or of another rank, as all choices of the program are.
void Trainer::Session::attach(const std::string& name, const std::string& text) {
  if (generation_.has_joined()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("attach({}) comes after a call that has begun the training, whose savepoints would lack the "
                    "text; attach texts before the first fit()",
                    quoted_text(name)));
  }
  check_attached(training_.state.attached, name, text);
  training_.state.attached[name] = text;
}

std::int64_t Trainer::Session::step() {
  generation_.join();
  return training_.state.step;
}

Model Trainer::Session::averaged_model() {
  auto* const trainable = dynamic_cast<ModelTrainable*>(&training_.trainable);
  if (trainable == nullptr) {
    throw Error(ErrorCode::unsupported,
                "averaged_model() takes a model of layers, and this Trainer has a Trainable of the application; read "
                "the averages from its own state");
  }
  require_averages(Weights::averaged, "averaged_model()");
  generation_.join();
  const WeightsInUse in_use(*trainable, Weights::averaged);
  return trainable->present_model();
}

Digest Trainer::Session::weights_digest() {
  generation_.join();
  return training_.weights_digest();
}

// On each rank that asks: the path is the program's own affair, and no savepoint of the run.
Digest Trainer::Session::save(const std::string& path) {
  generation_.join();
  return write_savepoint(*training_.context->file_system, path, view_of(training_.state, training_.state_arrays()),
                         {.threads = training_.context->saving_threads});
}

// All ranks get here with the same requests, since these come with the sums of the step.
void Trainer::Session::end_where_asked() {
  if (asked_.stop) saver_.stop();
  if (asked_.regroup) throw GenerationEnded("the replicas regroup, as the watchdog asked");
}

}  // namespace holdfast
