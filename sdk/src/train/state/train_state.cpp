// The same state gives the same JSON on every rank and in every run, so that equal savepoints are equal files. Optional
// keys are left out at their default values for the same reason. Other text is refused in a sentence of our own, which
// says what is wrong with it. docs/format.md

#include "train/state/train_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "train/context/other_choices.h"
#include "train/state/attached_texts.h"
#include "train/state/batch_changes.h"
#include "train/state/json_differences.h"
#include "train/state/logs_json.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// The error for text that to_json() did not write.
Error unreadable_state(const std::string& why) {
  return Error(ErrorCode::invalid_file, why);
}

// Every reader of a key goes through here, so that a missing one is named.
const Json& member(const Json& object, const std::string& key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) {
    throw unreadable_state(fmt::format("it has no \"{}\"", key));
  }
  return *found;
}

// The member `key`, of the type that `is_wanted` asks for and `wanted` names.
const Json& typed_member(const Json& object, const std::string& key, bool (Json::*is_wanted)() const noexcept,
                         const char* wanted) {
  const Json& value = member(object, key);
  if ((value.*is_wanted)()) return value;
  throw unreadable_state(fmt::format("its \"{}\" is of type {} and not {}", key, value.type_name(), wanted));
}

template <typename Integer>
Integer integer_at(const Json& object, const std::string& key) {
  const Json& value = typed_member(object, key, &Json::is_number_integer, "a whole number");
  // get() would cut off the digits that do not fit.
  const bool fits = value.is_number_unsigned() ? std::in_range<Integer>(value.get<std::uint64_t>())
                                               : std::in_range<Integer>(value.get<std::int64_t>());
  if (!fits) throw unreadable_state(fmt::format("its \"{}\" is {}, which is out of range", key, value.dump()));
  return value.get<Integer>();
}

// A number of steps, epochs or batches.
std::int64_t count_at(const Json& object, const std::string& key) {
  const auto count = integer_at<std::int64_t>(object, key);
  if (count < 0) throw unreadable_state(fmt::format("its \"{}\" is {}, which no training reaches", key, count));
  return count;
}

// Files have it as a double. One that f32 cannot hold becomes an infinity here and is refused.
float learning_rate_at(const Json& object) {
  const Json& value = typed_member(object, "learning_rate", &Json::is_number, "a number");
  const auto rate = value.get<float>();
  if (!(rate >= 0) || !std::isfinite(rate)) {
    throw unreadable_state(fmt::format("its \"learning_rate\" is {}, which no callback can set", value.dump()));
  }
  return rate;
}

std::string text_at(const Json& object, const std::string& key) {
  return typed_member(object, key, &Json::is_string, "a text").get<std::string>();
}

bool bool_at(const Json& object, const std::string& key) {
  return typed_member(object, key, &Json::is_boolean, "true or false").get<bool>();
}

const Json& array_at(const Json& object, const std::string& key) {
  return typed_member(object, key, &Json::is_array, "a list");
}

// Sums of an epoch may have overflowed, so they are written like means.
Json numbers(const std::vector<double>& values) {
  Json array = Json::array();
  for (const double value : values) array.push_back(number_json(value));
  return array;
}

std::vector<double> numbers_from(const Json& array) {
  if (!array.is_array()) throw unreadable_state(fmt::format("it has {} where a list belongs", array.type_name()));
  std::vector<double> values;
  for (const Json& value : array) values.push_back(number_from(value));
  return values;
}

// The kind is written, too, since JSON cannot tell 1 from 1.0, nor an infinity from the text "inf".
Json callback_value(const CallbackValue& value) {
  struct Writer {
    Json operator()(std::int64_t v) const { return {{"integer", v}}; }
    Json operator()(double v) const { return {{"real", number_json(v)}}; }
    Json operator()(const std::string& v) const { return {{"text", v}}; }
    Json operator()(const std::vector<double>& v) const { return {{"reals", numbers(v)}}; }
  };
  return std::visit(Writer{}, value);
}

CallbackValue callback_value_from(const Json& object) {
  if (!object.is_object() || object.size() != 1) throw unreadable_state("a callback's value is not a single value");
  // A kind of a later version is refused: its value might mean anything.
  const std::string& kind = object.begin().key();
  const Json& value = object.begin().value();
  if (kind == "integer") return integer_at<std::int64_t>(object, kind);
  if (kind == "real") return number_from(value);
  if (kind == "text") return text_at(object, kind);
  if (kind == "reals") return numbers_from(value);
  throw unreadable_state(fmt::format("a callback's value has the unknown kind \"{}\"", kind));
}

