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
     {"faults", "decide", "journal", "channel", "run_directory", "gpu", "memory", "detect", "control", "process",
      "worker", "links", "hosts", "agents", "watchdog"},
     ""},
    {"format/src", {"codec", "hdf5", "container", "view", "array_files"}, ""},
    {"exchange/src",
     {"bytes", "zip", "safetensors", "numpy", "foreign_hdf5", "keras_files", "keras_layers", "pytorch", "keras",
      "files"},
     ""},
    {"sdk/src", kSdkParts, ""},
    {"sdk/src/data",
     {"kept", "stages", "passes", "skipped", "sources", "lengths", "pictures", "files", "tables", "cache", "batches"},
     "data/"},
    {"sdk/src/train", {"context", "state", "step", "agreement", "saving", "supervise", "fit"}, "train/"},
    {"sdk/src/nn", {"graph", "operations", "plan", "layers", "model", "program", "losses", "models"}, "nn/"},
    {"sdk/src/compute", {"arithmetic", "cpu", "cuda"}, "compute/"},
    {"sdk/src/collective", {"memory", "nccl", "hosts"}, "collective/"},
    {"sdk/src/compute/cuda", {"runtime", "kernels", "products", "backend"}, "compute/cuda/"},
};

// Folders with files that all their rooms share. These files include no room.
const std::vector<std::string> kSharedFolders = {"sdk/src/compute", "sdk/src/collective", "sdk/src/optim"};

bool is_shared(const std::string& folder) {
  return std::find(kSharedFolders.begin(), kSharedFolders.end(), folder) != kSharedFolders.end();
}

// Rooms that stand for one another, of which none includes another.
const std::vector<std::vector<std::string>> kAlternatives = {
    {"sdk/src/compute/cpu", "sdk/src/compute/cuda"},
    {"sdk/src/collective/memory", "sdk/src/collective/nccl"},
    // Hosts stand on memory: within a host, ranks add in shared memory.
    {"sdk/src/collective/hosts", "sdk/src/collective/nccl"},
    {"sdk/src/optim/rules", "sdk/src/optim/schedules", "sdk/src/optim/whole_arrays"},
};

// Folders that may have many sources and no folders by subject.
const std::set<std::string> kLongFolders = {
    "cli",                      // has at least one source for each command
    "sdk/include/holdfast/nn",  // has a header for each layer, which applications include by this path
};

// The libraries next to the SDK, and which of its private headers each may include: those in these folders, not in
// folders below them.
const std::map<std::string, std::set<std::string>> kLibrariesBesideTheSdk = {
    {"sdk/parquet", {"data/tables"}},
    {"sdk/torch", {"compute", "compute/arithmetic", "optim", "train/step", "train/step/outputs"}},
};

bool is_source(const fs::path& path) {
  static const std::set<std::string> kExtensions = {".h", ".c", ".cpp", ".cu", ".cuh"};
  return kExtensions.contains(path.extension().string());
}

// Also scripts, which have one of these extensions or none.
bool is_source_or_script(const fs::path& path) {
  static const std::set<std::string> kExtensions = {".py", ".sh", ".cmake"};
  if (is_source(path) || kExtensions.contains(path.extension().string())) return true;
  if (path.has_extension()) return false;
  std::ifstream file(path);
  return file.get() == '#' && file.get() == '!';
}

// How many sources and scripts each folder has itself, without those of folders below it.
std::map<std::string, int> sources_by_folder() {
  std::map<std::string, int> counts;
  for (const char* part : {"base", "bench", "cli", "cmake", "examples", "exchange", "format", "python", "recovery",
                           "scripts", "sdk", "testing", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / part)) {
      if (!entry.is_regular_file() || !is_source_or_script(entry.path())) continue;
      ++counts[fs::relative(entry.path(), source_folder()).parent_path().string()];
    }
  }
  return counts;
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

// The folder of a private header, relative to the source tree; empty for any other header.
std::string folder_of(const std::string& target) {
  for (const char* root : {"base/src", "format/src", "exchange/src", "recovery/src", "sdk/src"}) {
    const fs::path header = fs::path(root) / target;
    if (fs::is_regular_file(source_folder() / header)) return header.parent_path().string();
  }
  return "";
}

using Arrows = std::map<std::string, std::set<std::string>>;  // from a folder to those that it includes

