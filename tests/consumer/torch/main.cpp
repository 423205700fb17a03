// Trains a module of LibTorch, and looks whether it learned and whether Holdfast predicts what the module does. Then it
// writes images and labels for train.cpp into the current folder.

#include <holdfast/holdfast.h>
#include <holdfast/torch.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

// 128 images of 28 x 28 with a bright row for each label, as IDX files.
void write_images() {
  std::ofstream images("images", std::ios::binary), labels("labels", std::ios::binary);
  images << std::string("\0\0\x08\x03\0\0\0\x80\0\0\0\x1c\0\0\0\x1c", 16);
  labels << std::string("\0\0\x08\x01\0\0\0\x80", 8);
  for (int image = 0; image < 128; ++image) {
    const int label = image % 10;
    std::string pixels(28 * 28, '\0');
    pixels.replace(28 * (2 * label + 3), 28, 28, static_cast<char>(128 + image % 100));
    images << pixels;
    labels << static_cast<char>(label);
  }
}

struct Net : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return out(torch::tanh(hidden(x))); }

  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(2, 8));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(8, 1));
};

int main() {
  holdfast::torch::TrainableModule<Net> model({
      .inputs = {{.name = {}, .shape = {2}}},
      .targets = {{.name = {}, .shape = {1}}},
      .loss = [](const torch::Tensor& output,
                 const holdfast::torch::Batch& batch) { return torch::mse_loss(output, batch.target()); },
      .optimizer = [](Net& net) { return std::make_unique<torch::optim::Adam>(net.parameters(), 0.05); },
  });
  holdfast::Replica replica = holdfast::Replica::alone({.seed = 1, .shards = 2});
  holdfast::Trainer trainer(replica, model);
  const holdfast::Tensor inputs({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1});
  const holdfast::Tensor targets({4, 1}, {0, 1, 1, 0});
  const double loss = trainer.fit(holdfast::from_tensors(inputs, targets).batch(4), {.epochs = 400}).results.at("loss");
  write_images();
  const holdfast::Tensor predicted = trainer.predict(inputs);
  const torch::NoGradGuard no_gradients;
  std::vector<float> rows(inputs.values().begin(), inputs.values().end());
  const torch::Tensor expected =
      std::dynamic_pointer_cast<Net>(model.module())->forward(torch::from_blob(rows.data(), {4, 2}, torch::kFloat));
  std::printf("loss %g\n", loss);
  const bool are_same = std::memcmp(predicted.values().data(), expected.data_ptr<float>(), 4 * sizeof(float)) == 0;
  return loss < 0.01 && are_same ? 0 : 1;
}
