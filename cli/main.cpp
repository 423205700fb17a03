// The `holdfast` command: parses its arguments and calls.

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "exit_code.h"
#include "inspect.h"
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

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kWhole : cli::kNotDone;  // help is a ParseError too
  }

  try {
    holdfast::FileSystem& files = holdfast::posix_file_system();
    if (inspect->parsed()) return cli::inspect(files, path, inspect_options, std::cout);
    return cli::verify(files, path, std::cout, std::cerr);
  } catch (const holdfast::Error& error) {
    std::cerr << "holdfast: " << error.what() << "\n";
    return cli::exit_code(error);
  } catch (const std::exception& error) {
    std::cerr << "holdfast: " << error.what() << "\n";
    return cli::kNotDone;
  }
}
