#include "integration/models/support/residual_run.h"

#include <memory>

#include "drawn_digits.h"
#include "residual_network.h"

namespace holdfast {
namespace {

// The logs of a step are means over the steps of the epoch so far.
class RecordsLosses final : public Callback {
 public:
  std::string name() const override { return "records_losses"; }
  void on_step_end(TrainingContext& context, const Logs& logs) override {
    const double sum = logs.at("loss") * static_cast<double>(context.batch_in_epoch());
    losses.push_back(sum - sum_before_);
    sum_before_ = sum;
  }

  std::vector<double> losses;

 private:
  double sum_before_ = 0;
};

SparseCategoricalCrossentropy loss_of_scores() {
  return SparseCategoricalCrossentropy({.from_logits = true});
}

}  // namespace

Dataset residual_data() {
  return drawn_digits(kResidualSteps * kResidualBatch, kResidualSeed).shuffle();
}

std::vector<double> residual_losses(const ResidualOptions& options) {
  Replica replica = Replica::alone({.seed = kResidualSeed});
  Trainer trainer(replica, residual_network(),
                  SGD{{.learning_rate = options.learning_rate, .momentum = options.momentum}}, loss_of_scores());
  const auto recorded = std::make_shared<RecordsLosses>();
  trainer.fit(residual_data().batch(kResidualBatch), {.epochs = 1, .callbacks = {recorded}});
  return recorded->losses;
}

void save_initial_residual(const std::string& path) {
  Replica replica = Replica::alone({.seed = kResidualSeed});
  Trainer(replica, residual_network(), SGD(), loss_of_scores()).save(path);
}

}  // namespace holdfast
