// Measures the values of each array. Large arrays are read piece by piece, in several passes, so that a file may be
// larger than memory. Small ones are kept whole, so that most files are read once.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "holdfast/format/array_statistics.h"
#include "holdfast/format/exchange/any_file.h"
#include "option_checks.h"
#include "progress.h"
#include "subcommands.h"
#include "table.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using format::AnyFile;
using format::ArrayInfo;
using format::ArrayStatistics;
using format::StatisticsBuilder;

struct StatsOptions {
  std::string path;
  bool as_json = false;
  std::uint64_t max_memory_bytes = kMaxFileMemoryBytes;  // as of AnyFileOptions
};

// A bar for each bin; its height shows how many elements are in the bin.
std::string draw(const ArrayStatistics& statistics) {
  static const std::vector<std::string> kHeights = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::uint64_t most = *std::max_element(statistics.histogram.begin(), statistics.histogram.end());
  if (most == 0) return "";
  std::string text;
  for (const std::uint64_t count : statistics.histogram) {
    // A bin that is not empty always has a visible bar.
    const double height = static_cast<double>(count) / static_cast<double>(most) * 8;
    text += kHeights[count == 0 ? 0 : std::max<std::size_t>(1, static_cast<std::size_t>(height + 0.5))];
  }
  return "|" + text + "|";
}

// "-" when the array has no finite element.
std::string number_of(const ArrayStatistics& statistics, double value) {
  return statistics.finite() == 0 ? "-" : describe_number(value);
}

void add_row(const ArrayInfo& array, const ArrayStatistics& statistics, Table& table) {
  table.add({array.name, std::string(name(array.dtype)), std::to_string(statistics.elements),
             number_of(statistics, statistics.minimum), number_of(statistics, statistics.maximum),
             number_of(statistics, statistics.mean), number_of(statistics, statistics.deviation),
             number_of(statistics, statistics.norm), std::to_string(statistics.zeros), std::to_string(statistics.nans),
             std::to_string(statistics.infinities), draw(statistics)});
}

nlohmann::ordered_json describe(const ArrayInfo& array, const ArrayStatistics& statistics) {
  // JSON has no NaN, so null stands for a number that needs a finite element and has none.
  const auto number = [&](double value) {
    return statistics.finite() == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  return {{"name", array.name},
          {"type", name(array.dtype)},
          {"shape", array.shape},
          {"elements", statistics.elements},
          {"min", number(statistics.minimum)},
          {"max", number(statistics.maximum)},
          {"mean", number(statistics.mean)},
          {"std", number(statistics.deviation)},
          {"norm", number(statistics.norm)},
          {"zeros", statistics.zeros},
          {"nan", statistics.nans},
          {"inf", statistics.infinities},
          {"histogram", statistics.histogram}};
}

// The statistics of all arrays, in their order. Arrays of up to kWholeBytes are held in memory, so that a file without
// larger ones is read once. Larger arrays are read piece by piece, in several passes.
class Measurement {
 public:
  explicit Measurement(const AnyFile& file) : file_(file) {
    for (const ArrayInfo& array : file.arrays()) {
      builders_.emplace_back(array.dtype);
      // So that the progress line does not stand at 100 % while large arrays are read again.
      total_ += format::size_bytes(array) * (is_small(array) ? 1 : StatisticsBuilder::kPasses);
    }
  }

  // Each pass after the first reads the large arrays alone. A file without a large array is read
  // once.
  std::vector<ArrayStatistics> run(Progress& progress) {
    std::vector<ArrayStatistics> results(builders_.size());
    bool is_again = true;
    for (int pass = 0; pass < StatisticsBuilder::kPasses && is_again; ++pass) {
      const auto wants = [&](const ArrayInfo& array) { return pass == 0 || !is_small(array); };
      is_again = false;
      file_.read_pieces(wants, [&](const ArrayInfo& array, std::span<const std::byte> piece) {
        if (is_small(array)) {
          collect(array, piece, results[number_of(array)]);
        } else {
          builders_[number_of(array)].add(piece);
          is_again = true;
        }
        progress.show(done_ += piece.size(), total_);
      });
      // A later pass uses what the one before found, such as the range of a histogram.
      for (StatisticsBuilder& builder : builders_) builder.end_pass();
    }
    for (const ArrayInfo& array : file_.arrays()) {
      if (!is_small(array)) results[number_of(array)] = builders_[number_of(array)].result();
    }
    return results;
  }

 private:
  static constexpr std::uint64_t kWholeBytes = std::uint64_t{64} << 20;

  static bool is_small(const ArrayInfo& array) { return format::size_bytes(array) <= kWholeBytes; }
  std::size_t number_of(const ArrayInfo& array) const {
    return static_cast<std::size_t>(&array - file_.arrays().data());
  }

  void collect(const ArrayInfo& array, std::span<const std::byte> piece, ArrayStatistics& result) {
    waiting_.insert(waiting_.end(), piece.begin(), piece.end());
    // The pieces of one array come in order, with none of another array between them.
    if (waiting_.size() < format::size_bytes(array)) return;
    result = format::statistics_of(array.dtype, waiting_);
    waiting_.clear();
  }

  const AnyFile& file_;
  std::vector<StatisticsBuilder> builders_;
  std::vector<std::byte> waiting_;  // the pieces of the small array that is being read
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
};

// Reads the arrays of a file of any kind one by one, and large ones piece by piece. Returns the exit code. Throws what
// reading throws.
int stats(FileSystem& files, const StatsOptions& options, Console& console) {
  const AnyFile file = AnyFile::open(files, options.path, {.max_memory_bytes = options.max_memory_bytes});
  const std::vector<ArrayStatistics> statistics = [&] {
    Progress progress(console, fmt::format("reading {}", options.path));
    return Measurement(file).run(progress);
  }();
  if (options.as_json) {
    nlohmann::ordered_json arrays = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < statistics.size(); ++i) arrays.push_back(describe(file.arrays()[i], statistics[i]));
    const nlohmann::ordered_json description = {{"file", options.path}, {"arrays", std::move(arrays)}};
    console.out << description.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  } else {
    Table table({"name", "type", ">elements", ">min", ">max", ">mean", ">std", ">norm", ">zeros", ">NaN", ">Inf",
                 "min to max"});
    for (std::size_t i = 0; i < statistics.size(); ++i) add_row(file.arrays()[i], statistics[i], table);
    table.write(console.out);
  }
  return kDone;
}

}  // namespace

void add_stats(Subcommands& commands) {
  commands.add<StatsOptions>(
      "stats", "Show range, mean, norm and histogram of each array's finite values, and count NaNs and infinities",
      [](CLI::App& command, StatsOptions& options) {
        command.add_option("FILE", options.path, kAnyFile)->required();
        command.add_flag("--json", options.as_json, "Print JSON");
        add_max_memory(command, options.max_memory_bytes);
      },
      [&commands](const StatsOptions& options) { return stats(commands.files, options, commands.console); });
}

}  // namespace holdfast::cli