Json callbacks(const std::map<std::string, CallbackState>& states) {
  Json object = Json::object();
  for (const auto& [name, state] : states) {
    object[name] = Json::object();
    for (const auto& [key, value] : state) object[name][key] = callback_value(value);
  }
  return object;
}

std::map<std::string, CallbackState> callbacks_from(const Json& object) {
  std::map<std::string, CallbackState> states;
  for (const auto& [name, state] : object.items()) {
    // A callback without values is listed, too: it differs from one that was never there.
    states[name];
    typed_member(object, name, &Json::is_object, "the state of a callback");
    for (const auto& [key, value] : state.items()) states[name][key] = callback_value_from(value);
  }
  return states;
}

// These stand in the order of CallRecord::KeptUse.
constexpr const char* kKeptUseNames[] = {"unused", "due", "restored"};

Json per_replica_json(const CallRecord::PerReplica& record) {
  Json changes = Json::array();
  // Pairs and not objects: a run that grows often has many of these.
  for (const BatchChange& change : record.changes) changes.push_back({change.step, change.replicas});
  Json object = {{"batches_done", record.batches_done}, {"changes", changes}};
  if (record.rate_for_replicas > 0) object["rate_for_replicas"] = record.rate_for_replicas;
  return object;
}

CallRecord::PerReplica per_replica_from(const Json& object) {
  CallRecord::PerReplica record{.batches_done = count_at(object, "batches_done")};
  for (const Json& change : array_at(object, "changes")) {
    const bool is_pair = change.is_array() && change.size() == 2;
    if (!is_pair) throw unreadable_state("a change of its batch is not a step and a number of replicas");
    const Json named = {{"step", change[0]}, {"replicas", change[1]}};
    record.changes.push_back({.step = count_at(named, "step"), .replicas = integer_at<int>(named, "replicas")});
  }
  if (object.contains("rate_for_replicas")) record.rate_for_replicas = integer_at<int>(object, "rate_for_replicas");
  const std::string problem = problem_of_replay(record.changes);
  if (!problem.empty()) throw unreadable_state(fmt::format("its list of changes of the batch is wrong: {}", problem));
  return record;
}

// Left out at their defaults, so that runs without these features keep the bytes that they had.
Json call(const CallRecord& record) {
  Json history = Json::array();
  for (const Logs& epoch : record.history) history.push_back(logs_json(epoch));
  Json object = {{"kind", record.kind},
                 {"data", Json::parse(record.data)},
                 {"epochs", record.epochs},
                 {"finished", record.is_finished},
                 {"results", logs_json(record.results)},
                 {"history", history},
                 {"epoch_sums", numbers(record.epoch_sums)},
                 {"epoch_samples", record.epoch_samples}};
  if (record.begun_at_step >= 0) object["begun_at_step"] = record.begun_at_step;
  if (record.steps_per_epoch > 0) object["steps_per_epoch"] = record.steps_per_epoch;
  if (record.accumulate > 1) object["accumulate"] = record.accumulate;
  if (record.adds_as_one_batch) object["adds_as_one_batch"] = true;
  if (record.own_savepoint_step >= 0) object["own_savepoint_step"] = record.own_savepoint_step;
  if (record.is_ended_by_callback) object["ended_by_callback"] = true;
  if (record.epoch_skipped_samples > 0) object["epoch_skipped_samples"] = record.epoch_skipped_samples;
  if (record.epoch_weight) object["epoch_weight"] = numbers({*record.epoch_weight});
  if (!record.epoch_divisors.empty()) object["epoch_divisors"] = numbers(record.epoch_divisors);
  if (record.keeps_weights) {
    object["kept_weights"] = {{"epoch", record.kept_epoch},
                              {"use", kKeptUseNames[static_cast<std::size_t>(record.kept_use)]}};
  }
  if (record.per_replica) object["per_replica"] = per_replica_json(*record.per_replica);
  return object;
}