// Whether `folder` is reached again from `at`. Notes the folders on the way in `path`, and those without a way in
// `ends`.
bool returns_to(const std::string& folder, const std::string& at, const Arrows& arrows, std::set<std::string>& ends,
                std::vector<std::string>& path) {
  if (!ends.insert(at).second || !arrows.contains(at)) return false;
  path.push_back(at);
  for (const std::string& next : arrows.at(at)) {
    if (next == folder || returns_to(folder, next, arrows, ends, path)) return true;
  }
  path.pop_back();
  return false;
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

// As below for rooms: what a public header declares is defined by the source of its name. Headers of callbacks are in
// the folder of train.
TEST(House, PartsOfTheSdkIncludePublicHeadersOnlyOfPartsBelowThem) {
  std::map<std::string, std::set<std::string>> parts_of_name;
  for (const std::string& file : sources_below("sdk/src")) {
    if (file.ends_with(".cpp")) parts_of_name[fs::path(file).stem().string()].insert(part_of_file(file));
  }
  std::size_t of_callbacks = 0;
  for (const Include& include : includes_below("sdk/src")) {
    const std::string from = part_of_file(include.file);
    const std::string to = owner_of(include.target);
    if (!include.target.starts_with("holdfast/") || !is_sdk_part(from) || !is_sdk_part(to)) continue;
    const auto found = parts_of_name.find(fs::path(include.target).stem().string());
    if (found == parts_of_name.end() || found->second.contains(to)) continue;
    for (const std::string& part : found->second) {
      EXPECT_LE(level(part), level(from)) << include.file << " -> " << include.target;
      if (part == "callbacks") ++of_callbacks;
    }
  }
  EXPECT_GT(of_callbacks, 0U);
}

TEST(House, OnlySnapshotAndResumeKnowTheFormatAndOnlySuperviseKnowsRecovery) {
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

// The library is built without LibTorch, too.
TEST(House, OnlyTheOptionalPartKnowsLibTorch) {
  for (const char* folder : {"base", "format", "exchange", "recovery", "testing", "sdk", "cli"}) {
    for (const Include& include : includes_below(folder)) {
      const bool is_of_torch = include.target.starts_with("torch/") || include.target.starts_with("ATen/") ||
                               include.target.starts_with("c10/");
      EXPECT_TRUE(!is_of_torch || include.file.starts_with("sdk/torch/")) << include.file << " -> " << include.target;
    }
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

// What a public header declares is defined in the source of its name, so including it means to depend on that source's
// room. Headers that only hold data have no source, and belong to no room.
TEST(House, RoomsIncludePublicHeadersOnlyOfRoomsBeforeThem) {
  const std::map<std::string, std::string> public_folders = {
      {"recovery/src", "holdfast/recovery/"},        {"format/src", "holdfast/format/"},
      {"exchange/src", "holdfast/format/exchange/"}, {"sdk/src/data", "holdfast/data/"},
      {"sdk/src/train", "holdfast/train/"},          {"sdk/src/nn", "holdfast/nn/"}};
  for (const Rooms& rooms : kRooms) {
    if (!public_folders.contains(rooms.folder)) continue;
    const std::string& prefix = public_folders.at(rooms.folder);
    // The first room in which a name is found: layers and operations share some.
    std::map<std::string, std::size_t> room_of_name;
    for (const std::string& file : sources_below(rooms.folder)) {
      const std::optional<std::size_t> room = room_in(rooms, file.substr(rooms.folder.size() + 1));
      if (!room || !file.ends_with(".cpp")) continue;
      const auto [known, is_new] = room_of_name.insert({fs::path(file).stem().string(), *room});
      if (!is_new) known->second = std::min(known->second, *room);
    }
    std::size_t includes = 0;
    for (const Include& include : includes_below(rooms.folder)) {
      const std::optional<std::size_t> from = room_in(rooms, include.file.substr(rooms.folder.size() + 1));
      if (!from || !include.target.starts_with(prefix)) continue;
      const auto to = room_of_name.find(fs::path(include.target).stem().string());
      if (to == room_of_name.end()) continue;
      ++includes;
      EXPECT_LE(to->second, *from) << include.file << " -> " << include.target;
    }
    EXPECT_GT(includes, 0U) << "no include of a public header was found in " << rooms.folder;
  }
}

TEST(House, NoFoldersIncludeOneAnother) {
  Arrows arrows;
  for (const char* part : {"base/src", "format/src", "exchange/src", "recovery/src", "sdk/src"}) {
    for (const Include& include : includes_below(part)) {
      const std::string from = fs::path(include.file).parent_path().string();
      const std::string to = folder_of(include.target);
      if (!to.empty() && to != from) arrows[from].insert(to);
    }
  }

  ASSERT_GT(arrows.size(), 30U);
  for (const auto& [folder, included] : arrows) {
    std::set<std::string> ends;
    std::vector<std::string> path;
    EXPECT_FALSE(returns_to(folder, folder, arrows, ends, path))
        << "these folders include one another: " << ::testing::PrintToString(path);
  }
}

TEST(House, FilesThatRoomsShareIncludeNoRoom) {
  for (const std::string& folder : kSharedFolders) {
    int shared = 0;
    for (const Include& include : includes_below(folder)) {
      if (fs::path(include.file).parent_path() != folder) continue;
      ++shared;
      EXPECT_FALSE(folder_of(include.target).starts_with(folder + "/")) << include.file << " -> " << include.target;
    }
    EXPECT_GT(shared, 0) << folder;
  }
}

// The CPU's operations call its vector kernels, which are compiled once for each instruction set.
TEST(House, KernelsOfTheCpuKnowNoOperation) {
  const std::vector<Include> includes = includes_below("sdk/src/compute/cpu/kernels");
  EXPECT_FALSE(includes.empty());
  for (const Include& include : includes) {
    for (const char* operations : {"sdk/src/compute/cpu", "sdk/src/compute/cpu/products"})
      EXPECT_NE(folder_of(include.target), operations) << include.file << " -> " << include.target;
  }
}

TEST(House, AlternativesDoNotKnowOneAnother) {
  for (const std::vector<std::string>& rooms : kAlternatives) {
    for (const std::string& room : rooms) {
      const std::vector<Include> includes = includes_below(room);
      EXPECT_FALSE(includes.empty()) << room;
      for (const Include& include : includes) {
        const std::string to = folder_of(include.target) + "/";
        const bool is_of_another = std::any_of(rooms.begin(), rooms.end(), [&](const auto& other) {
          return other != room && to.starts_with(other + "/");
        });
        EXPECT_FALSE(is_of_another) << include.file << " -> " << include.target;
      }
    }
  }
}

TEST(House, LibrariesNextToTheSdkUseFewOfItsRooms) {
  for (const auto& [library, allowed] : kLibrariesBesideTheSdk) {
    int arrows = 0;
    for (const Include& include : includes_below(library)) {
      const std::string folder = folder_of(include.target);
      if (folder.empty()) continue;
      ++arrows;
      EXPECT_TRUE(folder.starts_with("sdk/src/") && allowed.contains(folder.substr(8)))
          << include.file << " -> " << include.target;
    }
    EXPECT_GT(arrows, 0) << library;
  }
}

TEST(House, NothingIncludesTheLibrariesNextToTheSdk) {
  for (const char* part : {"base", "format", "exchange", "recovery", "testing", "sdk/include", "sdk/src", "cli"}) {
    for (const Include& include : includes_below(part)) {
      const bool is_of_a_library =
          include.target.starts_with("holdfast/torch") || include.target == "holdfast/data/parquet.h";
      EXPECT_FALSE(is_of_a_library) << include.file << " -> " << include.target;
    }
  }
}

TEST(House, EachSourceLiesInARoom) {
  for (const Rooms& rooms : kRooms) {
    for (const std::string& file : sources_below(rooms.folder)) {
      const std::string name = file.substr(rooms.folder.size() + 1);
      if (is_shared(rooms.folder) && name.find('/') == std::string::npos) continue;
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
  const std::map<std::string, int> counts = sources_by_folder();
  for (const auto& [folder, count] : counts) {
    EXPECT_TRUE(count <= kMost || kLongFolders.contains(folder))
        << folder << " has " << count << " sources; put them into folders by subject, of at most " << kMost << " each";
  }
  for (const std::string& folder : kLongFolders) {
    EXPECT_TRUE(counts.contains(folder) && counts.at(folder) > kMost) << folder << " needs no exception any more";
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
