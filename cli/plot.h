#pragma once

// `holdfast plot FILE`: draws the model of a savepoint.

#include <chrono>
#include <string>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct PlotOptions {
  std::string path;
  std::string output{};  // empty: FILE's name with .svg, in the working directory
  bool shows_shapes = false;
  // Graphviz's program, and the most time that it may take.
  std::string renderer = "dot";
  std::chrono::milliseconds time_limit = std::chrono::minutes(2);
};

// Writes an SVG image, or for an output that ends in .dot the text from which Graphviz draws it. Without Graphviz it
// writes that text instead of the image, and says so. Returns the exit code. Throws what opening the file throws,
// Error{invalid_argument} for a folder and for an output of another kind, and Error{unsupported} for a file that holds
// no model of layers.
int plot(FileSystem& files, const PlotOptions& options, Console& console);

}  // namespace holdfast::cli
