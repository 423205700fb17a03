#include <holdfast/holdfast.h>
#include <holdfast/torch.h>

#include "net.h"  // struct Net : torch::nn::Module

int main(int argc, char** argv) {
  return holdfast::supervise(argc, argv, {.replicas = 2, .run_directory = "run"}, [](holdfast::Replica& replica) {
    holdfast::torch::TrainableModule<Net> model({
        .inputs = {{.name = {}, .shape = {28, 28, 1}}},
        .targets = {{.name = {}, .shape = {}}},  // read_idx() gives labels as f32
        .loss =
            [](const torch::Tensor& output, const holdfast::torch::Batch& batch) {
              return torch::cross_entropy_loss(output, batch.target().to(torch::kLong));
            },
        .optimizer = [](Net& net) { return std::make_unique<torch::optim::Adam>(net.parameters(), 1e-3); },
    });
    holdfast::Trainer trainer(replica, model);
    trainer.fit(holdfast::read_idx("images.gz", "labels.gz").shuffle().batch(64), {.epochs = 5});
  });
}