void read_kept_weights(const Json& object, CallRecord& record) {
  record.keeps_weights = true;
  // -1 while no epoch was kept.
  record.kept_epoch = integer_at<std::int64_t>(object, "epoch");
  const std::string use = text_at(object, "use");
  const auto found = std::find(std::begin(kKeptUseNames), std::end(kKeptUseNames), use);
  if (found == std::end(kKeptUseNames)) throw unreadable_state(fmt::format("it has the unknown use \"{}\"", use));
  record.kept_use = static_cast<CallRecord::KeptUse>(found - std::begin(kKeptUseNames));
}

// Keys that only some records have are optional here, as call() leaves them out at their defaults.
CallRecord call_from(const Json& object) {
  CallRecord record;
  record.kind = text_at(object, "kind");
  record.data = member(object, "data").dump();
  record.epochs = integer_at<std::int64_t>(object, "epochs");
  record.is_finished = bool_at(object, "finished");
  record.results = logs_from(member(object, "results"));
  for (const Json& epoch : array_at(object, "history")) record.history.push_back(logs_from(epoch));
  record.epoch_sums = numbers_from(member(object, "epoch_sums"));
  record.epoch_samples = integer_at<std::int64_t>(object, "epoch_samples");
  if (object.contains("steps_per_epoch")) record.steps_per_epoch = count_at(object, "steps_per_epoch");
  if (object.contains("accumulate")) record.accumulate = count_at(object, "accumulate");
  if (object.contains("adds_as_one_batch")) record.adds_as_one_batch = bool_at(object, "adds_as_one_batch");
  if (object.contains("epoch_skipped_samples")) {
    record.epoch_skipped_samples = integer_at<std::int64_t>(object, "epoch_skipped_samples");
  }
  if (object.contains("epoch_weight")) {
    const std::vector<double> weight = numbers_from(member(object, "epoch_weight"));
    if (weight.size() != 1) throw Error(ErrorCode::invalid_file, "its epoch_weight is not one number");
    record.epoch_weight = weight.front();
  }
  if (object.contains("epoch_divisors")) {
    record.epoch_divisors = numbers_from(member(object, "epoch_divisors"));
  }
  if (object.contains("own_savepoint_step")) {
    record.own_savepoint_step = integer_at<std::int64_t>(object, "own_savepoint_step");
  }
  if (object.contains("begun_at_step")) record.begun_at_step = count_at(object, "begun_at_step");
  if (object.contains("ended_by_callback")) record.is_ended_by_callback = bool_at(object, "ended_by_callback");
  if (object.contains("kept_weights")) read_kept_weights(member(object, "kept_weights"), record);
  if (object.contains("per_replica")) record.per_replica = per_replica_from(member(object, "per_replica"));
  return record;
}

// The logs that belong to exactly this state. There are some from the end of an epoch until the next step.
Json metrics_of(const TrainState& state) {
  // They are for readers of the file, such as best_savepoint(); a resume does not read them.
  if (state.batch != 0 || state.calls.empty() || state.calls.back().history.empty()) return Json::object();
  const CallRecord& record = state.calls.back();
  // Weights that were restored are those of an earlier epoch, and so are the metrics of this state.
  const bool has_kept = record.kept_use == CallRecord::KeptUse::restored && record.kept_epoch >= 0 &&
                        std::cmp_less(record.kept_epoch, record.history.size());
  return logs_json(has_kept ? record.history[static_cast<std::size_t>(record.kept_epoch)] : record.history.back());
}

Json order_of_sums(const CallRecord& record) {
  return record.adds_as_one_batch ? "that of one batch" : "that of an earlier version";
}

Json batch_policy(const CallRecord& record) {
  if (!record.per_replica) return "fixed";
  return fmt::format("per_replica with rate_for_replicas = {}", record.per_replica->rate_for_replicas);
}

// Adds a sentence such as "training/optimizer/learning_rate was 0.001 and is 0.002" for each leaf that differs.
void describe_differences(const std::string& path, const Json& saved, const Json& now,
                          std::vector<std::string>& sentences) {
  for (const JsonDifference& difference : differences_of(path, saved, now)) {
    sentences.push_back(fmt::format("{} was {} and is {}", difference.path, difference.first, difference.second));
  }
}

// A graph without the flags of its layers, and the names of the frozen ones.
struct GraphAndFrozen {
  Json graph;
  std::vector<std::string> frozen;
};

