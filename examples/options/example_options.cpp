#include "example_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

// CLI11's own check of such numbers prints all digits of the largest one.
static std::string refuse_below_one(const std::string& text) {
  return text.empty() || text.front() == '-' || text == "0" ? "needs a number from 1 on, not " + text : "";
}

static std::string refuse_negative(const std::string& text) {
  return text.empty() || text.front() == '-' ? "needs a number from 0 on, not " + text : "";
}

// Found out before training, and not at its end. An empty file is there until then, if there was none.
static std::string refuse_unwritable(const std::string& path) {
  return std::ofstream(path, std::ios::app) ? "" : "cannot be written: " + path;
}

std::optional<int> read_options(int argc, char** argv, ExampleOptions& options) {
  CLI::App app(options.description);
  CLI::Option* const replicas = app.add_option("--replicas", options.run.replicas, "number of mirrored replicas");
  app.add_option("--devices", options.run.devices, "a device for each replica, such as cuda:0,cuda:1")
      ->delimiter(',')
      ->excludes(replicas);
  app.add_option("--shards", options.run.shards, "number of parts of each batch")->check(refuse_negative);
  app.add_option("--steps", options.steps, "number of steps")->check(refuse_below_one);
  app.add_option("--seed", options.run.seed, "seed of the weights and the data")->check(refuse_negative);
  app.add_option("--run-dir", options.run.run_directory, "folder of savepoints and journal");
  app.add_option("--report", options.report, "JSON file with steps, loss and digest of the weights")
      ->check(refuse_unwritable);
  app.add_option("--inject", options.run.recovery.faults, "fault to inject, such as rank=1,step=30,fault=kill");
  if (options.takes_images) {
    CLI::Option* const labels = app.add_option("--labels", options.labels, "IDX file of labels");
    app.add_option("--images", options.images, "IDX file of 28 x 28 images (default: draw digits)")->needs(labels);
  }
  if (options.takes_text) {
    app.add_option("--text", options.text, "text file in UTF-8, or any file with --bytes (default: draw sentences)");
    app.add_flag("--bytes", options.reads_bytes, "read bytes and not characters of UTF-8");
    app.add_option("--batch", options.batch, "samples of a step")->check(refuse_below_one);
  }
  if (!options.models.empty()) {
    app.add_option("--model", options.model, "the model that is trained")->check(CLI::IsMember(options.models));
  }
  if (options.may_keep_features) {
    app.add_flag("--keep-features", options.keeps_features, "compute the outputs of frozen layers once");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (!options.run.devices.empty()) options.run.replicas = 0;  // one for each of them
  return std::nullopt;
}

void write_report(const holdfast::Trainer& trainer, const std::map<std::string, double>& results,
                  const ExampleOptions& options) {
  nlohmann::json report = results;
  report["steps"] = trainer.step();
  report["weights_digest"] = trainer.weights_digest().hex();
  std::printf("%s\n", report.dump().c_str());
  if (!options.report.empty()) std::ofstream(options.report) << report.dump(2) << "\n";
}
