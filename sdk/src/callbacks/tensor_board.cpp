// The points of logs are a function of the epochs that the training state knows, so nothing about them is kept in the
// state. Other points cannot be computed again later, so the state has the last ones. See docs/decisions/records.md.

#include "holdfast/observe/tensor_board.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "callbacks/embedding_tables.h"
#include "callbacks/event_file.h"
#include "callbacks/event_series.h"
#include "callbacks/graph_definition.h"
#include "callbacks/png_writer.h"
#include "callbacks/profile_file.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/log.h"
#include "holdfast/base/whole_file.h"

namespace holdfast {
namespace {

constexpr std::string_view kValidationPrefix = "val_";

// The points of the logs of validation, or of all others. An epoch without such logs has no point.
EventPoints points_of(const std::vector<Logs>& epochs, bool of_validation) {
  EventPoints points;
  for (std::size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    std::vector<std::pair<std::string, float>> scalars;
    for (const auto& [name, value] : epochs[epoch]) {
      if (name.starts_with(kValidationPrefix) != of_validation) continue;
      const std::string bare = of_validation ? name.substr(kValidationPrefix.size()) : name;
      // The tags of Keras's callback, so that runs of both are drawn in one diagram.
      scalars.emplace_back("epoch_" + bare, static_cast<float>(value));
    }
    if (!scalars.empty()) points[static_cast<std::int64_t>(epoch)] = scalar_summary(scalars);
  }
  return points;
}

// Named as in savepoints, without the part that all have.
std::string tag_of(const WeightArray& array, const char* what) {
  constexpr std::string_view kModel = "model/";
  const std::string name = array.name.starts_with(kModel) ? array.name.substr(kModel.size()) : array.name;
  return name + "/" + what;
}

bool is_kernel(const WeightArray& array) {
  const std::size_t axes = array.shape.rank();
  return (axes == 2 || axes == 4) && !array.values.empty();
}

// The picture is a part of the training state until the next one, so its size has a bound.
constexpr std::size_t kMostPixels = 512 * 512;

struct PictureSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// Empty for a kernel that is too large.
std::optional<PictureSize> picture_size(const WeightArray& array) {
  if (array.values.size() > kMostPixels) return std::nullopt;
  const std::vector<std::int64_t>& extents = array.shape.extents();
  const bool is_matrix = extents.size() == 2;
  const PictureSize size = is_matrix ? PictureSize{.height = extents[0], .width = extents[1]}
                                     : PictureSize{.height = extents[0] * extents[2], .width = extents[1] * extents[3]};
  // The table of an embedding may have few columns and very many rows.
  if (size.height > kMostPngSide || size.width > kMostPngSide) return std::nullopt;
  return size;
}

// A kernel of [in, out] as it is; of [height, width, in, out] a picture of in x out filters. The elements of a filter
// lie far apart in memory.
Tensor picture_of(const WeightArray& array, const PictureSize& size) {
  const std::vector<std::int64_t>& extents = array.shape.extents();
  const auto [lowest, highest] = std::minmax_element(array.values.begin(), array.values.end());
  // The smallest weight is black and the largest white. Equal weights are all black: there is no difference to show.
  const float scale = *highest > *lowest ? 1 / (*highest - *lowest) : 0;
  const bool is_matrix = extents.size() == 2;
  const std::int64_t height = is_matrix ? 1 : extents[0];
  const std::int64_t width = is_matrix ? 1 : extents[1];
  const std::int64_t in = extents[extents.size() - 2];
  const std::int64_t out = extents.back();
  Tensor picture(Shape{size.height, size.width, 1});
  const float* value = array.values.data();
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t i = 0; i < in; ++i) {
        for (std::int64_t o = 0; o < out; ++o) {
          const std::int64_t place = (i * height + y) * size.width + o * width + x;
          picture.values()[static_cast<std::size_t>(place)] = (*value++ - *lowest) * scale;
        }
      }
    }
  }
  return picture;
}