GraphAndFrozen without_frozen(const std::string& text) {
  GraphAndFrozen result{.graph = Json::parse(text), .frozen = {}};
  // The graph of an application's own model may be any JSON.
  if (!result.graph.is_object() || !result.graph.contains("layers")) return result;
  Json& layers = result.graph["layers"];
  if (!layers.is_array()) return result;
  for (Json& layer : layers) {
    if (!layer.is_object() || layer.value("trainable", Json()) != false) continue;
    result.frozen.push_back(layer.value("name", Json()).dump());
    layer.erase("trainable");
  }
  return result;
}

// A graph whose calls belong to no segment, as it would be written: no bit depends on what is recomputed, and a run
// that is short of memory may change it. Without segments a model may be a chain, which has a text of its own
// (graph_text.cpp).
Json without_segments(Json graph) {
  if (!graph.is_object() || !graph.contains("calls") || !graph["calls"].is_array()) return graph;
  bool had_segments = false;
  for (Json& call : graph["calls"]) had_segments |= call.is_object() && call.erase("segment") > 0;
  if (!had_segments) return graph;
  const auto member_of = [](const Json& json, const char* name) {
    return json.is_object() ? json.value(name, Json()) : Json();
  };
  const Json layers = member_of(graph, "layers"), inputs = member_of(graph, "inputs");
  if (!layers.is_array() || layers.empty() || !inputs.is_array() || inputs.size() != 1) return graph;
  Json calls = Json::array();
  Json source = {-1, 0};
  bool has_nested = false;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    calls.push_back({{"layer", i}, {"inputs", Json::array({source})}});
    source = {i, 0};
    const Json name = member_of(layers[i], "name");
    has_nested |= !name.is_string() || name.get<std::string>().find('/') != std::string::npos;
  }
  const bool is_chain = graph["calls"] == calls && member_of(graph, "outputs") == Json::array({source}) &&
                        member_of(inputs[0], "dtype") == "f32" && !graph.contains("output_names") && !has_nested;
  if (!is_chain) return graph;
  return {{"format", "holdfast.sequential"},
          {"version", member_of(graph, "version")},
          {"input_shape", member_of(inputs[0], "shape")},
          {"layers", layers}};
}

// Names the part of a state that JSON cannot hold.
std::string text_that_is_not_utf8(const Json& state) {
  // Only dump() looks at the bytes, so it is tried for each part.
  const auto is_text = [](const Json& part) {
    try {
      part.dump();
      return true;
    } catch (const Json::type_error&) {
      return false;
    }
  };
  const Json callbacks = state.value("callbacks", Json::object());
  for (const auto& [name, callback] : callbacks.items()) {
    if (is_text(Json(name)) && !is_text(callback)) return fmt::format("the state of the callback {}", name);
  }
  return "the name of a callback or a metric";
}

// A state within evaluate() counts as between calls: evaluate() has no epochs.
FitStage stage_between_steps(const TrainState& state) {
  const bool is_fit_open = !state.calls.empty() && state.calls.back().kind == "fit" && !state.calls.back().is_finished;
  if (!is_fit_open) return FitStage::between_calls;
  return state.batch == 0 ? FitStage::before_epoch : FitStage::in_epoch;
}

// These stand in the order of FitStage. They travel between replicas of one program, and never into a file.
constexpr const char* kStageNames[] = {"before_epoch", "in_epoch", "last_step", "ending", "closing", "between_calls"};

FitStage stage_from_name(const std::string& name) {
  const auto found = std::find(std::begin(kStageNames), std::end(kStageNames), name);
  if (found == std::end(kStageNames)) {
    throw unreadable_state(fmt::format("it has the unknown stage \"{}\"", name));
  }
  return static_cast<FitStage>(found - std::begin(kStageNames));
}

