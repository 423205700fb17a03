// A program whose callback blocks, as an upload does:
//
//   blocking_program RUN_DIRECTORY HANG_AFTER CALLBACK_TIMEOUT
//
// with times in milliseconds, a CALLBACK_TIMEOUT of 0 for none. At the end of its first epoch the primary rank makes
// the file RUN_DIRECTORY/blocked and waits until there is a file RUN_DIRECTORY/released. It has no ModelCheckpoint.

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/holdfast.h"

namespace {

class Blocking final : public holdfast::Callback {
 public:
  std::string name() const override { return "blocking"; }
  void on_epoch_end(holdfast::TrainingContext& context, const holdfast::Logs&) override {
    if (!context.is_primary() || context.epoch() != 0) return;
    std::ofstream(context.run_directory() + "/blocked").close();
    while (!std::filesystem::exists(context.run_directory() + "/released")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

void train(holdfast::Replica& replica) {
  constexpr std::int64_t kSamples = 32;
  holdfast::Tensor features(holdfast::Shape{kSamples, 2});
  holdfast::Tensor targets(holdfast::Shape{kSamples, 1});
  for (std::size_t i = 0; i < features.values().size(); ++i) features.values()[i] = static_cast<float>(i % 7);
  holdfast::Trainer trainer(replica, holdfast::Sequential{holdfast::Input{2}, holdfast::Dense{1}}, holdfast::SGD(0.01F),
                            holdfast::MeanSquaredError{});
  trainer.fit(holdfast::from_tensors(features, targets).batch(8), {.epochs = 3, .callbacks = {Blocking{}}});
  if (replica.is_primary()) std::printf("weights %s\n", trainer.weights_digest().hex().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: blocking_program RUN_DIRECTORY HANG_AFTER CALLBACK_TIMEOUT\n");
    return 2;
  }
  const auto hang_after = std::chrono::milliseconds(std::stoi(argv[2]));
  const auto callback_timeout = std::chrono::milliseconds(std::stoi(argv[3]));
  holdfast::SuperviseOptions options{
      .replicas = 2, .recovery = {.hang_after = hang_after, .start_timeout = hang_after}, .run_directory = argv[1]};
  if (callback_timeout.count() > 0) options.recovery.callback_timeout = callback_timeout;
  return holdfast::supervise(argc, argv, options, train);
}
