// The real program on real files, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <numeric>

#include "holdfast/format/array_file.h"
#include "support/program.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kSavepoint = R"({"kind": "savepoint", "holdfast": "0.1", "step": 5,
    "configuration": {"optimizer": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9},
                      "loss": {"kind": "mean_squared_error"}},
    "graph": {"format": "holdfast.sequential", "version": 1, "input_shape": [100],
              "layers": [{"kind": "Dense", "name": "d", "config": {"units": 50, "use_bias": false}}]}})";

class CommandProgram : public ::testing::Test {
 protected:
  CommandProgram() {
    std::vector<float> values(5000);
    std::iota(values.begin(), values.end(), 1.0F);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    const std::vector<format::ArrayView> arrays = {{"model/d/kernel", DType::f32, {100, 50}, bytes},
                                                   {"optimizer/momentum/d/kernel", DType::f32, {100, 50}, bytes}};
    format::write_array_file(posix_file_system(), path("a.h5"), kSavepoint, arrays);
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  static ProgramResult run(const std::vector<std::string>& arguments) {
    return run_program(built_program("holdfast"), arguments);
  }

  const TemporaryFolder folder_;
};

TEST_F(CommandProgram, ConvertsThroughEveryKindOfFileAndBackToTheSameBytes) {
  std::string last = path("a.h5");
  for (const std::string name : {"b.keras", "b.weights.h5"}) {
    const ProgramResult result = run({"convert", last, path(name)});
    ASSERT_EQ(result.exit_code, 0) << result.output;
    last = path(name);
  }
  ASSERT_EQ(run({"convert", last, path("c.h5"), "--like", path("a.h5")}).exit_code, 0);
  ASSERT_EQ(run({"convert", path("c.h5"), path("d.npz")}).exit_code, 0);
  ASSERT_EQ(run({"convert", path("d.npz"), path("e.safetensors")}).exit_code, 0);
  ASSERT_EQ(run({"convert", path("e.safetensors"), path("f.h5")}).exit_code, 0);

  const ProgramResult compared = run({"diff", path("a.h5"), path("f.h5")});

  EXPECT_EQ(compared.exit_code, 0) << compared.output;
  EXPECT_EQ(run({"verify", path("f.h5")}).exit_code, 0);
}

TEST_F(CommandProgram, ShowsKerasFilesThroughTheReaderProgram) {
  ASSERT_EQ(run({"convert", path("a.h5"), path("b.h5"), "--to", "keras-legacy"}).exit_code, 0);

  const ProgramResult inspected = run({"inspect", path("b.h5")});

  EXPECT_EQ(inspected.exit_code, 0);
  EXPECT_THAT(inspected.output, HasSubstr("format     Keras\n"));
  EXPECT_THAT(inspected.output, HasSubstr("model/d/kernel"));
}

TEST_F(CommandProgram, ReturnsAnExitCodeForScripts) {
  ASSERT_EQ(run({"verify", folder_.path()}).exit_code, 0);
  std::filesystem::copy_file(path("a.h5"), path("short.h5"));
  std::filesystem::resize_file(path("short.h5"), std::filesystem::file_size(path("short.h5")) - 1);

  EXPECT_EQ(run({"verify", folder_.path()}).exit_code, 1);
  EXPECT_EQ(run({"verify", path("missing.h5")}).exit_code, 2);
  EXPECT_EQ(run({"inspect", path("short.h5")}).exit_code, 2);
  EXPECT_EQ(run({"diff", path("a.h5"), path("missing.h5")}).exit_code, 2);
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"--help"}).exit_code, 0);
}

TEST_F(CommandProgram, PrintsWhatIsWrongInOneSentence) {
  const ProgramResult result = run({"inspect", path("missing.h5")});

  EXPECT_THAT(result.output, StartsWith("holdfast: "));
  EXPECT_THAT(result.output, HasSubstr(path("missing.h5")));
}

// With a FIFO, the command waited for a writer that never came.
TEST_F(CommandProgram, DoesNotWaitForAFileThatIsNotRegular) {
  ASSERT_EQ(::mkfifo(path("fifo.h5").c_str(), 0600), 0);
  std::filesystem::create_directory(path("folder.h5"));
  std::filesystem::create_symlink(path("loop.h5"), path("loop.h5"));
  std::filesystem::create_symlink("/dev/zero", path("device.h5"));
  for (const std::string name : {"fifo.h5", "folder.h5", "loop.h5", "device.h5"}) {
    const std::string file = path(name);
    const std::vector<std::vector<std::string>> commands = {{"inspect", file},
                                                            {"stats", file},
                                                            {"verify", file},
                                                            {"diff", file, path("a.h5")},
                                                            {"diff", path("a.h5"), file},
                                                            {"convert", file, path("out.npz")},
                                                            {"convert", path("a.h5"), path("out.npz"), "--like", file},
                                                            {"chaos", "--plan", file, "--", "/bin/true"}};
    for (const std::vector<std::string>& command : commands) {
      if (command[0] == "verify" && name == "folder.h5") continue;  // a folder of savepoints
      const ProgramResult result = run(command);

      EXPECT_FALSE(result.timed_out) << command[0] << " " << name;
      EXPECT_EQ(result.exit_code, 2) << command[0] << " " << name << ": " << result.output;
      EXPECT_THAT(result.output, HasSubstr("not a regular file")) << command[0] << " " << name;
    }
  }
}

TEST_F(CommandProgram, ReturnsNotDoneWhenItsOutputCannotBeWritten) {
  const std::string command = built_program("holdfast") + " inspect " + path("a.h5") + " > /dev/full";

  EXPECT_EQ(run_program("/bin/sh", {"-c", command}).exit_code, 2);
}

}  // namespace
}  // namespace holdfast