// Graph and configuration are JSON already. As objects they can be compared and read.
Json state_json(const TrainState& state) {
  Json calls = Json::array();
  for (const CallRecord& record : state.calls) calls.push_back(call(record));
  Json object = {{"kind", "savepoint"},
                 {"holdfast", HOLDFAST_VERSION},
                 {"graph", Json::parse(present_graph(state))},
                 {"configuration", Json::parse(present_configuration(state))},
                 {"seed", state.seed},
                 {"shards", state.shards},
                 {"threads_per_shard", state.threads_per_shard},
                 {"step", state.step},
                 {"epoch", state.epoch},
                 {"batch", state.batch},
                 {"metrics", metrics_of(state)},
                 {"calls", calls},
                 {"callbacks", callbacks(state.callbacks)}};
  // Readers of a file want what its arrays are of. A resume compares what the run began with.
  if (!laid_out_training(state).empty()) {
    object["begun_with"] = {{"graph", Json::parse(state.graph)}, {"configuration", Json::parse(state.configuration)}};
  }
  // Left out at its default value, so that savepoints keep the bytes that they had without this option.
  if (state.reduction != Reduction::shard_order) object["reduction"] = name(state.reduction);
  if (state.trainer > 0) object["trainer"] = state.trainer;
  if (!state.attached.empty()) object[kAttachedKey] = state.attached;
  // Widened, so that its decimals read back as the same float.
  if (state.learning_rate) object["learning_rate"] = static_cast<double>(*state.learning_rate);
  // A run may be stopped in the validation after the last step. The position alone would let fit() train on.
  const bool is_in_fit = stage_between_steps(state) == FitStage::in_epoch;
  if (is_in_fit && state.stage == FitStage::ending) object["is_ending"] = true;
  // on_step_begin() asked for it, and is not called again for the step that is still to come.
  if (is_in_fit && state.stage == FitStage::last_step) object["ends_after_step"] = true;
  return object;
}

std::string text_of(const Json& object) {
  try {
    return object.dump(1);
  } catch (const Json::type_error&) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has bytes that are not UTF-8, which a savepoint cannot hold; keep bytes as numbers, or "
                            "write them as hexadecimal digits",
                            text_that_is_not_utf8(object)));
  }
}

}  // namespace

bool keeps_weights(const TrainState& state) {
  const auto last = std::find_if(state.calls.rbegin(), state.calls.rend(), changes_weights);
  return last != state.calls.rend() && last->keeps_weights;
}

std::string to_json(const TrainState& state) {
  return text_of(state_json(state));
}

std::string to_weights_json(const TrainState& state) {
  Json object = {{"kind", "weights"},
                 {"holdfast", HOLDFAST_VERSION},
                 {"graph", Json::parse(present_graph(state))},
                 {"step", state.step},
                 {"metrics", metrics_of(state)}};
  if (!state.attached.empty()) object[kAttachedKey] = state.attached;
  return text_of(object);
}

// Survivors tell newcomers the stage. A savepoint has none: it follows from the position, "is_ending" and
// "ends_after_step".
std::string to_replica_json(const TrainState& state) {
  Json object = state_json(state);
  object["stage"] = kStageNames[static_cast<std::size_t>(state.stage)];
  return text_of(object);
}

TrainState train_state_from_replica_json(const std::string& text) {
  TrainState state = train_state_from_json(text, "the state that another replica sent");
  // Parsed a second time, which costs little once a generation.
  state.stage = stage_from_name(text_at(Json::parse(text), "stage"));
  return state;
}

TrainState train_state_from_json(const std::string& text, const std::string& origin) {
  // Parsed without exceptions: damaged text must end in the same sentence as a wrong member.
  const bool is_deep = is_deep_json(text);
  const Json object = is_deep ? Json() : Json::parse(text, nullptr, false);
  if (object.is_object() && object.value("kind", Json()) != "savepoint") {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{0} holds arrays, as `holdfast convert` writes them, but no training state: no model, no "
                            "options, no step. To make it a savepoint, write it with `holdfast convert FILE {0} --like "
                            "SAVEPOINT`, where SAVEPOINT is one of the same model",
                            origin));
  }
  try {
    if (is_deep) throw unreadable_state("its lists and objects are nested deeper than any that Holdfast writes");
    if (object.is_discarded()) throw unreadable_state("it is not JSON");
    TrainState state;
    // As text again, as the Trainable gives it. Only require_same_choices() looks inside.
    const Json& begun = object.contains("begun_with") ? member(object, "begun_with") : object;
    state.graph = member(begun, "graph").dump();
    state.configuration = member(begun, "configuration").dump();
    state.seed = integer_at<std::uint64_t>(object, "seed");
    state.shards = integer_at<int>(object, "shards");
    state.threads_per_shard = integer_at<int>(object, "threads_per_shard");
    if (object.contains("reduction")) state.reduction = reduction_from_name(text_at(object, "reduction"));
    if (object.contains("trainer")) state.trainer = integer_at<int>(object, "trainer");
    state.attached = attached_from(object);
    state.step = count_at(object, "step");
    state.epoch = count_at(object, "epoch");
    state.batch = count_at(object, "batch");
    for (const Json& record : array_at(object, "calls")) state.calls.push_back(call_from(record));
    state.callbacks = callbacks_from(typed_member(object, "callbacks", &Json::is_object, "an object"));
    if (object.contains("learning_rate")) state.learning_rate = learning_rate_at(object);
    state.stage = stage_between_steps(state);
    const auto is_set = [&object](const char* key) { return object.contains(key) && bool_at(object, key); };
    const bool is_in_fit = state.stage == FitStage::in_epoch;
    if (is_in_fit && is_set("ends_after_step")) state.stage = FitStage::last_step;
    if (is_in_fit && is_set("is_ending")) state.stage = FitStage::ending;
    return state;
  } catch (const Error& failure) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("the metadata of {} cannot be read as a training state: {}; another program or a later "
                            "version of Holdfast wrote it. Use another savepoint",
                            origin, failure.what()));
  }
}

