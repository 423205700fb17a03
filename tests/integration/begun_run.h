#pragma once

// Runs of begun_program, and what begins in their directory.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/count_of.h"
#include "support/file_digests.h"
#include "support/program.h"
#include "support/temporary_folder.h"

namespace holdfast {

class BegunRun : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  // Runs the command with these variables of Holdfast only, whatever the environment of the tests has.
  static ProgramResult run_with(const Words& variables, const Words& command) {
    return run_program("/usr/bin/env", arguments_of_env(variables, command));
  }
  static Words arguments_of_env(const Words& variables, const Words& command) {
    Words all{"HOLDFAST_START=", "HOLDFAST_ALONE=", "SLURM_JOB_ID=", "KUBERNETES_SERVICE_HOST="};
    all.insert(all.end(), variables.begin(), variables.end());
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }

  Words command(const Words& options) const {
    Words all{built_program("begun_program"), "--run-dir", run_, "--copies", copies_};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  ProgramResult start(const Words& options = {}, const Words& variables = {}) const {
    return run_with(variables, command(options));
  }
  // Fails before the end of the first epoch and before the first savepoint.
  void fail_early() const {
    const ProgramResult result = start({"--at", "3", "--fail"});
    ASSERT_EQ(result.exit_code, 1) << result.output;
  }

  // The digest of the weights, which the program prints at its end.
  static std::string weights_in(const ProgramResult& result) {
    const std::string before = "weights ";
    const std::size_t at = result.output.find(before);
    if (at == std::string::npos) return "none in: " + result.output;
    return result.output.substr(at + before.size(), result.output.find('\n', at) - at - before.size());
  }
  // The digest of the weights of an undisturbed run with these options.
  static std::string expected_weights(const Words& options = {}) {
    static std::map<Words, std::string> known;
    const auto [entry, is_new] = known.try_emplace(options);
    if (is_new) {
      const TemporaryFolder folder;
      Words all{built_program("begun_program"), "--run-dir", folder / "run"};
      all.insert(all.end(), options.begin(), options.end());
      entry->second = weights_in(run_with({}, all));
    }
    return entry->second;
  }

  static std::size_t log_lines_in(const ProgramResult& result) {
    std::size_t lines = 0;
    for (const char* level : {" debug ", " info ", " warning ", " error "}) lines += count_of(level, result.output);
    return lines;
  }

  // All files but the lock, which holds the process number of its last owner.
  static std::map<std::string, std::string> files_of(const std::string& run_directory) {
    std::map<std::string, std::string> files = file_digests(run_directory);
    files.erase("lock");
    return files;
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  const TemporaryFolder folder_;
  const std::string run_ = folder_ / "run";
  const std::string copies_ = folder_ / "copies";
};

}  // namespace holdfast
