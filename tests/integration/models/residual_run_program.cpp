// residual_run_program FOLDER: writes what scripts/tests/residual_losses.py needs to train the residual network of the
// examples from the same weights on the same batches:
//
//   FOLDER/initial.h5                   the weights before the first step
//   FOLDER/images.bin, labels.bin       f32 [50, 32, 28, 28, 1] and [50, 32], batch after batch
//   FOLDER/runs.json                    Holdfast's losses of the 50 steps, for each choice of options

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "integration/models/support/residual_run.h"

namespace {

using namespace holdfast;

void write_floats(const std::string& path, std::span<const float> values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

void write_samples(const std::string& folder) {
  const Dataset data = residual_data();
  Tensor images(Shape{data.size(), 28, 28, 1});
  Tensor labels(Shape{data.size()});
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.load(kResidualSeed, 0, i, {.features = images.sample(i), .targets = labels.sample(i)});
  }
  write_floats(folder + "/images.bin", images.values());
  write_floats(folder + "/labels.bin", labels.values());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  save_initial_residual(folder + "/initial.h5");
  write_samples(folder);
  nlohmann::json runs = nlohmann::json::array();
  for (const ResidualOptions& options : kResidualRuns) {
    // As f64, so that PyTorch gets the same number.
    runs.push_back({{"learning_rate", static_cast<double>(options.learning_rate)},
                    {"momentum", static_cast<double>(options.momentum)},
                    {"losses", residual_losses(options)}});
  }
  std::ofstream(folder + "/runs.json") << runs.dump();
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "residual_run_program: %s\n", error.what());
  return 1;
}