// Empty where nothing has passed: no step, or less time than the clock shows. A rollback goes back in steps.
template <typename Moment>
std::optional<double> steps_per_second(const Moment& from, const Moment& to) {
  const double seconds = std::chrono::duration<double>(to.time - from.time).count();
  if (to.step <= from.step || seconds <= 0) return std::nullopt;
  return static_cast<double>(to.step - from.step) / seconds;
}

void check(const TensorBoardOptions& options) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::invalid_argument, why); };
  if (options.scalars_every_steps < 0 || options.histograms_every_epochs < 0 || options.images_every_epochs < 0 ||
      options.embeddings_every_epochs < 0) {
    refuse("TensorBoard needs numbers of at least 0 for the steps and epochs between two points");
  }
  if (!options.embedding_labels.empty() && options.embeddings_every_epochs == 0) {
    refuse("TensorBoard has embedding_labels and writes no embeddings; set embeddings_every_epochs");
  }
  const ProfiledSteps& profiled = options.profile_steps;
  const bool is_range = profiled.first > 0 && (profiled.last == 0 || profiled.last >= profiled.first);
  if (!is_range && (profiled.first != 0 || profiled.last != 0)) {
    refuse(
        fmt::format("TensorBoard cannot profile the steps from {} to {}; the first is at least 1, and the last no less "
                    "than that",
                    profiled.first, profiled.last));
  }
  if (!options.now) refuse("TensorBoard needs a clock: TensorBoardOptions::now is empty");
}

// Training goes on, because nothing of it depends on what people look at.
template <typename Write>
void write_or_log(const std::string& what, const Write& write) {
  try {
    write();
  } catch (const Error& failure) {
    log(LogLevel::error, fmt::format("TensorBoard cannot write {}; training continues: {}", what, failure.what()));
  }
}

bool is_due(std::int64_t count, std::int64_t every) {
  return every > 0 && count % every == 0;
}

}  // namespace

TensorBoard::TensorBoard(TensorBoardOptions options) : options_(std::move(options)) {
  check(options_);
  // One step, where no last one is given.
  if (options_.profile_steps.last == 0) options_.profile_steps.last = options_.profile_steps.first;
  // A replica is ahead of another by a step at most, and some replicas may die one after another.
  constexpr std::size_t kRecentSteps = 16;
  if (options_.scalars_every_steps > 0) steps_ = std::make_unique<RecentEvents>(kRecentSteps);
  if (options_.steps_per_second) speed_ = std::make_unique<RecentEvents>(1);
  if (options_.histograms_every_epochs > 0 || options_.images_every_epochs > 0) {
    weights_ = std::make_unique<RecentEvents>(1);
  }
  if (options_.add) added_ = std::make_unique<RecentEvents>(1);
}
TensorBoard::~TensorBoard() = default;
TensorBoard::TensorBoard(TensorBoard&&) noexcept = default;

CallbackState TensorBoard::state() const {
  CallbackState state;
  if (steps_) state["steps"] = steps_->state();
  if (speed_) state["speed"] = speed_->state();
  if (weights_) state["weights"] = weights_->state();
  if (added_) state["added"] = added_->state();
  return state;
}

// The program may have been edited, so that a part is new.
void TensorBoard::restore(const CallbackState& state) {
  const auto restore_part = [&state](const char* part, const std::unique_ptr<RecentEvents>& events) {
    if (!events) return;
    const auto found = state.find(part);
    events->restore(found == state.end() ? std::string() : std::get<std::string>(found->second));
  };
  restore_part("steps", steps_);
  restore_part("speed", speed_);
  restore_part("weights", weights_);
  restore_part("added", added_);
}

std::vector<RecentEvents*> TensorBoard::recent_events() const {
  std::vector<RecentEvents*> all;
  for (RecentEvents* const events : {steps_.get(), speed_.get(), weights_.get(), added_.get()}) {
    if (events != nullptr) all.push_back(events);
  }
  return all;
}

