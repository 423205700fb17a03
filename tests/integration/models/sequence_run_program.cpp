// sequence_run_program FOLDER: writes what scripts/tests/sequence_losses.py needs to train the language models from the
// same weights on the same batches:
//
//   FOLDER/runs.json                     Holdfast's losses of the 50 steps, for each model by its name
//   FOLDER/NAME.h5                       the weights before the first step
//   FOLDER/NAME.INPUT.bin                i32 [400, length], batch after batch, for each input
//   FOLDER/NAME.next.bin                 f32 [400, length]

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "integration/models/support/sequence_run.h"

namespace {

using namespace holdfast;

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  nlohmann::json losses;
  for (const SequenceRun& run : sequence_runs()) {
    const std::string path = folder + "/" + run.name;
    save_initial(run, path + ".h5");
    for (const NamedTensor& input : run.inputs) write_bytes(path + "." + input.name + ".bin", input.tensor.bytes());
    write_bytes(path + ".next.bin", run.targets.bytes());
    losses[run.name] = sequence_losses(run, 1);
  }
  std::ofstream(folder + "/runs.json") << losses.dump();
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "sequence_run_program: %s\n", error.what());
  return 1;
}
