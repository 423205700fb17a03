// `holdfast plot` with programs of the test in place of Graphviz.

#include "plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "child_program.h"
#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;

class Plot : public testing::CommandTest {
 protected:
  // A program with this text for a shell.
  std::string program(const std::string& text) {
    const std::string path = folder_ / "program";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  void write_model(const Model& model) { write("/d/a.h5", {}, R"({"graph": )" + model.graph() + "}"); }
  std::string written(const std::string& path) {
    const auto bytes = files_.contents().at(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // The output, or the sentence of the error.
  std::string plot_with(const PlotOptions& options) {
    std::ostringstream out;
    Console console{.out = out, .problems = out};
    try {
      EXPECT_EQ(plot(files_, options, console), kDone);
    } catch (const Error& error) {
      return error.what();
    }
    return out.str();
  }

  TemporaryFolder folder_;
};

Model small_model() {
  const Value x = input({4}, {.name = "a \"quoted\" name"});
  return Model(x, x + Dense{4, {.name = "hidden"}}(relu(x)));
}

TEST_F(Plot, WritesTheImageThatTheProgramMakesOfTheDrawing) {
  write_model(small_model());

  EXPECT_EQ(plot_with({.path = "/d/a.h5", .output = "/d/a.svg", .renderer = program("echo \"<svg $1>\"; cat")}),
            "wrote /d/a.svg: 3 layers\n");

  EXPECT_EQ(written("/d/a.svg"), "<svg -Tsvg>\n" + small_model().drawing());
}

TEST_F(Plot, WritesTextWhereGraphvizIsMissingAndSaysSo) {
  write_model(small_model());

  const std::string said = plot_with({.path = "/d/a.h5", .output = "/d/a.svg", .renderer = folder_ / "missing"});

  EXPECT_THAT(said, HasSubstr("wrote /d/a.dot: 3 layers\nnote: there is no program"));
  EXPECT_THAT(said, HasSubstr("install Graphviz"));
  EXPECT_EQ(written("/d/a.dot"), small_model().drawing());
}

TEST_F(Plot, WritesTextForANameThatEndsInDot) {
  write_model(small_model());

  ASSERT_EQ(run({"plot", "/d/a.h5", "--shapes", "-o", "/d/b.dot"}), kDone) << problems();
  EXPECT_EQ(out(), "wrote /d/b.dot: 3 layers\n");
  EXPECT_EQ(written("/d/b.dot"), small_model().drawing({.shows_shapes = true}));

  ASSERT_EQ(run({"plot", "/d/a.h5", "--output", "/d/b.dot"}), kDone) << problems();
  EXPECT_EQ(written("/d/b.dot"), small_model().drawing());
}

TEST_F(Plot, RefusesAnOutputThatIsNotADrawing) {
  write_model(small_model());
  const FileContents before = files_.contents();

  EXPECT_EQ(run({"plot", "/d/a.h5", "-o", "/d/a.h5"}), kNotDone);

  EXPECT_THAT(problems(), HasSubstr("/d/a.h5 is not the name of a drawing"));
  EXPECT_EQ(files_.contents(), before);
}

TEST_F(Plot, RefusesAFolder) {
  EXPECT_EQ(run({"plot", "/d"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("/d is a folder; plot draws the model of one savepoint, not the metrics of a run"));
}

TEST_F(Plot, RefusesFilesWithoutAModelOfLayers) {
  for (const char* metadata :
       {"{}", "[]", "7", R"({"graph": null})", R"({"graph": {"format": 3}})", R"({"graph": {"format": "my model"}})"}) {
    write("/d/a.h5", {}, metadata);
    EXPECT_EQ(run({"plot", "/d/a.h5", "-o", "/d/a.dot"}), kNotDone);
    EXPECT_THAT(problems(), HasSubstr("/d/a.h5 holds no model of layers")) << metadata;
    files_.remove("/d/a.h5");
  }
}

TEST_F(Plot, SaysThatTheGraphDoesNotDescribeAModel) {
  for (const char* graph :
       {R"({"format": "holdfast.sequential"})", R"({"format": "holdfast.model", "version": 1})",
        R"({"format": "holdfast.sequential", "version": 1, "input_shape": [4], "layers": [{"kind": "Mine",
            "name": "a", "config": {}}]})"}) {
    write("/d/a.h5", {}, std::string(R"({"graph": )") + graph + "}");
    EXPECT_EQ(run({"plot", "/d/a.h5", "-o", "/d/a.dot"}), kNotDone);
    EXPECT_THAT(problems(), HasSubstr("/d/a.h5: the model graph does not describe a model")) << graph;
    files_.remove("/d/a.h5");
  }
}

TEST_F(Plot, DrawsLayersOfApplicationsByTheirNames) {
  write("/d/a.h5", {}, R"({"graph": {"format": "holdfast.sequential", "version": 1, "input_shape": [4],
      "layers": [{"kind": "my.Layer", "name": "a \"b\" & c", "config": {}}]}})");
  write("/d/b.h5", {}, R"({"graph": {"format": "holdfast.model", "version": 1,
      "inputs": [{"name": "x", "shape": [4], "dtype": "f32"}], "layers": [{"kind": "my.Layer", "name": "own"}],
      "calls": [{"layer": 0, "inputs": [[-1, 0], [7, 0], [-1, 3]]}, {"layer": 9}], "outputs": [[0, 0]]}})");

  ASSERT_EQ(run({"plot", "/d/a.h5", "--shapes", "-o", "/d/a.dot"}), kDone) << problems();
  EXPECT_THAT(out(), HasSubstr("1 layer\nnote: shapes are left out"));
  ASSERT_EQ(run({"plot", "/d/b.h5", "-o", "/d/b.dot"}), kDone) << problems();

  EXPECT_THAT(written("/d/a.dot"), HasSubstr("call0 [label=\"a \\\"b\\\" &amp; c\\nmy.Layer\""));
  EXPECT_THAT(written("/d/a.dot"), HasSubstr("input0 -> call0;\n"));
  const std::string graph = written("/d/b.dot");
  EXPECT_THAT(graph, HasSubstr("  input0 -> call0;\n"));
  EXPECT_THAT(graph, HasSubstr("  call0 -> output0;\n"));
  EXPECT_EQ(graph.find("call7"), std::string::npos) << "the file has no such call";
  EXPECT_EQ(graph.find("input3"), std::string::npos) << "nor such an input";
}

