// Compares the bits of two files: 0 and -0, or two NaNs with other bits, are a difference, since Holdfast promises the
// same bits. Only with a tolerance, also with 0, are elements compared as numbers. docs/decisions/exchange.md

#include <fmt/format.h>

#include <vector>

#include "holdfast/format/array_difference.h"
#include "holdfast/format/exchange/any_file.h"
#include "metadata.h"
#include "option_checks.h"
#include "progress.h"
#include "subcommands.h"
#include "table.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using format::AnyFile;
using format::ArrayDifference;
using format::ArrayInfo;

struct DiffOptions {
  std::string a;
  std::string b;
  std::optional<double> tolerance{};  // as of format::difference_of
  bool ignores_metadata = false;
};

std::string describe(const ArrayInfo& array) {
  return fmt::format("{} {}", name(array.dtype), describe_shape(array.shape));
}

std::string line_of(const ArrayInfo& array) {
  return fmt::format("{}  {}", array.name, describe(array));
}

// Collects all differences before it writes any: a line of progress would otherwise run into the output.
class Comparison {
 public:
  Comparison(FileSystem& files, const DiffOptions& options)
      : options_(options), a_(AnyFile::open(files, options.a)), b_(AnyFile::open(files, options.b)) {}

  void compare(Console& console) {
    for (const ArrayInfo& array : a_.arrays()) {
      if (b_.find(array.name) == nullptr) only_in_a_.push_back(line_of(array));
    }
    for (const ArrayInfo& array : b_.arrays()) {
      if (a_.find(array.name) == nullptr) only_in_b_.push_back(line_of(array));
    }
    compare_common(console);
    // Two savepoints of one state may differ in metadata alone, such as the version that wrote
    // them.
    if (!options_.ignores_metadata) {
      metadata_ = metadata_differences(parse_metadata(a_.metadata()), parse_metadata(b_.metadata()));
    }
  }

  // Arrays that only one file has are a difference, too.
  bool is_equal() const {
    return only_in_a_.empty() && only_in_b_.empty() && other_type_.empty() && values_.size() == 0 && metadata_.empty();
  }

  void write(std::ostream& out) const {
    out << "A  " << printable(options_.a) << "\nB  " << printable(options_.b) << "\n";
    write_list(out, "only in A", only_in_a_);
    write_list(out, "only in B", only_in_b_);
    write_list(out, "different type or shape", other_type_);
    if (values_.size() > 0) {
      out << "\ndifferent values:\n";
      values_.write(out);
    }
    write_list(out, "metadata", metadata_);
    write_sum(out);
  }

 private:
  static void write_list(std::ostream& out, const char* title, const std::vector<std::string>& lines) {
    if (!lines.empty()) out << "\n" << title << ":\n";
    for (const std::string& line : lines) out << "  " << printable(line) << "\n";
  }

  void write_sum(std::ostream& out) const {
    out << "\n";
    if (is_equal()) {
      out << "equal: " << describe_count(common_, "array")
          << (options_.tolerance ? fmt::format(" within {}", describe_number(*options_.tolerance)) : "");
    } else {
      out << "different: " << values_.size() + other_type_.size() << " of " << describe_count(common_, "common array")
          << ", " << only_in_a_.size() << " only in A, " << only_in_b_.size() << " only in B";
    }
    if (!options_.ignores_metadata) out << ", metadata " << (metadata_.empty() ? "equal" : "different");
    out << "\n";
  }

  // Progress counts the bytes of A alone, since both files have about the same arrays. Those of B without a counterpart
  // are not read.
  void compare_common(Console& console) {
    Progress progress(console, "comparing");
    std::uint64_t total = 0;
    std::uint64_t done = 0;
    for (const ArrayInfo& array : a_.arrays()) total += format::size_bytes(array);
    for (const ArrayInfo& array : a_.arrays()) {
      const ArrayInfo* other = b_.find(array.name);
      if (other != nullptr) compare(array, *other);
      done += format::size_bytes(array);
      progress.show(done, total);
    }
  }

  void compare(const ArrayInfo& a, const ArrayInfo& b) {
    // Counted whether equal or not: the summary says how many arrays were compared.
    ++common_;
    // Elements of arrays with other types or shapes have no counterpart, so they are not compared.
    if (a.dtype != b.dtype || a.shape != b.shape) {
      other_type_.push_back(fmt::format("{}  {} in A, {} in B", a.name, describe(a), describe(b)));
      return;
    }
    // One array of each file at a time, so that Holdfast's files may be larger than memory.
    const ArrayDifference difference =
        format::difference_of(a.dtype, a_.read(a.name), b_.read(b.name), options_.tolerance);
    if (difference.differing == 0) return;
    values_.add({a.name, std::to_string(difference.differing), std::to_string(difference.elements),
                 describe_number(difference.max_absolute), describe_number(difference.max_relative),
                 std::to_string(difference.nans_in_a), std::to_string(difference.nans_in_b)});
  }

  const DiffOptions& options_;
  const AnyFile a_;
  const AnyFile b_;
  std::uint64_t common_ = 0;
  // A line for each difference.
  std::vector<std::string> only_in_a_;
  std::vector<std::string> only_in_b_;
  std::vector<std::string> other_type_;
  Table values_{{"name", ">differing", ">elements", ">max difference", ">relative", ">NaN in A", ">NaN in B"}};
  std::vector<std::string> metadata_;
};

// Holds one array of each file in memory at a time. Returns kDone for equal files, kDifferent for others. Throws what
// reading throws.
int diff(FileSystem& files, const DiffOptions& options, Console& console) {
  Comparison comparison(files, options);
  comparison.compare(console);
  comparison.write(console.out);
  return comparison.is_equal() ? kDone : kDifferent;
}

}  // namespace

void add_diff(Subcommands& commands) {
  commands.add<DiffOptions>(
      "diff", "Show the differences between two files. Exit code: 0 equal, 1 different, 2 not compared",
      [](CLI::App& command, DiffOptions& options) {
        command.add_option("A", options.a, kAnyFile)->required();
        command.add_option("B", options.b, "Another such file")->required();
        command
            .add_option(
                "--tolerance", options.tolerance,
                "Elements are equal if they differ by at most this, and all NaNs are equal (default: compare bits)")
            ->check(at_least(0));
        command.add_flag("--ignore-metadata", options.ignores_metadata, "Compare only the arrays");
      },
      [&commands](const DiffOptions& options) { return diff(commands.files, options, commands.console); });
}

}  // namespace holdfast::cli
