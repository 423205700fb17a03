// Which part may include which, and which room within a part. An #include in the wrong direction fails here by name.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/folders.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

struct Include {
  std::string file;    // relative to the source tree
  std::string target;  // as written
};

const std::vector<std::string> kSdkParts = {"core",  "compute", "collective", "nn",
                                            "optim", "data",    "train",      "callbacks"};

// The rooms of a folder, each of which includes only itself and rooms before it.
struct Rooms {
  std::string folder;
  std::vector<std::string> names;
  std::string include_prefix;  // in front of a room's name in an #include
};

const std::vector<Rooms> kRooms = {
    {"recovery/src",
     {"decide", "faults", "journal", "channel", "gpu", "memory", "detect", "control", "process", "worker", "hosts",
      "watchdog"},
     ""},
    {"format/src", {"codec", "hdf5", "container", "view", "array_files"}, ""},
    {"exchange/src",
     {"bytes", "zip", "safetensors", "numpy", "foreign_hdf5", "keras_files", "keras_layers", "pytorch", "keras",
      "files"},
     ""},
    {"sdk/src", kSdkParts, ""},
    {"sdk/src/data",
     {"stages", "skipped", "sources", "lengths", "pictures", "files", "tables", "cache", "batches"},
     "data/"},
    {"sdk/src/train", {"context", "state", "step", "agreement", "saving", "supervise", "fit"}, "train/"},
    {"sdk/src/nn", {"graph", "operations", "plan", "layers", "losses", "model", "program"}, "nn/"},
    {"sdk/src/compute/cuda", {"runtime", "kernels", "products", "backend"}, "compute/cuda/"},
};

bool is_source(const fs::path& path) {
  static const std::set<std::string> kExtensions = {".h", ".cpp", ".cu", ".cuh"};
  return kExtensions.contains(path.extension().string());
}

std::vector<Include> includes_below(const std::string& folder) {
  static const std::regex pattern("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  std::vector<Include> includes;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / folder)) {
    if (!is_source(entry.path())) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.find('#') == std::string::npos) continue;  // looking for a pattern takes long
      std::smatch match;
      if (std::regex_search(line, match, pattern)) {
        includes.push_back({fs::relative(entry.path(), source_folder()).string(), match[1].str()});
      }
    }
  }
  return includes;
}

// "base", "format", "exchange", "recovery", or the part of the sdk; empty for other libraries.
std::string owner_of(const std::string& target) {
  const auto part_of = [](const std::string& path) { return path.substr(0, path.find('/')); };
  if (target.starts_with("holdfast/format/exchange/") || target == "holdfast/format/hdf5_reader.h") return "exchange";
  if (target.starts_with("holdfast/")) {
    const std::string part = part_of(target.substr(9));
    if (part == "holdfast.h") return "umbrella";
    return part == "observe" ? "callbacks" : part;
  }
  const std::string part = part_of(target);
  return std::find(kSdkParts.begin(), kSdkParts.end(), part) != kSdkParts.end() ? part : "";
}

std::size_t level(const std::string& part) {
  return static_cast<std::size_t>(std::find(kSdkParts.begin(), kSdkParts.end(), part) - kSdkParts.begin());
}

bool is_sdk_part(const std::string& part) {
  return level(part) < kSdkParts.size();
}

std::string part_of_file(const std::string& file) {
  for (const std::string& root : {std::string("sdk/src/"), std::string("sdk/include/holdfast/")}) {
    if (!file.starts_with(root)) continue;
    const std::string part = file.substr(root.size(), file.find('/', root.size()) - root.size());
    return part == "observe" ? "callbacks" : part;
  }
  return "";
}

std::vector<std::string> sources_below(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / folder)) {
    if (is_source(entry.path())) files.push_back(fs::relative(entry.path(), source_folder()).string());
  }
  return files;
}

// The index of the room that contains `path`, which is relative to the folder of the rooms; nothing outside all rooms.
std::optional<std::size_t> room_in(const Rooms& rooms, const std::string& path) {
  const auto room = std::find(rooms.names.begin(), rooms.names.end(), path.substr(0, path.find('/')));
  if (room == rooms.names.end() || path.find('/') == std::string::npos) return std::nullopt;
  return static_cast<std::size_t>(room - rooms.names.begin());
}

}  // namespace

TEST(House, BaseFormatExchangeRecoveryAndTestingStandOnTheirOwn) {
  const std::map<std::string, std::set<std::string>> allowed = {{"base", {"", "base"}},
                                                                {"format", {"", "base", "format"}},
                                                                {"exchange", {"", "base", "format", "exchange"}},
                                                                {"recovery", {"", "base", "recovery"}},
                                                                {"testing", {"", "base", "recovery", "testing"}}};
  for (const auto& [folder, owners] : allowed) {
    for (const Include& include : includes_below(folder)) {
      EXPECT_TRUE(owners.contains(owner_of(include.target))) << include.file << " -> " << include.target;
    }
  }
}

TEST(House, PartsOfTheSdkIncludeOnlyWhatIsBelowThem) {
  for (const Include& include : includes_below("sdk")) {
    const std::string from = part_of_file(include.file);
    const std::string to = owner_of(include.target);
    if (!is_sdk_part(from) || !is_sdk_part(to)) continue;
    EXPECT_LE(level(to), level(from)) << include.file << " -> " << include.target;
  }
}