void TensorBoard::on_fit_begin(TrainingContext& context) {
  for (RecentEvents* const events : recent_events()) events->clear();
  if (!options_.embedding_labels.empty()) check_embedding_labels(context.weights(), options_.embedding_labels);
  EpochRecord::on_fit_begin(context);
}

TensorBoard::Moment TensorBoard::present(const TrainingContext& context) const {
  return {.time = options_.now(), .step = context.step()};
}

void TensorBoard::on_epoch_begin(TrainingContext& context) {
  if (!options_.steps_per_second) return;
  epoch_begun_ = present(context);
  if (!last_point_) last_point_ = epoch_begun_;
}

// On each rank: another one may be the primary at the end.
void TensorBoard::on_step_begin(TrainingContext& context) {
  if (context.step() + 1 == options_.profile_steps.first) context.begin_profile();
}

void TensorBoard::on_step_end(TrainingContext& context, const Logs& logs) {
  if (options_.profile_steps.first > 0 && context.step() == options_.profile_steps.last) write_profile(context);
  const bool is_point = is_due(context.step(), options_.scalars_every_steps);
  if (is_point) add_step(context, logs);
  // A process that came into the middle of an epoch counts from its first step, whose beginning it does not know.
  if (options_.steps_per_second && !epoch_begun_) epoch_begun_ = last_point_ = present(context);
  // Another rank writes. What the folder shows must be read again if this rank takes over.
  if (!writes(context)) {
    for (RecentEvents* const events : recent_events()) events->forget_shown();
  }
  if (is_point && writes(context)) try_to_write(context, context.history());
  EpochRecord::on_step_end(context, logs);
}

void TensorBoard::add_step(const TrainingContext& context, const Logs& logs) {
  TensorBoardPoints points;
  for (const auto& [name, value] : logs) points.scalar("batch_" + name, value);
  if (options_.steps_per_second) {
    const Moment now = present(context);
    if (const auto rate = last_point_ ? steps_per_second(*last_point_, now) : std::nullopt) {
      points.scalar("batch_steps_per_second", *rate);
    }
    last_point_ = now;
  }
  steps_->add(context.step(), points.summary());
}

// On each rank, of its own clock: another one may take over before the point is in its file.
void TensorBoard::add_speed(const TrainingContext& context) {
  const std::optional<double> rate = epoch_begun_ ? steps_per_second(*epoch_begun_, present(context)) : std::nullopt;
  if (!rate) return;
  TensorBoardPoints points;
  points.scalar("epoch_steps_per_second", *rate);
  speed_->add(context.epoch(), points.summary());
}

void TensorBoard::on_epoch_end(TrainingContext& context, const Logs& logs) {
  if (speed_) add_speed(context);
  if (weights_) add_weights(context);
  if (options_.add) {
    TensorBoardPoints points;
    options_.add(context, points);
    if (!points.summary().empty()) added_->add(context.epoch(), points.summary());
  }
  EpochRecord::on_epoch_end(context, logs);
  if (is_due(context.epoch() + 1, options_.embeddings_every_epochs) && writes(context)) write_embeddings(context);
}

// A recovery may have left the tables of an earlier epoch.
void TensorBoard::finish(const TrainingContext& context) {
  if (options_.embeddings_every_epochs > 0) write_embeddings(context);
}

// With the points of epochs: TensorBoard looks for them in the folders that have points.
void TensorBoard::write_embeddings(const TrainingContext& context) const {
  write_or_log("the tables of embeddings", [&] {
    write_embedding_tables(context.file_system(), directory(context) + "/train", context.weights(),
                           options_.embedding_labels);
  });
}

