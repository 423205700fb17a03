#include "stats.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "exit_code.h"
#include "holdfast/format/array_statistics.h"
#include "holdfast/format/exchange/any_file.h"
#include "progress.h"
#include "table.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using format::AnyFile;
using format::ArrayInfo;
using format::ArrayStatistics;

// A character for each bin, the higher the more elements are in it.
std::string draw(const ArrayStatistics& statistics) {
  static const std::vector<std::string> kHeights = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::uint64_t most = *std::max_element(statistics.histogram.begin(), statistics.histogram.end());
  if (most == 0) return "";
  std::string text;
  for (const std::uint64_t count : statistics.histogram) {
    // What is not empty is seen.
    const double height = static_cast<double>(count) / static_cast<double>(most) * 8;
    text += kHeights[count == 0 ? 0 : std::max<std::size_t>(1, static_cast<std::size_t>(height + 0.5))];
  }
  return "|" + text + "|";
}

// A number only where there are elements that it is of.
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

}  // namespace

int stats(FileSystem& files, const StatsOptions& options, Console& console) {
  const AnyFile file = AnyFile::open(files, options.path);
  Table table(
      {"name", "type", ">elements", ">min", ">max", ">mean", ">std", ">norm", ">zeros", ">NaN", ">Inf", "min to max"});
  nlohmann::ordered_json arrays = nlohmann::ordered_json::array();
  std::uint64_t total = 0;
  std::uint64_t done = 0;
  for (const ArrayInfo& array : file.arrays()) total += format::size_bytes(array);
  {
    Progress progress(console, "reading " + options.path);
    for (const ArrayInfo& array : file.arrays()) {
      const ArrayStatistics statistics = format::statistics_of(array.dtype, file.read(array.name));
      if (options.as_json) {
        arrays.push_back(describe(array, statistics));
      } else {
        add_row(array, statistics, table);
      }
      progress.show(done += format::size_bytes(array), total);
    }
  }
  if (options.as_json) {
    const nlohmann::ordered_json description = {{"file", options.path}, {"arrays", std::move(arrays)}};
    console.out << description.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  } else {
    table.write(console.out);
  }
  return kDone;
}

}  // namespace holdfast::cli
