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

#include <memory>
#include <string>
#include <vector>

#include "holdfast/observe/epoch_record.h"
#include "holdfast/train/callback.h"

namespace holdfast {

struct TensorBoardOptions {
  // Default: tensorboard in the run directory. Each fit() needs a directory of its own, since it takes
  // back the points that it finds there when it begins.
  std::string directory{};
};

class TensorBoard final : public EpochRecord {
 public:
  // Opens nothing: a file is created when there is a point to write or to take back.
  explicit TensorBoard(TensorBoardOptions options = {});
  ~TensorBoard() override;
  TensorBoard(TensorBoard&&) noexcept;

  std::string name() const override { return "tensor_board/" + options_.directory; }

 private:
  class Series;

  void write(const TrainingContext& context, const std::vector<Logs>& epochs) override;

  TensorBoardOptions options_;
  std::unique_ptr<Series> training_;  // made with the first point
  std::unique_ptr<Series> validation_;
};

}  // namespace holdfast