void TensorBoard::write_profile(TrainingContext& context) const {
  const std::vector<ProfileSpan> spans = context.end_profile();
  // Each rank ends its profile, so that it does not go on; one of them writes.
  if (spans.empty() || !writes(context)) return;
  const ProfiledSteps& steps = options_.profile_steps;
  write_or_log("the profile", [&] {
    const std::string folder =
        fmt::format("{}/train/plugins/profile/steps_{}_to_{}", directory(context), steps.first, steps.last);
    context.file_system().create_folders(folder);
    // In the form of TensorFlow's profiler, which TensorBoard's plugin reads.
    const std::string space = profile_space(spans);
    write_whole_file(context.file_system(), folder + "/holdfast.xplane.pb", std::as_bytes(std::span(space)));
  });
}

std::string TensorBoard::directory(const TrainingContext& context) const {
  return path_in_run(context, options_.directory, "tensorboard", "TensorBoard");
}

// On each rank, although one rank writes: another one may take over before the points are in its file.
void TensorBoard::add_weights(const TrainingContext& context) {
  const bool has_histograms = is_due(context.epoch() + 1, options_.histograms_every_epochs);
  const bool has_images = is_due(context.epoch() + 1, options_.images_every_epochs);
  if (!has_histograms && !has_images) return;
  TensorBoardPoints points;
  std::vector<std::string> too_large;
  for (const WeightArray& array : context.weights()) {
    if (has_histograms) points.histogram(tag_of(array, "histogram"), array.values);
    if (!has_images || !is_kernel(array)) continue;
    if (const std::optional<PictureSize> size = picture_size(array)) {
      points.image(tag_of(array, "image"), picture_of(array, *size));
    } else {
      too_large.push_back(fmt::format("{} of {}", array.name, array.shape.to_string()));
    }
  }
  weights_->add(context.epoch(), points.summary());
  // Once: the next epoch has the same arrays.
  if (too_large.empty() || !writes(context) || std::exchange(has_told_large_arrays_, true)) return;
  log(LogLevel::warning,
      fmt::format("TensorBoard leaves out pictures of more than {} pixels, or {} rows or columns: {}; "
                  "TensorBoardOptions::histograms_every_epochs shows arrays of any size",
                  kMostPixels, kMostPngSide, fmt::join(too_large, ", ")));
}

void TensorBoard::write(const TrainingContext& context, const std::vector<Logs>& epochs) {
  const std::string directory = this->directory(context);
  // Trainers that follow one another in a run have folders of their own.
  if (!training_ || directory != directory_) {
    directory_ = directory;
    training_ = std::make_unique<EventSeries>(directory + "/train");
    validation_ = std::make_unique<EventSeries>(directory + "/validation");
  }
  FileSystem& files = context.file_system();
  training_->bring_to(files, points_of(epochs, false));
  validation_->bring_to(files, points_of(epochs, true));
  const std::int64_t last_epoch = static_cast<std::int64_t>(epochs.size()) - 1;
  // Each kind has a folder, and so a series of its own: points that are taken back in one leave the others as they are.
  if (steps_) steps_->write(files, directory + "/steps", context.step());
  if (speed_) speed_->write(files, directory + "/speed", last_epoch);
  if (weights_) weights_->write(files, directory + "/weights", last_epoch);
  if (added_) added_->write(files, directory + "/added", last_epoch);
  if (options_.write_graph) write_graph(context, directory);
}

// A file that is whole or absent, so a graph that is there need not be read.
void TensorBoard::write_graph(const TrainingContext& context, const std::string& directory) const {
  FileSystem& files = context.file_system();
  const std::string folder = directory + "/graph";
  const std::string graph = graph_definition(context.graph());
  if (graph.empty() || !last_event_file(files, folder).empty()) return;
  files.create_folders(folder);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string name = next_event_file(files, folder, static_cast<std::int64_t>(now));
  const std::string records = version_record(now) + graph_record(now, graph);
  write_whole_file(files, folder + "/" + name, std::as_bytes(std::span(records)));
}

}  // namespace holdfast
