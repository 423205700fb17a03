#pragma once

// Options that several examples share, and the report that they write. A program of your own has those that it needs.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"

struct ExampleOptions {
  std::string description{};  // what --help begins with
  // Default: what an example runs with when no option is given. `run.seed` is the seed of weights and data.
  holdfast::SuperviseOptions run{};
  std::int64_t steps = 100;
  std::string report{};  // the file that write_report() writes; none if empty
  // IDX files. An example that draws digits, too, takes them if `takes_images`.
  bool takes_images = false;
  std::string images{};
  std::string labels{};
  // A text file, and the samples of a batch. An example that learns text takes them if `takes_text`.
  bool takes_text = false;
  std::string text{};
  bool reads_bytes = false;  // whether ids stand for bytes and not for characters
  std::int64_t batch = 32;
  // The models that --model may name, if an example has several. `model` is the default.
  std::vector<std::string> models{};
  std::string model{};
  // Whether the outputs of frozen layers are kept. An example that can do so has the option if `may_keep_features`.
  bool may_keep_features = false;
  bool keeps_features = false;
};

// Reads --replicas, --devices, --shards, --steps, --seed, --run-dir, --report, --inject and, where the example has
// them, --images, --labels, --text, --bytes, --batch, --model and --keep-features into `options`. Returns the exit code
// of a program that is to end now: after --help, or after an error, which is printed.
std::optional<int> read_options(int argc, char** argv, ExampleOptions& options);

// Prints and writes the steps of the run, `results` and the digest of the weights as JSON. Only the primary replica
// calls it.
void write_report(const holdfast::Trainer& trainer, const std::map<std::string, double>& results,
                  const ExampleOptions& options);
