// The `holdfast` command: parses its arguments and calls.

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "exit_code.h"
#include "inspect.h"
#include "prune.h"
#include "verify.h"

int main(int argc, char** argv) {
  namespace cli = holdfast::cli;
  CLI::App app("Looks into Holdfast's files. Exit code: 0 whole, 1 damaged, 2 not done.", "holdfast");
  app.require_subcommand(1);

  std::string path;
  cli::InspectOptions inspect_options;
  CLI::App* inspect = app.add_subcommand("inspect", "Show what a file holds");
  inspect->add_option("FILE", path, "A file that Holdfast wrote")->required();
  inspect->add_flag("--json", inspect_options.as_json, "As JSON, with all metadata");

  CLI::App* verify = app.add_subcommand("verify", "Check every digest of a file, or of each *.h5 in a folder");
  verify->add_option("PATH", path, "A file that Holdfast wrote, or a folder of them")->required();

  cli::PruneOptions prune_options;
  bool is_highest_best = false;
  CLI::App* prune = app.add_subcommand("prune", "Delete the savepoints of a folder that no rule keeps");
  prune->add_option("FOLDER", path, "A run directory, or another folder of savepoints")->required();
  prune->add_option("--keep-last", prune_options.retention.keep_last, "The newest so many stay; 0: all")
      ->check(CLI::NonNegativeNumber);
  prune->add_option("--keep-best", prune_options.retention.keep_best, "So many with the best metric stay, too")
      ->check(CLI::NonNegativeNumber);
  prune->add_option("--by", prune_options.best_by, "The metric")->capture_default_str();
  prune->add_flag("--highest", is_highest_best, "The highest value is the best, not the lowest");
  prune->add_option("--keep-every", prune_options.retention.keep_every_steps, "All whose step is a multiple stay, too")
      ->check(CLI::NonNegativeNumber);
  prune
      ->add_option("--max-bytes", prune_options.retention.max_bytes,
                   "The oldest of those go until all fit, but never the newest or the best")
      ->transform(CLI::AsSizeValue(false));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kWhole : cli::kNotDone;  // help is a ParseError too
  }

  try {
    holdfast::FileSystem& files = holdfast::posix_file_system();
    if (inspect->parsed()) return cli::inspect(files, path, inspect_options, std::cout);
    if (prune->parsed()) {
      using holdfast::format::BestValue;
      prune_options.retention.best = is_highest_best ? BestValue::highest : BestValue::lowest;
      return cli::prune(files, path, prune_options, std::cout, std::cerr);
    }
    return cli::verify(files, path, std::cout, std::cerr);
  } catch (const holdfast::Error& error) {
    std::cerr << "holdfast: " << error.what() << "\n";
    return cli::exit_code(error);
  } catch (const std::exception& error) {
    std::cerr << "holdfast: " << error.what() << "\n";
    return cli::kNotDone;
  }
}