TEST_F(Plot, NamesConvertForKerasFiles) {
  write("/d/a.h5", {{"model/d/kernel", {2, 1}, {1, 2}}}, R"({"kind": "savepoint", "graph": {"format":
      "holdfast.sequential", "version": 1, "input_shape": [2], "layers": [{"kind": "Dense", "name": "d",
      "config": {"units": 1, "use_bias": false}}]}})");
  ASSERT_EQ(run({"convert", "/d/a.h5", "/d/b.keras"}), kDone) << problems();

  EXPECT_EQ(run({"plot", "/d/b.keras", "-o", "/d/b.dot"}), kNotDone);

  EXPECT_THAT(problems(), HasSubstr("/d/b.keras is a Keras file, and plot draws Holdfast's; convert it first"));
}

TEST_F(Plot, StopsAProgramThatDoesNotEnd) {
  write_model(small_model());

  EXPECT_THAT(plot_with({.path = "/d/a.h5",
                         .output = "/d/a.svg",
                         .renderer = program("exec tail -f /dev/null"),
                         .time_limit = std::chrono::milliseconds(50)}),
              HasSubstr("did not end in time and was stopped"));
  EXPECT_FALSE(files_.exists("/d/a.svg"));
}

TEST_F(Plot, SaysWhatTheProgramSaysWhenItFails) {
  write_model(small_model());

  EXPECT_THAT(plot_with({.path = "/d/a.h5", .output = "/d/a.svg", .renderer = program("echo 'no fonts' >&2; exit 3")}),
              HasSubstr("made no image (exit code 3: no fonts"));
  EXPECT_FALSE(files_.exists("/d/a.svg"));
}

TEST_F(Plot, ReportsTheSignalThatEndsAProgram) {
  const auto result = run_child({program("kill -9 $$")}, "", Deadline::after(std::chrono::minutes(1)));

  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->exit_code, 128 + 9);
}

}  // namespace
}  // namespace holdfast::cli
