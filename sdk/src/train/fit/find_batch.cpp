// The plan is exact for what training keeps, and blind for what allocators, threads and the application add. So it only
// finds the candidate, and a process under a limit confirms it. The answer is recorded before anything is trained: with
// another batch, a run that starts again would have other bits. docs/decisions/batch-size.md

#include "holdfast/train/find_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/kept/folder_lock.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/sanitizers.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/train/trainer.h"
#include "holdfast/train/training_memory.h"
#include "train/context/other_choices.h"
#include "train/context/replica_context.h"
#include "train/fit/limited_trial.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Stacks of threads, and what allocators and libraries keep for themselves.
constexpr std::uint64_t kBytesOfAProcess = std::uint64_t{64} << 20;
// Each but the first takes an eighth away, so the last one tries (7/8)^11 of the planned batch, less than a quarter.
constexpr int kMostTrials = 12;

class BatchSearch {
 public:
  BatchSearch(const Replica& replica, const Model& model, const Optimizer& optimizer,
              const std::vector<LossHandle>& losses, const Dataset& data, const FindBatchOptions& options)
      : replica_(replica),
        context_(*replica.shared_context()),
        model_(model),
        optimizer_(optimizer),
        losses_(losses),
        data_(data),
        options_(options),
        multiple_(options.multiple_of == 0 ? context_.shards : options.multiple_of),
        at_once_(std::clamp(context_.most_workers, 1, context_.shards)) {
    check();
  }

  FoundBatch run() {
    // Without a run there is nothing that a later start could go on with, so nothing is recorded.
    if (context_.run_directory.empty()) return find();
    if (const std::optional<FoundBatch> recorded = read_record()) return *recorded;
    context_.file_system->create_folders(context_.run_directory);
    // One search is enough, and several at once would take the memory that each of them counts with.
    const FolderLock lock(context_.run_directory, Deadline::after(options_.timeout));
    if (const std::optional<FoundBatch> recorded = read_record()) return *recorded;
    if (lock.is_taken()) {
      throw Error(
          ErrorCode::deadline_exceeded,
          fmt::format("another replica has looked for a batch for {} ms, and has not found one; allow more time",
                      options_.timeout.count()));
    }
    const FoundBatch found = find();
    if (context_.writes_files) record(found);
    return found;
  }

 private:
  void check() const {
    const auto require = [](bool condition, const std::string& sentence) {
      if (!condition) throw Error(ErrorCode::invalid_argument, fmt::format("find_batch() {}", sentence));
    };
    require(options_.memory_bytes > 0, "got no limit: say how many bytes a replica may take, as .memory_bytes");
    require(options_.highest >= 1 && options_.multiple_of >= 0,
            fmt::format("of at most {} samples, in multiples of {}: use positive numbers", options_.highest,
                        options_.multiple_of));
    require(options_.accumulate >= 1,
            fmt::format("with {} batches of a step: accumulate 1 or more", options_.accumulate));
    require(data_.batch_size() == 0 && data_.prefetch_depth() == 0 && !data_.is_kept_on_device(),
            "got a data set in batches; put batch(), prefetch() and keep_on_device() after it");
    require(most_samples() >= multiple_,
            fmt::format("got {} samples and a limit of {}, and a batch is a multiple of {}", data_.size(),
                        options_.highest, multiple_));
    if (context_.device == "cpu") return;
    throw Error(ErrorCode::unsupported,
                fmt::format("find_batch() plans the memory of CPUs, and this replica computes on {}", context_.device));
  }

  std::int64_t most_samples() const { return std::min(options_.highest, data_.size()); }

  // What the answer depends on, and the run must not change. Long texts are digests, since a difference in them is
  // named and not shown.
  Json question() const {
    Json losses = Json::array();
    for (const LossHandle& loss : losses_) losses.push_back(Json::parse(loss.get()->configuration()));
    Json question = {{"model", digest_text(model_.graph())},
                     {"optimizer", Json::parse(optimizer_.configuration())},
                     {"losses", losses},
                     {"data", digest_text(data_.description())},
                     {"memory_bytes", options_.memory_bytes},
                     {"highest", options_.highest},
                     {"multiple_of", multiple_},
                     {"shards", context_.shards}};
    // Records of runs without them are as they were before these options came.
    if (options_.accumulate > 1) question["accumulate"] = options_.accumulate;
    if (options_.keeps_weights) question["keeps_weights"] = true;
    return question;
  }
  static std::string digest_text(const std::string& text) { return digest(std::as_bytes(std::span(text))).hex(); }

  std::string record_path() const { return context_.run_directory + "/batch.json"; }

