// The bits of a run depend on these choices, so they are recorded at its first start and compared at every later one.
// Under `holdfast run` each replica settles them itself, because the watchdog does not know them.
// docs/decisions/runs.md

#include "train/supervise/run_choices.h"

#include <limits>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/base/whole_number.h"
#include "train/context/other_choices.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// More than any machine has cores: a larger number is a mistake.
constexpr int kMostThreadsPerShard = 4096;

std::string choices_path(const SuperviseOptions& options) {
  return options.run_directory + "/run.json";
}

void require_same(const std::string& choice, const std::string& recorded, const std::string& asked,
                  const std::string& path) {
  if (recorded == asked) return;
  throw OtherChoices(fmt::format(
      "the run was started with {} {} ({}), and its bits depend on it. To have {}, {}, or give another run directory",
      choice, recorded, path, asked, kHowToStartAnew));
}

Error damaged_choices(const std::string& path, const std::string& why) {
  return Error(ErrorCode::invalid_file,
               fmt::format("{} is damaged: {}; restore it, or use another run directory", path, why));
}

// JSON's own conversion would wrap -1 and cut 1.5, so the text is read strictly.
template <class Number>
Number recorded_number(const Json& object, const char* name, Number lowest, const std::string& path) {
  if (!object.contains(name)) throw damaged_choices(path, fmt::format("it has no \"{}\"", name));
  const std::string text = object.at(name).dump(-1, ' ', true, Json::error_handler_t::replace);
  const auto number = whole_number<Number>(text);
  if (number && *number >= lowest) return *number;
  throw damaged_choices(path, fmt::format("its \"{}\" is {}, not a whole number from {} to {}", name,
                                          shown_text(text, 40), lowest, std::numeric_limits<Number>::max()));
}

Reduction recorded_reduction(const Json& object, const std::string& path) {
  // Runs from before this option have no such member.
  const Json recorded = object.value("reduction", Json(name(Reduction::shard_order)));
  for (const Reduction reduction : {Reduction::shard_order, Reduction::fastest}) {
    if (recorded == name(reduction)) return reduction;
  }
  throw damaged_choices(path,
                        fmt::format("its \"reduction\" is {}",
                                    shown_text(recorded.dump(-1, ' ', true, Json::error_handler_t::replace), 40)));
}

RunChoices recorded_choices(const std::string& path) {
  // Without exceptions: damaged text gets the same kind of sentence as a wrong member.
  const Json object = Json::parse(read_text_file(posix_file_system(), path), nullptr, false);
  if (!object.is_object()) throw damaged_choices(path, "it is not a JSON object");
  return {.seed = recorded_number<std::uint64_t>(object, "seed", 0, path),
          .shards = recorded_number<int>(object, "shards", 1, path),
          .threads_per_shard = recorded_number<int>(object, "threads_per_shard", 1, path),
          .reduction = recorded_reduction(object, path),
          .first_replicas = object.contains("replicas") ? recorded_number<int>(object, "replicas", 1, path) : 1};
}

// The number of replicas is not compared here: with the shards' order it changes no bit.
void require_same_choices(const RunChoices& recorded, const RunChoices& asked, const std::string& path) {
  const auto require = [&](const std::string& choice, const auto& value, const auto& other) {
    require_same(choice, std::to_string(value), std::to_string(other), path);
  };
  require("seed", recorded.seed, asked.seed);
  require("shards", recorded.shards, asked.shards);
  require("threads_per_shard", recorded.threads_per_shard, asked.threads_per_shard);
  require_same("reduction", std::string(name(recorded.reduction)), std::string(name(asked.reduction)), path);
}

}  // namespace

void require_same_replicas(const RunChoices& choices, int replicas, const SuperviseOptions& options) {
  // With the shards' order any number of replicas gives the same bits.
  if (choices.reduction != Reduction::fastest || choices.first_replicas == replicas) return;
  const std::string sentence = fmt::format(
      "the run was started with {} replicas and Reduction::fastest ({}), so that its bits depend on their number, and "
      "would go on with {}",
      choices.first_replicas, choices_path(options), replicas);
  if (!options.accept_other_arithmetic) {
    throw OtherChoices(
        fmt::format("{}. Use as many as before, set accept_other_arithmetic, or {}", sentence, kHowToStartAnew));
  }
  log(LogLevel::warning, fmt::format("{}; accepted", sentence));
}

RunChoices settle_choices(const SuperviseOptions& options, int replicas) {
  RunChoices choices{.seed = options.seed,
                     .shards = options.shards,
                     .threads_per_shard = options.threads_per_shard,
                     .reduction = options.reduction,
                     .first_replicas = replicas};
  if (choices.shards < 0) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("shards is {}; use a positive number, or 0 for as many as there are replicas", choices.shards));
  }
  if (options.memory_snapshot_every < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("memory_snapshot_every is {}; use a number of steps, or 0 for a choice by time",
                            options.memory_snapshot_every));
  }
  const std::string path = choices_path(options);
  if (posix_file_system().exists(path)) {
    const RunChoices recorded = recorded_choices(path);
    // 0 asks for what the run has.
    if (choices.shards == 0) choices.shards = recorded.shards;
    choices.first_replicas = recorded.first_replicas;
    require_same_choices(recorded, choices, path);
  }
  choices.shards_are_chosen = choices.shards != 0;
  // The first start decides. From then on the number is in run.json.
  if (choices.shards == 0) choices.shards = replicas;
  return choices;
}

// Several replicas may record them at once when their watchdog knows no choices. They write the same text, or check()
// finds the difference.
void record_choices(const SuperviseOptions& options, const RunChoices& choices, bool tells) {
  const std::string path = choices_path(options);
  if (posix_file_system().exists(path)) return require_same_choices(recorded_choices(path), choices, path);
  if (!choices.shards_are_chosen && tells) {
    const std::string shards = std::to_string(choices.shards);
    log(LogLevel::info,
        fmt::format("a batch is cut into {} shards, as many as this run has replicas at its first start; the bits "
                    "depend on that number: with shards = {} a run computes the same bits on fewer replicas, too",
                    shards, shards));
  }
  Json object = {{"seed", choices.seed}, {"shards", choices.shards}, {"threads_per_shard", choices.threads_per_shard}};
  // Only then do they matter, and other runs keep the file that they had.
  if (choices.reduction == Reduction::fastest) {
    object["reduction"] = name(choices.reduction);
    object["replicas"] = choices.first_replicas;
  }
  const std::string text = object.dump(1) + "\n";
  write_whole_file(posix_file_system(), path, std::as_bytes(std::span(text)));
}

void require_recorded(const SuperviseOptions& options, const RunChoices& choices) {
  const std::string path = choices_path(options);
  require_same_choices(recorded_choices(path), choices, path);
}

void check_numbers(const RunChoices& choices, int replicas, int most_replicas) {
  if (replicas < 1 || replicas > most_replicas) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot run {} replicas; 1 to {} are possible", replicas, most_replicas));
  }
  if (choices.threads_per_shard < 1 || choices.threads_per_shard > kMostThreadsPerShard) {
    throw Error(ErrorCode::invalid_argument, fmt::format("threads_per_shard is {}; 1 to {} are possible",
                                                         choices.threads_per_shard, kMostThreadsPerShard));
  }
  // A rank without a shard would have nothing to add.
  if (choices.shards < replicas) {
    throw Error(ErrorCode::invalid_argument, fmt::format("there are {} replicas for {} shards; a replica computes at "
                                                         "least one shard, so use fewer replicas or more shards",
                                                         replicas, choices.shards));
  }
}

}  // namespace holdfast
