// Who may include whom (the house of the design): a turned arrow fails here with its name.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace holdfast {
namespace {

namespace fs = std::filesystem;

struct Include {
  std::string file;    // relative to the source tree
  std::string target;  // as written
};

const std::vector<std::string> kSdkParts = {"core", "compute", "collective", "nn", "optim", "data", "train", "observe"};

std::vector<Include> includes_below(const std::string& folder) {
  static const std::regex pattern("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  std::vector<Include> includes;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(HOLDFAST_SOURCE_DIR) / folder)) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (std::regex_search(line, match, pattern)) {
        includes.push_back({fs::relative(entry.path(), HOLDFAST_SOURCE_DIR).string(), match[1].str()});
      }
    }
  }
  return includes;
}

// "base", "format", "recovery", or the part of the sdk; empty for what is not ours.
std::string owner_of(const std::string& target) {
  const auto part_of = [](const std::string& path) { return path.substr(0, path.find('/')); };
  if (target.starts_with("holdfast/")) {
    const std::string part = part_of(target.substr(9));
    return part == "holdfast.h" ? "umbrella" : part;
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
    if (file.starts_with(root)) return file.substr(root.size(), file.find('/', root.size()) - root.size());
  }
  return "";
}

}  // namespace

TEST(House, BaseFormatRecoveryAndTestingStandOnTheirOwn) {
  const std::map<std::string, std::set<std::string>> allowed = {{"base", {"", "base"}},
                                                                {"format", {"", "base", "format"}},
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
      EXPECT_TRUE(stem.starts_with("supervise") || stem == "trainer") << include.file << " -> " << include.target;
    }
  }
}

TEST(House, PublicHeadersNameNoLibraryOfTheBackEnds) {
  const std::regex forbidden("(cuda|cudnn|cublas|nccl|hdf5|H5|boost|oneapi|dnnl|gloo).*", std::regex::icase);
  for (const char* folder : {"base/include", "format/include", "recovery/include", "testing/include", "sdk/include"}) {
    for (const Include& include : includes_below(folder)) {
      EXPECT_FALSE(std::regex_match(include.target, forbidden)) << include.file << " -> " << include.target;
    }
  }
}

TEST(House, BaseHeadersNeedTheStandardLibraryAlone) {
  for (const Include& include : includes_below("base/include")) {
    const bool is_standard =
        include.target.find('/') == std::string::npos && include.target.find('.') == std::string::npos;
    EXPECT_TRUE(is_standard || owner_of(include.target) == "base") << include.file << " -> " << include.target;
  }
}

TEST(House, OnlyOneFolderKnowsHdf5) {
  for (const char* folder : {"base", "format", "recovery", "testing", "sdk", "cli"}) {
    for (const Include& include : includes_below(folder)) {
      if (include.target != "hdf5.h" && !include.target.starts_with("H5")) continue;
      const bool is_allowed = include.file.starts_with("format/src/hdf5/") ||
                              include.file.starts_with("format/hdf5_reader/") ||
                              include.file.starts_with("format/plugin/");
      EXPECT_TRUE(is_allowed) << include.file << " -> " << include.target;
    }
  }
}

TEST(House, ExamplesUsePublicHeadersOnly) {
  for (const Include& include : includes_below("examples")) {
    const bool is_own = include.target.find('/') == std::string::npos;
    const bool is_public = include.target.starts_with("holdfast/");
    const bool is_library = include.target.starts_with("CLI/") || include.target.starts_with("nlohmann/") ||
                            include.target.starts_with("gtest/");
    EXPECT_TRUE(is_own || is_public || is_library) << include.file << " -> " << include.target;
  }
}

// Looking at nothing would find nothing wrong.
TEST(House, WasLookedAt) {
  EXPECT_GT(includes_below("base").size(), 20U);
  EXPECT_GT(includes_below("sdk").size(), 100U);
}

}  // namespace holdfast