  std::optional<FoundBatch> read_record() const {
    const std::string path = record_path();
    if (!context_.file_system->exists(path)) return std::nullopt;
    const Json record = Json::parse(read_text_file(*context_.file_system, path), nullptr, false);
    // Parsed without exceptions: damaged text gets the same kind of sentence as a wrong member.
    const bool is_record = record.is_object() && record.value("batch", Json()).is_number_integer() &&
                           record.value("planned_bytes", Json()).is_number_unsigned() &&
                           record.value("question", Json()).is_object();
    if (!is_record || record["batch"].get<std::int64_t>() < 1) {
      throw Error(ErrorCode::invalid_file,
                  fmt::format("{} does not hold the batch of a run; restore it, or {}", path, kHowToStartAnew));
    }
    // Members of both are compared, since either may have one that the other leaves out.
    const Json now = question();
    const Json& before = record["question"];
    Json names = before;
    names.update(now);
    for (const auto& [name, value] : names.items()) {
      // Options that have their default are not recorded.
      const Json asked = now.value(name, Json());
      const Json recorded = before.value(name, Json());
      if (asked == recorded) continue;
      throw OtherChoices(
          fmt::format("the batch of this run was found for {} {} ({}), and the program asks for {}; ask "
                      "as before, or {}",
                      name, recorded.dump(), path, asked.dump(), kHowToStartAnew));
    }
    return FoundBatch{.batch = record["batch"].get<std::int64_t>(),
                      .planned_bytes = record["planned_bytes"].get<std::uint64_t>(),
                      .tried_bytes = record.value("tried_bytes", std::uint64_t{0}),
                      .was_recorded = true};
  }

  void record(const FoundBatch& found) const {
    const Json record = {{"batch", found.batch},
                         {"planned_bytes", found.planned_bytes},
                         {"tried_bytes", found.tried_bytes},
                         {"question", question()}};
    const std::string text = record.dump(1) + "\n";
    write_whole_file(*context_.file_system, record_path(), std::as_bytes(std::span(text)));
    log(LogLevel::info, fmt::format("the run takes batches of {} samples: {} bytes are planned for each replica",
                                    found.batch, found.planned_bytes));
  }

  std::uint64_t planned_bytes(std::int64_t batch) const {
    const TrainingMemoryOptions options = {.accumulate = options_.accumulate, .keeps_weights = options_.keeps_weights};
    return kBytesOfAProcess +
           training_memory(replica_, model_, optimizer_, losses_, data_.batch(batch), options).total();
  }

  FoundBatch find() const {
    const std::int64_t planned = largest_planned();
    std::int64_t batch = planned;
    for (int trial = 0; trial < kMostTrials; ++trial) {
      FoundBatch found = {.batch = batch, .planned_bytes = planned_bytes(batch)};
      // Sanitizers reserve terabytes of address space, which no limit leaves.
      if constexpr (kIsSanitized) return found;
      const std::optional<std::uint64_t> tried =
          run_in_limited_child(options_.memory_bytes, options_.timeout, [&] { train_two_steps(batch); });
      if (tried) {
        found.tried_bytes = *tried;
        return found;
      }
      if (batch == multiple_) break;
      if (trial + 1 < kMostTrials) batch = std::max(multiple_, batch * 7 / 8 / multiple_ * multiple_);
    }
    // The plan says that they fit, so its bytes would explain nothing.
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("batches of {} down to {} samples fit into the {} bytes that a replica may take according to "
                    "the plan, but no process that trained with one of them did; something else in this "
                    "program takes memory, so allow more",
                    planned, batch, options_.memory_bytes));
  }

  // By halves: more samples never need less.
  std::int64_t largest_planned() const {
    const auto fits = [this](std::int64_t multiples) {
      return planned_bytes(multiples * multiple_) <= options_.memory_bytes;
    };
    if (!fits(1)) throw too_large(multiple_);
    std::int64_t low = 1;
    // Not tried: `low` fits, and `high` does not or is more than there are samples.
    std::int64_t high = most_samples() / multiple_ + 1;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low * multiple_;
  }

  // The plan says so.
  Error too_large(std::int64_t batch) const {
    return {
        ErrorCode::out_of_memory,
        fmt::format("a batch of {} samples needs {} bytes according to the plan, and does not fit into the {} bytes "
                    "that a replica may take; allow more, take a smaller model, or recompute parts of it",
                    batch, planned_bytes(batch), options_.memory_bytes)};
  }

  // What a replica does, except that it meets no others.
  void train_two_steps(std::int64_t batch) const {
    Replica alone = Replica::alone(
        {.seed = context_.seed, .shards = context_.shards, .threads_per_shard = context_.threads_per_shard});
    // As many workers as a replica of the run ever has: each has the arrays of a pass.
    alone.shared_context()->workers = at_once_;
    alone.shared_context()->most_workers = at_once_;
    // Copies of a model share its weights; this one has its own.
    Trainer trainer(alone, model_.with_frozen_layers(model_.frozen_layers()), optimizer_, losses_);
    // The second step finds what the first one has allocated, as all later ones do.
    trainer.fit(data_.batch(batch),
                {.steps_per_epoch = 2, .accumulate = options_.accumulate, .when_not_finite = WhenNotFinite::go_on});
  }

  const Replica& replica_;
  const Replica::Context& context_;
  const Model& model_;
  const Optimizer& optimizer_;
  const std::vector<LossHandle>& losses_;
  const Dataset& data_;
  const FindBatchOptions& options_;
  const std::int64_t multiple_;
  const int at_once_;
};

}  // namespace

FoundBatch find_batch(const Replica& replica, const Model& model, const Optimizer& optimizer, const Loss& loss,
                      const Dataset& data, const FindBatchOptions& options) {
  return find_batch(replica, model, optimizer, std::vector<LossHandle>{loss}, data, options);
}

FoundBatch find_batch(const Replica& replica, const Model& model, const Optimizer& optimizer,
                      const std::vector<LossHandle>& losses, const Dataset& data, const FindBatchOptions& options) {
  return BatchSearch(replica, model, optimizer, losses, data, options).run();
}

}  // namespace holdfast
