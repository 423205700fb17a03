#include "integration/models/support/residual_run.h"

#include <memory>

#include "drawn_digits.h"
#include "integration/models/support/step_losses.h"
#include "residual_network.h"

namespace holdfast {
namespace {

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
