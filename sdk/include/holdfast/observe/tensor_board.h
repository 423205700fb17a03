#pragma once

// Writes the logs of fit() for TensorBoard, one point per epoch, with the names of Keras's callback:
// "epoch_loss", ... in DIRECTORY/train, and the results of validation ("val_loss") as "epoch_loss", ...
// in DIRECTORY/validation. The step of a point is its epoch, counted from 0.
//
//   trainer.fit(data, {.epochs = 5, .callbacks = {TensorBoard{}}});
//
// Each start, and each primary rank after a recovery, begins a file of its own. It takes back the
// epochs of earlier files that the training state does not have (SessionLog START, the `purge_step` of
// other writers). So TensorBoard shows each epoch once, and an epoch that is not repeated keeps its
// time. Points are on stable storage when the calls of their epoch are over.
//
// What is asked for besides is in folders of its own, likewise each point once:
//
//   TensorBoard{{.scalars_every_steps = 100,      // DIRECTORY/steps: "batch_loss", ..., by step of the run
//                .steps_per_second = true,        // DIRECTORY/speed: "epoch_steps_per_second", by epoch
//                .histograms_every_epochs = 1,    // DIRECTORY/weights: "dense/kernel/histogram", by epoch
//                .add = [&](TrainingContext& context, TensorBoardPoints& points) {   // DIRECTORY/added, by epoch
//                  points.text("note", "epoch **" + std::to_string(context.epoch()) + "**");
//                  points.image("first", picture);
//                }}}
//
// For other tabs of TensorBoard, in DIRECTORY/train:
//
//   TensorBoard{{.embeddings_every_epochs = 1,               // Projector: the tables of Embedding layers
//                .embedding_labels = {{"embedding", words}},  // what is shown for their rows
//                .profile_steps = {10, 12}}}                  // Profile: what each thread did in these steps
//
// The last points by epoch and step are part of the training state, so that a replica that takes over writes
// what the one before it could not: savepoints have them in base64. Tables and profiles are not.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/tensor.h"

#include "holdfast/observe/epoch_record.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// What is shown of one epoch or step. Tags are unique within it, parts separated by '/'.
class TensorBoardPoints {
 public:
  void scalar(const std::string& tag, double value);  // one number
  // The distribution of the values in 30 intervals of equal width; NaN and infinities are left out.
  void histogram(const std::string& tag, std::span<const float> values);
  // Rows of pixels, [height, width, 1], [height, width, 3] or [height, width, 4]: grey, RGB or RGBA. Values of
  // f32 are in [0, 1], those of u8 in [0, 255]. Throws Error{invalid_argument} for other tensors.
  void image(const std::string& tag, const Tensor& pixels);
  // UTF-8, shown as Markdown.
  void text(const std::string& tag, const std::string& text);

  // As TensorBoard's files hold them; see event_file.h.
  const std::string& summary() const { return summary_; }

 private:
  std::string summary_;
};

// Numbers of steps of the run, from 1; both are recorded, and those between them.
struct ProfiledSteps {
  std::int64_t first = 0;  // 0: none
  std::int64_t last = 0;   // 0: the first one alone
};

struct TensorBoardOptions {
  // Default: tensorboard in the run directory. Each fit() needs a directory of its own, since it takes
  // back the points that it finds there when it begins.
  std::string directory{};
  // A point each time so many steps of the run are done: the means over the epoch so far. 0: none.
  std::int64_t scalars_every_steps = 0;
  // Histograms of all parameters and buffers each time so many epochs are done. 0: none.
  std::int64_t histograms_every_epochs = 0;
  // Kernels as grey pictures, each with its own scale from its lowest to its highest value: one for a matrix,
  // one of all filters side by side for a convolution. Those of more than 512 x 512 pixels, or of more than
  // 65,536 rows or columns, are left out, and the log names them once. 0: none.
  std::int64_t images_every_epochs = 0;
  // The layers of the model and what they take from each other, in DIRECTORY/graph, once.
  bool write_graph = false;
  // How many steps a second the epochs made, validation and callbacks included, and with scalars_every_steps also
  // "batch_steps_per_second" since the point before. Times of this machine and this day: savepoints hold the last ones,
  // so those of two equal runs differ in these numbers. After a failure an epoch counts from there on.
  bool steps_per_second = false;
  // The tables of Embedding layers each time so many epochs are done, and as the last step of fit() leaves them: for
  // the tab "Projector", which shows the newest ones. After a failure the next epoch that is due writes them. 0: none.
  std::int64_t embeddings_every_epochs = 0;
  // A label for each row of a table, by the path of its layer: {"embedding", encoder.vocabulary()}. fit() throws
  // Error{invalid_argument} at its beginning for labels of no table, or too few or too many of them.
  std::map<std::string, std::vector<std::string>> embedding_labels{};
  // What each thread of the primary rank does in these steps, operation by operation, for the tab "Profile", which
  // `pip install xprof` adds to TensorBoard; see profile.h. Lost where the process dies before the last of them.
  ProfiledSteps profile_steps{};
  // Called at the end of each epoch on every rank, and must add the same everywhere.
  std::function<void(TrainingContext& context, TensorBoardPoints& points)> add{};
  // The clock of steps_per_second; for tests.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

class EventSeries;
class RecentEvents;

class TensorBoard final : public EpochRecord {
 public:
  // Opens nothing: a file is created when there is a point to write or to take back. Throws
  // Error{invalid_argument} for negative numbers, for a range of steps that ends before it begins, for labels without
  // embeddings_every_epochs and without a clock.
  explicit TensorBoard(TensorBoardOptions options = {});
  ~TensorBoard() override;
  TensorBoard(TensorBoard&&) noexcept;

  std::string name() const override { return "tensor_board/" + options_.directory; }
  // The last points by step, of weights, of speed and of `add`, as far as there are any.
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  void on_fit_begin(TrainingContext& context) override;
  void on_epoch_begin(TrainingContext& context) override;
  void on_step_begin(TrainingContext& context) override;
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;

 private:
  // When this process was at a step of the run.
  struct Moment {
    std::chrono::steady_clock::time_point time;
    std::int64_t step = 0;
  };

  void write(const TrainingContext& context, const std::vector<Logs>& epochs) override;
  void finish(const TrainingContext& context) override;
  // All points that the history does not give; null where nothing asks for them.
  std::vector<RecentEvents*> recent_events() const;
  Moment present(const TrainingContext& context) const;
  void add_step(const TrainingContext& context, const Logs& logs);
  void add_speed(const TrainingContext& context);
  void add_weights(const TrainingContext& context);
  // In place of those that are there.
  void write_embeddings(const TrainingContext& context) const;
  void write_profile(TrainingContext& context) const;
  std::string directory(const TrainingContext& context) const;
  void write_graph(const TrainingContext& context, const std::string& directory) const;

  TensorBoardOptions options_;
  std::string directory_;                  // of the two below
  std::unique_ptr<EventSeries> training_;  // made with the first point
  std::unique_ptr<EventSeries> validation_;
  // Points that the history does not give; null where nothing asks for them.
  std::unique_ptr<RecentEvents> steps_;
  std::unique_ptr<RecentEvents> speed_;
  std::unique_ptr<RecentEvents> weights_;
  std::unique_ptr<RecentEvents> added_;
  std::optional<Moment> epoch_begun_;   // or where this process came into the epoch
  std::optional<Moment> last_point_;    // by step
  bool has_told_large_arrays_ = false;  // which have no picture
};

}  // namespace holdfast
