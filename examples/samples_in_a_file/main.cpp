// Trains on samples that stay in a file, and are read when a batch needs them:
//
//   samples_in_a_file FILE RUN_DIRECTORY
//
// FILE has 8 floats for each sample; the first is the target, the others are the features. A missing FILE is created.

#include <fcntl.h>
#include <holdfast/holdfast.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace {

using namespace holdfast;

constexpr std::int64_t kSamples = 2000;
constexpr std::int64_t kFloats = 8;

void make_file(const std::string& path) {
  std::ofstream file(path + ".new", std::ios::binary);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    Random random(1, Purpose::user, 0, i);
    std::vector<float> sample(kFloats);
    for (float& value : sample) value = random.normal();
    sample[0] = sample[1] - 2 * sample[2];
    file.write(reinterpret_cast<const char*>(sample.data()), kFloats * sizeof(float));
  }
  file.close();
  if (!file) throw Error(ErrorCode::input_output, "cannot write " + path);
  std::filesystem::rename(path + ".new", path);
}

// A sample is read when a batch needs it.
Dataset samples_of(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error(ErrorCode::not_found, "cannot open " + path);
  const auto read = [file, path](std::int64_t sample, const SampleArrays& into) {
    std::array<float, kFloats> row{};
    if (::pread(file, row.data(), sizeof(row), static_cast<off_t>(sample) * sizeof(row)) != ssize_t{sizeof(row)}) {
      throw Error(ErrorCode::invalid_file, path + " does not hold sample " + std::to_string(sample));
    }
    into.targets.elements<float>(0)[0] = row[0];
    std::copy(row.begin() + 1, row.end(), into.inputs.elements<float>(0).begin());
  };
  return from_source({.size = kSamples,
                      .inputs = {{"features", {kFloats - 1}}},
                      .targets = {{"target", {1}}},
                      .content = "samples of version 1"},
                     read);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s FILE RUN_DIRECTORY\n", argv[0]), 2;
  const std::string path = argv[1];
  if (!is_replica_process() && !std::filesystem::exists(path)) make_file(path);
  return supervise(argc, argv, {.replicas = 2, .run_directory = argv[2]}, [&](Replica& replica) {
    const Sequential model{Input{kFloats - 1}, Dense{1}};
    Trainer trainer{replica, model, SGD{0.05F}, MeanSquaredError{}};
    const auto [training, test] = samples_of(path).split(200);
    trainer.fit(training.shuffle().batch(32).prefetch(2), {.epochs = 3, .callbacks = {ModelCheckpoint{}}});
    const Logs means = trainer.evaluate(test.batch(32));
    if (replica.is_primary()) std::printf("loss %.6f of samples that it was not trained on\n", means.at("loss"));
  });
}
