// The file's text is not trusted: it becomes a model, which checks all of it, and the drawing is made of that model.
// Only where layers of an application stand in it, which this program does not link, is it drawn by its names. Graphviz
// is not a library that we link, since few machines need it; it runs as a program where it is installed.

#include "plot.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "child_program.h"
#include "folder.h"
#include "graph_drawing.h"
#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/exchange/any_file.h"
#include "holdfast/nn/model.h"
#include "metadata.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

constexpr const char* kImageExtension = ".svg";
constexpr const char* kTextExtension = ".dot";

// An output of another name might be a savepoint that a drawing would replace.
std::filesystem::path checked_output(const PlotOptions& options) {
  std::filesystem::path output = options.output;
  if (options.output.empty()) output = std::filesystem::path(options.path).stem().string() + kImageExtension;
  if (output.extension() == kImageExtension || output.extension() == kTextExtension) return output;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is not the name of a drawing; --output takes a name that ends in .svg (an image) or .dot "
                          "(text for Graphviz)",
                          options.output));
}

struct DescribedDrawing {
  std::string text;
  std::size_t layers;
  bool lacks_shapes = false;  // of layers that this program does not know
};

DescribedDrawing read_drawing(FileSystem& files, const std::string& path, bool shows_shapes) {
  // Its graph is in another form, which `convert` translates.
  if (format::recognise(files, path) == format::FileKind::keras) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{0} is a Keras file, and plot draws Holdfast's; convert it first with `holdfast convert {0} "
                    "model.h5`, and plot model.h5",
                    path));
  }
  const format::ArrayFile file = format::ArrayFile::open(files, path);
  const nlohmann::ordered_json metadata = parse_metadata(file.metadata());
  const bool has_graph = metadata.is_object() && metadata.contains("graph");
  const nlohmann::ordered_json graph = has_graph ? metadata["graph"] : nlohmann::ordered_json();
  const std::string format = graph.is_object() && graph.contains("format") && graph["format"].is_string()
                                 ? graph["format"].get<std::string>()
                                 : std::string();
  // Any JSON may stand there: the graph of an application's own Trainable is its own matter.
  if (!format.starts_with("holdfast.")) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} holds no model of layers, so there is nothing to draw; give a savepoint of a model that "
                    "was described with layers",
                    path));
  }
  try {
    const Model model = Model::from_graph(graph.dump());
    return {.text = model.drawing({.shows_shapes = shows_shapes}), .layers = model.layers().size()};
  } catch (const Error& error) {
    // A layer of an application is not known to this program, which links Holdfast's own alone.
    if (auto drawing = drawing_of_own_layers(graph)) {
      return {.text = std::move(*drawing), .layers = graph["layers"].size(), .lacks_shapes = shows_shapes};
    }
    throw Error(error.code(), fmt::format("{}: {}; a program that knows the layers can write model.drawing() itself",
                                          path, error.what()));
  }
}

void write_drawing(FileSystem& files, const std::filesystem::path& path, std::string_view text) {
  write_whole_file(files, path.string(), std::as_bytes(std::span(text)));
}

// Empty where Graphviz is missing. The text goes through a pipe, so that no file is left over when the program fails.
std::optional<std::string> render(const PlotOptions& options, const std::string& drawing) {
  // The layout of a large graph may take very long, hence a limit.
  const auto result = run_child({options.renderer, "-Tsvg"}, drawing, Deadline::after(options.time_limit));
  if (!result) return std::nullopt;
  // The exit code alone does not show that the program drew anything.
  if (result->exit_code == 0 && result->output.find("<svg") != std::string::npos) return result->output;
  // Enough for Graphviz's own sentence, whatever else the program prints.
  constexpr std::size_t kMostBytes = 400;
  throw Error(ErrorCode::unavailable,
              fmt::format("{} made no image (exit code {}: {}); write the text with --output NAME.dot instead",
                          options.renderer, result->exit_code, shortened(printable(result->problems), kMostBytes)));
}

}  // namespace

int plot(FileSystem& files, const PlotOptions& options, Console& console) {
  std::filesystem::path output = checked_output(options);
  if (is_folder(files, options.path)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is a folder; plot draws the model of one savepoint, not the metrics of a run; name a "
                            "savepoint in it",
                            options.path));
  }
  const DescribedDrawing drawing = read_drawing(files, options.path, options.shows_shapes);
  const std::optional<std::string> image =
      output.extension() == kImageExtension ? render(options, drawing.text) : std::optional<std::string>();
  const bool lacks_renderer = output.extension() == kImageExtension && !image;
  // The text is worth having and can be drawn elsewhere. An error would leave the user with nothing.
  if (lacks_renderer) output.replace_extension(kTextExtension);
  write_drawing(files, output, image ? *image : drawing.text);
  console.out << "wrote " << printable(output.string()) << ": " << describe_count(drawing.layers, "layer") << "\n";
  if (drawing.lacks_shapes) {
    console.out << "note: shapes are left out, since the model has layers of an application, which holdfast does not "
                   "know; a program that knows them can write model.drawing()\n";
  }
  if (lacks_renderer) {
    console.out << "note: there is no program \"" << printable(options.renderer)
                << "\" (install Graphviz), so this is its text and not an image\n";
  }
  return kDone;
}

void add_plot(Subcommands& commands) {
  commands.add<PlotOptions>(
      "plot", "Draw the model of a savepoint",
      [](CLI::App& command, PlotOptions& options) {
        command.add_option("FILE", options.path, "A savepoint of a model that was described with layers")->required();
        command
            .add_option("-o,--output", options.output,
                        "The file to write, or to replace: .svg (through Graphviz's dot), or .dot (text). Default: the "
                        "name of FILE with .svg, in the working directory")
            ->type_name("OUT");
        command.add_flag("--shapes", options.shows_shapes, "Write the shape of one sample at each arrow");
      },
      [&commands](const PlotOptions& options) { return plot(commands.files, options, commands.console); });
}

}  // namespace holdfast::cli
