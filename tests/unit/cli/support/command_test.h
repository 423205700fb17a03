#pragma once

// Runs the command on files in memory, and collects its output.

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"
#include "holdfast/format/array_file.h"
#include "support/disks/memory_file_system.h"

namespace holdfast::cli::testing {

struct Floats {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

class CommandTest : public ::testing::Test {
 protected:
  CommandTest() { files_.create_folders("/d"); }

  // Returns the exit code. out() and problems() are the output of this run.
  int run(const std::vector<std::string>& arguments) {
    out_.str("");
    problems_.str("");
    Console console{.out = out_, .problems = problems_};
    return run_command(arguments, files_, console);
  }
  std::string out() const { return out_.str(); }
  std::string problems() const { return problems_.str(); }

  void write(const std::string& path, const std::vector<Floats>& arrays, const std::string& metadata = "{}") {
    std::vector<format::ArrayView> views;
    for (const Floats& array : arrays) {
      views.push_back({array.name, DType::f32, array.shape, std::as_bytes(std::span(array.values))});
    }
    format::write_array_file(files_, path, metadata, views);
  }

  void write_text(const std::string& path, const std::string& text) {
    files_.create(path)->write_at(0, std::as_bytes(std::span(text)));
  }

  // Changes the first byte of the first array, which follows the metadata. The metadata must be short.
  void damage(const std::string& path) {
    constexpr std::size_t kOffset = 4096 + 64;
    const std::vector<std::byte> changed = {files_.contents().at(path).at(kOffset) ^ std::byte{1}};
    files_.open_for_writing(path)->write_at(kOffset, changed);
  }

  MemoryFileSystem files_;

 private:
  std::ostringstream out_;
  std::ostringstream problems_;
};

}  // namespace holdfast::cli::testing
