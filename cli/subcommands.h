#pragma once

// Where each subcommand declares its options.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

inline constexpr const char* kAnyFile =
    "A file of Holdfast, safetensors, NumPy (.npz, .npy), Keras (.keras, .h5), or another HDF5 file";
inline constexpr const char* kRunDirectory = "The run directory of a program that Holdfast supervises";

struct Subcommands {
  CLI::App& app;
  FileSystem& files;
  Console& console;
  std::vector<std::string> program{};  // the arguments after a "--", for subcommands that run a program
  std::function<int()> action{};       // runs the subcommand that the arguments name; returns the exit code

  // Adds the subcommand `name`. `declare(command, options)` adds its options to the CLI::App `command`, so that parsing
  // fills `options`, which begins as Options{}. `act(options)` runs the subcommand and returns the exit code.
  template <typename Options, typename Declare, typename Act>
  void add(const char* name, const char* description, const Declare& declare, const Act& act) {
    // Parsing writes into the options after this call has returned, so they are shared with the
    // callback.
    const auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand(name, description);
    declare(*command, *options);
    command->callback([this, options, act] { action = [options, act] { return act(*options); }; });
  }
};

// Each adds one subcommand with its options. The source of add_diff() is diff.cpp, and so on; scale and snapshot share
// live_run.cpp.
void add_chaos(Subcommands& commands);
void add_convert(Subcommands& commands);
void add_diff(Subcommands& commands);
void add_doctor(Subcommands& commands);
void add_inspect(Subcommands& commands);
void add_plot(Subcommands& commands);
void add_prune(Subcommands& commands);
void add_report(Subcommands& commands);
void add_run(Subcommands& commands);
void add_scale(Subcommands& commands);
void add_snapshot(Subcommands& commands);
void add_stats(Subcommands& commands);
void add_status(Subcommands& commands);
void add_verify(Subcommands& commands);

}  // namespace holdfast::cli
