#pragma once

// How the options of a layer are written to files and read from them. A layer writes all its options, those with their
// default too, because a later default must not change what a file means:
//
//   void Scale::write_config(ConfigWriter& config) const { config.number("start", start_); }
//
//   std::shared_ptr<const Layer> Scale::from_config(const std::string& name, ConfigReader& config) {
//     return std::make_shared<const Scale>(config.number("start"), name);
//   }

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/nn/layer.h"

namespace holdfast {

// The keys of one layer are different. The order of calls is the order in the file.
class ConfigWriter {
 public:
  virtual ~ConfigWriter() = default;

  virtual void boolean(std::string_view key, bool value) = 0;          // true or false
  virtual void integer(std::string_view key, std::int64_t value) = 0;  // any of 64 bits
  // Finite. It reads back as the same float.
  virtual void number(std::string_view key, float value) = 0;
  virtual void text(std::string_view key, std::string_view value) = 0;                       // UTF-8
  virtual void extent(std::string_view key, Extent2D value) = 0;                             // height and width
  virtual void integers(std::string_view key, const std::vector<std::int64_t>& values) = 0;  // in their order
  // A missing number is null.
  virtual void numbers(std::string_view key, const std::vector<std::optional<float>>& values) = 0;
};

// Reads what a ConfigWriter wrote, in any order. The text may come from a stranger: each function throws
// Error{invalid_file} that names the key if the value is missing or of another type, and the layer checks whether a
// value makes sense. Each key must be read once; a value that nobody reads makes the file invalid.
class ConfigReader {
 public:
  virtual ~ConfigReader() = default;

  // Each returns what the ConfigWriter's function of this name wrote.
  virtual bool boolean(std::string_view key) = 0;
  virtual std::int64_t integer(std::string_view key) = 0;
  virtual float number(std::string_view key) = 0;
  virtual std::string text(std::string_view key) = 0;
  virtual Extent2D extent(std::string_view key) = 0;
  virtual std::vector<std::int64_t> integers(std::string_view key) = 0;
  virtual std::vector<std::optional<float>> numbers(std::string_view key) = 0;
  // Whether there is such a value: for options that a class got after the first files with it were written.
  virtual bool has(std::string_view key) const = 0;
};

// Makes a kind of layer known to load_model() and Model::from_graph():
//
//   const bool is_registered = register_layer<Scale>("my_app.Scale");
//
// `Self::from_config` is as above. A kind is what Layer::kind() returns; those of applications have a dot, so that they
// never collide with those of Holdfast. Throws Error{invalid_argument} for a kind without a dot, or one that is
// registered already. Any thread may call it. Returns true.
using LayerFromConfig = std::shared_ptr<const Layer> (*)(const std::string& name, ConfigReader& config);
// The same for any function that reads a configuration.
bool register_layer(const std::string& kind, LayerFromConfig from_config);
// The same for a class with a function from_config().
template <class Self>
bool register_layer(const std::string& kind) {
  return register_layer(kind, &Self::from_config);
}

}  // namespace holdfast
