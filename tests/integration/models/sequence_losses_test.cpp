// Training follows another framework's, step by step. sequence_losses.json has the losses of PyTorch, from the same
// weights on the same batches; scripts/tests/sequence_losses.py made it and says how.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "integration/models/support/sequence_run.h"
#include "support/folders.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

class SequenceLosses : public testing::TestWithParam<std::size_t> {};

// Nothing here is as abrupt as a ReLU of convolutions whose inputs are near 0: PyTorch's own losses in f32 are at most
// 2.5e-7 from those in f64.
double tolerance_of_step(std::size_t step) {
  return step == 0 ? 1e-6 : 1e-4;
}

TEST_P(SequenceLosses, FollowThoseOfPyTorchForFiftySteps) {
  std::ifstream file(source_folder() + "/tests/integration/models/sequence_losses.json");
  const SequenceRun run = sequence_runs().at(GetParam());
  const auto expected = Json::parse(file).at("losses").at(run.name).get<std::vector<double>>();
  ASSERT_EQ(expected.size(), kSequenceSteps);

  for (const int shards : {1, 4}) {
    const std::vector<double> losses = sequence_losses(run, shards);

    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t step = 0; step < losses.size(); ++step) {
      EXPECT_NEAR(losses[step] / expected[step], 1, tolerance_of_step(step))
          << run.name << " in " << shards << " shards, step " << step + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Adam, SequenceLosses, testing::Values(0, 1, 2));

}  // namespace
}  // namespace holdfast
