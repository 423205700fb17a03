#pragma once

// Writes what fit() logs for TensorBoard, a point an epoch, under the names of Keras's callback of this name:
// "epoch_loss", ... in DIRECTORY/train, and what validation gave ("val_loss") as "epoch_loss", ... in
// DIRECTORY/validation. The step is the epoch, counted from 0.
//
// Each start, and each primary rank behind a recovery, begins a file of its own, which takes back what the files before
// it show of epochs that the state does not have (SessionLog START, the `purge_step` of other writers). So TensorBoard
// shows each epoch once, and an epoch that is not redone keeps its time. Points are on stable storage when their
// epoch's calls are over.

#include <memory>
#include <string>
#include <vector>

#include "holdfast/observe/epoch_record.h"
#include "holdfast/train/callback.h"

namespace holdfast {

struct TensorBoardOptions {
  // Default: tensorboard in the run directory. For one fit() alone: each takes back what it finds there at its begin.
  std::string directory{};
};

class TensorBoard final : public EpochRecord {
 public:
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
