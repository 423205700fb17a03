#include "train/train_state.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "train/other_choices.h"

namespace holdfast {
namespace {

using nlohmann::json;

// JSON has no NaN and no infinities.
json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number_from(const json& value) {
  if (!value.is_string()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  if (text == "inf") return infinity;
  if (text == "-inf") return -infinity;
  throw json::other_error::create(501, "\"" + text + "\" is no number", nullptr);
}

json numbers(const std::vector<double>& values) {
  json array = json::array();
  for (const double value : values) array.push_back(number(value));
  return array;
}

std::vector<double> numbers_from(const json& array) {
  std::vector<double> values;
  for (const json& value : array) values.push_back(number_from(value));
  return values;
}

json logs(const Logs& values) {
  json object = json::object();
  for (const auto& [name, value] : values) object[name] = number(value);
  return object;
}

Logs logs_from(const json& object) {
  Logs values;
  for (const auto& [name, value] : object.items()) values[name] = number_from(value);
  return values;
}

// The kind is written down, since JSON cannot tell 1 from 1.0 nor "inf" from a text.
json callback_value(const CallbackValue& value) {
  struct Writer {
    json operator()(std::int64_t v) const { return {{"integer", v}}; }
    json operator()(double v) const { return {{"real", number(v)}}; }
    json operator()(const std::string& v) const { return {{"text", v}}; }
    json operator()(const std::vector<double>& v) const { return {{"reals", numbers(v)}}; }
  };
  return std::visit(Writer{}, value);
}

CallbackValue callback_value_from(const json& object) {
  if (!object.is_object() || object.size() != 1)
    throw json::other_error::create(501, "a callback's value is no single value", nullptr);
  const std::string& kind = object.begin().key();
  const json& value = object.begin().value();
  if (kind == "integer") return value.get<std::int64_t>();
  if (kind == "real") return number_from(value);
  if (kind == "text") return value.get<std::string>();
  if (kind == "reals") return numbers_from(value);
  throw json::other_error::create(501, "\"" + kind + "\" is no kind of value", nullptr);
}

json callbacks(const std::map<std::string, CallbackState>& states) {
  json object = json::object();
  for (const auto& [name, state] : states) {
    object[name] = json::object();
    for (const auto& [key, value] : state) object[name][key] = callback_value(value);
  }
  return object;
}

std::map<std::string, CallbackState> callbacks_from(const json& object) {
  std::map<std::string, CallbackState> states;
  for (const auto& [name, state] : object.items()) {
    states[name];
    for (const auto& [key, value] : state.items()) states[name][key] = callback_value_from(value);
  }
  return states;
}

json call(const CallRecord& record) {
  json history = json::array();
  for (const Logs& epoch : record.history) history.push_back(logs(epoch));
  json object = {{"kind", record.kind},
                 {"data", json::parse(record.data)},
                 {"epochs", record.epochs},
                 {"finished", record.is_finished},
                 {"results", logs(record.results)},
                 {"history", history},
                 {"epoch_sums", numbers(record.epoch_sums)},
                 {"epoch_samples", record.epoch_samples}};
  if (record.own_savepoint_step >= 0) object["own_savepoint_step"] = record.own_savepoint_step;
  if (record.is_ended_by_callback) object["ended_by_callback"] = true;
  return object;
}

CallRecord call_from(const json& object) {
  CallRecord record;
  record.kind = object.at("kind").get<std::string>();
  record.data = object.at("data").dump();
  record.epochs = object.at("epochs").get<std::int64_t>();
  record.is_finished = object.at("finished").get<bool>();
  record.own_savepoint_step = object.value("own_savepoint_step", std::int64_t{-1});
  record.is_ended_by_callback = object.value("ended_by_callback", false);
  record.results = logs_from(object.at("results"));
  for (const json& epoch : object.at("history")) record.history.push_back(logs_from(epoch));
  record.epoch_sums = numbers_from(object.at("epoch_sums"));
  record.epoch_samples = object.at("epoch_samples").get<std::int64_t>();
  return record;
}

// The logs that belong to exactly this state: at the end of an epoch, until the next step.
json metrics(const TrainState& state) {
  const bool is_between_epochs = state.batch == 0 && !state.calls.empty() && !state.calls.back().history.empty();
  return is_between_epochs ? logs(state.calls.back().history.back()) : json::object();
}

// "optimizer.learning_rate was 0.001 and is 0.002", one for each leaf that differs.
void describe_differences(const std::string& path, const json& saved, const json& now,
                          std::vector<std::string>& sentences) {
  if (saved == now) return;
  if (saved.is_structured() && saved.type() == now.type()) {
    const json saved_leaves = saved.flatten();
    const json now_leaves = now.flatten();
    json all = saved_leaves;
    all.update(now_leaves);
    for (const auto& [pointer, unused] : all.items()) {
      const json before = saved_leaves.value(pointer, json("absent"));
      const json after = now_leaves.value(pointer, json("absent"));
      if (before != after) sentences.push_back(path + pointer + " was " + before.dump() + " and is " + after.dump());
    }
    return;
  }
  sentences.push_back(path + " was " + saved.dump() + " and is " + now.dump());
}

}  // namespace

std::string to_json(const TrainState& state) {
  json calls = json::array();
  for (const CallRecord& record : state.calls) calls.push_back(call(record));
  json object = {{"kind", "savepoint"},
                 {"holdfast", HOLDFAST_VERSION},
                 {"graph", json::parse(state.graph)},
                 {"configuration", json::parse(state.configuration)},
                 {"seed", state.seed},
                 {"shards", state.shards},
                 {"threads_per_shard", state.threads_per_shard},
                 {"step", state.step},
                 {"epoch", state.epoch},
                 {"batch", state.batch},
                 {"metrics", metrics(state)},
                 {"calls", calls},
                 {"callbacks", callbacks(state.callbacks)}};
  // Where the sums have the order that they always had, nothing is said.
  if (state.reduction != Reduction::shard_order) object["reduction"] = name(state.reduction);
  return object.dump(1);
}

static Error unreadable(const std::string& origin, const std::exception& failure) {
  return Error(ErrorCode::invalid_file,
               "the metadata of " + origin + " cannot be read as a training state: " + failure.what());
}

TrainState train_state_from_json(const std::string& text, const std::string& origin) {
  try {
    const json object = json::parse(text);
    if (object.at("kind") != "savepoint")
      throw json::other_error::create(501, "it is no savepoint of a training run", nullptr);
    TrainState state;
    state.graph = object.at("graph").dump();
    state.configuration = object.at("configuration").dump();
    state.seed = object.at("seed").get<std::uint64_t>();
    state.shards = object.at("shards").get<int>();
    state.threads_per_shard = object.at("threads_per_shard").get<int>();
    if (object.contains("reduction")) {
      state.reduction = reduction_from_name(object.at("reduction").get<std::string>());
    }
    state.step = object.at("step").get<std::int64_t>();
    state.epoch = object.at("epoch").get<std::int64_t>();
    state.batch = object.at("batch").get<std::int64_t>();
    for (const json& record : object.at("calls")) state.calls.push_back(call_from(record));
    state.callbacks = callbacks_from(object.at("callbacks"));
    return state;
  } catch (const json::exception& failure) {
    throw unreadable(origin, failure);
  } catch (const Error& failure) {
    throw unreadable(origin, failure);
  }
}

void require_same_choices(const TrainState& saved, const TrainState& now, const std::string& origin) {
  std::vector<std::string> sentences;
  describe_differences("model", json::parse(saved.graph), json::parse(now.graph), sentences);
  describe_differences("training", json::parse(saved.configuration), json::parse(now.configuration), sentences);
  describe_differences("seed", saved.seed, now.seed, sentences);
  describe_differences("shards", saved.shards, now.shards, sentences);
  describe_differences("threads_per_shard", saved.threads_per_shard, now.threads_per_shard, sentences);
  describe_differences("reduction", std::string(name(saved.reduction)), std::string(name(now.reduction)), sentences);
  for (std::size_t i = 0; i < std::min(saved.calls.size(), now.calls.size()); ++i) {
    const std::string call_name = "call " + std::to_string(i);
    describe_differences(call_name + " (fit or evaluate)", saved.calls[i].kind, now.calls[i].kind, sentences);
    describe_differences(call_name + " epochs", saved.calls[i].epochs, now.calls[i].epochs, sentences);
    describe_differences(call_name + " data", json::parse(saved.calls[i].data), json::parse(now.calls[i].data),
                         sentences);
  }
  if (sentences.empty()) return;
  constexpr std::size_t kShown = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(sentences.size(), kShown); ++i) list += (i == 0 ? "" : "; ") + sentences[i];
  if (sentences.size() > kShown) list += "; and " + std::to_string(sentences.size() - kShown) + " more";
  throw OtherChoices("the run cannot go on from " + origin + " with other options, since its bits depend on them: " +
                     list + ". Use the earlier options, or " + kHowToStartAnew);
}

}  // namespace holdfast