TEST(House, OnlySnapshotAndResumeKnowTheFormatAndOnlySuperviseAndTrainerKnowRecovery) {
  for (const Include& include : includes_below("sdk")) {
    const std::string stem = fs::path(include.file).stem().string();
    const std::string to = owner_of(include.target);
    if (to == "format") {
      EXPECT_TRUE(stem == "snapshot" || stem == "resume") << include.file << " -> " << include.target;
    }
    if (to == "recovery") {
      EXPECT_TRUE(stem.starts_with("supervise")) << include.file << " -> " << include.target;
    }
  }
}

TEST(House, OnlyFilesOfDataAreReadByTheReadersOfExchange) {
  for (const Include& include : includes_below("sdk")) {
    if (owner_of(include.target) != "exchange") continue;
    EXPECT_TRUE(include.file.starts_with("sdk/src/data/files/")) << include.file << " -> " << include.target;
  }
}

TEST(House, PublicHeadersNameNoLibraryOfTheBackEnds) {
  const std::regex forbidden("(cuda|cudnn|cublas|nccl|hdf5|H5|boost|oneapi|dnnl|gloo).*", std::regex::icase);
  for (const char* folder :
       {"base/include", "format/include", "exchange/include", "recovery/include", "testing/include", "sdk/include"}) {
    for (const Include& include : includes_below(folder)) {
      EXPECT_FALSE(std::regex_match(include.target, forbidden)) << include.file << " -> " << include.target;
    }
  }
}

TEST(House, BaseHeadersNeedOnlyTheStandardLibrary) {
  for (const Include& include : includes_below("base/include")) {
    const bool is_standard =
        include.target.find('/') == std::string::npos && include.target.find('.') == std::string::npos;
    EXPECT_TRUE(is_standard || owner_of(include.target) == "base") << include.file << " -> " << include.target;
  }
}

TEST(House, OnlyRoomsForHdf5KnowHdf5) {
  const std::vector<std::string> rooms = {"format/src/hdf5/", "format/src/view/", "format/plugin/",
                                          "exchange/src/foreign_hdf5/", "exchange/hdf5_reader/"};
  for (const char* folder : {"base", "format", "exchange", "recovery", "testing", "sdk", "cli"}) {
    for (const Include& include : includes_below(folder)) {
      if (include.target != "hdf5.h" && !include.target.starts_with("H5")) continue;
      EXPECT_TRUE(
          std::any_of(rooms.begin(), rooms.end(), [&](const auto& room) { return include.file.starts_with(room); }))
          << include.file << " -> " << include.target;
    }
  }
}

TEST(House, RoomsIncludeOnlyRoomsBeforeThem) {
  for (const Rooms& rooms : kRooms) {
    std::size_t arrows = 0;
    for (const Include& include : includes_below(rooms.folder)) {
      const std::optional<std::size_t> from = room_in(rooms, include.file.substr(rooms.folder.size() + 1));
      if (!include.target.starts_with(rooms.include_prefix)) continue;
      const std::optional<std::size_t> to = room_in(rooms, include.target.substr(rooms.include_prefix.size()));
      if (!from || !to) continue;
      EXPECT_LE(*to, *from) << include.file << " -> " << include.target;
      if (*to != *from) ++arrows;
    }
    EXPECT_GT(arrows, 0U) << "no include between the rooms of " << rooms.folder << " was found";
  }
}

TEST(House, EachSourceLiesInARoom) {
  for (const Rooms& rooms : kRooms) {
    for (const std::string& file : sources_below(rooms.folder)) {
      const std::string name = file.substr(rooms.folder.size() + 1);
      EXPECT_TRUE(room_in(rooms, name).has_value()) << file << " lies in none of the rooms of " << rooms.folder;
    }
  }
}

// Exchange uses no source of format except the room that both need for HDF5.
TEST(House, ExchangeKnowsNoRoomOfFormatButHdf5) {
  for (const Include& include : includes_below("exchange")) {
    for (const std::string& room : kRooms[1].names) {
      EXPECT_TRUE(room == "hdf5" || !include.target.starts_with(room + "/"))
          << include.file << " -> " << include.target;
    }
  }
}

TEST(House, NoFolderIsFlatAndLong) {
  constexpr int kMost = 30;
  // cli has at least one file for each command, and layers have a header each, whose paths applications know.
  const std::set<std::string> allowed = {"cli", "sdk/include/holdfast/nn"};
  std::map<std::string, int> counts;
  for (const char* part : {"base", "format", "exchange", "recovery", "testing", "sdk", "cli"}) {
    for (const std::string& file : sources_below(part)) ++counts[fs::path(file).parent_path().string()];
  }
  for (const auto& [folder, count] : counts) {
    EXPECT_TRUE(count <= kMost || allowed.contains(folder)) << folder << " has " << count << " sources";
  }
}

TEST(House, ExamplesTheCommandAndTestingUsePublicHeadersOnly) {
  for (const char* folder : {"examples", "cli", "testing"}) {
    for (const Include& include : includes_below(folder)) {
      const bool is_own = include.target.find('/') == std::string::npos;
      const bool is_public = include.target.starts_with("holdfast/");
      const std::string part = include.target.substr(0, include.target.find('/'));
      const bool is_library =
          std::set<std::string>{"CLI", "fmt", "nlohmann", "gtest", "torch", "sys", "arpa", "netinet", "linux"}.contains(
              part);
      EXPECT_TRUE(is_own || is_public || is_library) << include.file << " -> " << include.target;
    }
  }
}

// A test that found no files would find no errors.
TEST(House, IsFoundByTheseTests) {
  EXPECT_GT(includes_below("base").size(), 20U);
  EXPECT_GT(includes_below("sdk").size(), 100U);
}

}  // namespace holdfast
