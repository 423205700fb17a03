#pragma once

// An encoder in a file: its text and a line end.

#include <fmt/format.h>

#include <span>
#include <string>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/whole_file.h"

namespace holdfast {

template <typename Encoder>
void save_encoder(const Encoder& encoder, const std::string& path) {
  const std::string content = encoder.text() + "\n";
  write_whole_file(posix_file_system(), path, std::as_bytes(std::span(content)));
}

// Throws what Encoder::from_text() throws, with the name of the file.
template <typename Encoder>
Encoder load_encoder(const std::string& path) {
  const std::string content = read_text_file(posix_file_system(), path);
  try {
    return Encoder::from_text(content);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", quoted_path(path), error.what()));
  }
}

}  // namespace holdfast