void require_same_choices(const TrainState& saved, const TrainState& now, const std::string& origin) {
  std::vector<std::string> sentences;
  // The names of the layers say more than their numbers in the graph.
  const GraphAndFrozen saved_model = without_frozen(saved.graph);
  const GraphAndFrozen new_model = without_frozen(now.graph);
  if (saved_model.frozen != new_model.frozen) {
    sentences.push_back(fmt::format("the frozen layers were [{}] and are [{}]", fmt::join(saved_model.frozen, ", "),
                                    fmt::join(new_model.frozen, ", ")));
  }
  describe_differences("model", without_segments(saved_model.graph), without_segments(new_model.graph), sentences);
  describe_differences("training", Json::parse(saved.configuration), Json::parse(now.configuration), sentences);
  describe_differences("seed", saved.seed, now.seed, sentences);
  describe_differences("shards", saved.shards, now.shards, sentences);
  describe_differences("threads_per_shard", saved.threads_per_shard, now.threads_per_shard, sentences);
  describe_differences("reduction", std::string(name(saved.reduction)), std::string(name(now.reduction)), sentences);
  describe_attached_differences(saved.attached, now.attached, sentences);
  // Calls that only one of the two has do not contradict: the program goes on after them.
  for (std::size_t i = 0; i < std::min(saved.calls.size(), now.calls.size()); ++i) {
    const std::string call_name = fmt::format("call {} of the Trainer", i + 1);
    describe_differences(fmt::format("{} (fit or evaluate)", call_name), saved.calls[i].kind, now.calls[i].kind,
                         sentences);
    describe_differences(fmt::format("{}: epochs", call_name), saved.calls[i].epochs, now.calls[i].epochs, sentences);
    describe_differences(fmt::format("{}: steps_per_epoch", call_name), saved.calls[i].steps_per_epoch,
                         now.calls[i].steps_per_epoch, sentences);
    describe_differences(fmt::format("{}: accumulate", call_name), saved.calls[i].accumulate, now.calls[i].accumulate,
                         sentences);
    if (!saved.calls[i].is_finished && saved.calls[i].accumulate == now.calls[i].accumulate) {
      describe_differences(fmt::format("{}: order in which accumulated batches are added", call_name),
                           order_of_sums(saved.calls[i]), order_of_sums(now.calls[i]), sentences);
    }
    describe_differences(fmt::format("{}: global_batch", call_name), batch_policy(saved.calls[i]),
                         batch_policy(now.calls[i]), sentences);
    describe_differences(fmt::format("{}: data", call_name), Json::parse(saved.calls[i].data),
                         Json::parse(now.calls[i].data), sentences);
  }
  if (sentences.empty()) return;
  // Another model differs in hundreds of leaves, and eight of them say so.
  constexpr std::size_t kShown = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(sentences.size(), kShown); ++i) list += (i == 0 ? "" : "; ") + sentences[i];
  if (sentences.size() > kShown) list += fmt::format("; and {} more", sentences.size() - kShown);
  throw OtherChoices(fmt::format(
      "the run cannot go on from {} with other options, because its bits depend on them: {}. Use the earlier "
      "options, or {}",
      origin, list, kHowToStartAnew));
}

}  // namespace holdfast
