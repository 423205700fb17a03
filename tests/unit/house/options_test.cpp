// An option is declared, checked and obeyed, each in one place. A member of RecoveryOptions that more of the library's
// sources name has been copied, or its rule has been written twice. Options of `holdfast run` set members, and are not
// counted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "holdfast/base/recovery_options.h"
#include "support/folders.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 3;
constexpr const char* kDeclaration = "base/include/holdfast/base/recovery_options.h";

// Files that have a member of the same name in a struct of their own.
const std::map<std::string, std::set<std::string>> kOtherMembers = {
    // The first message of the watchdog takes these to the workers, which are other processes.
    {"faults",
     {"recovery/src/channel/messages.h", "recovery/src/channel/messages.cpp", "recovery/src/worker/worker.cpp",
      // How many faults are drawn.
      "recovery/include/holdfast/recovery/fault_plan.h", "recovery/src/faults/random_fault_plan.cpp"}},
    {"log_level",
     {"recovery/src/channel/messages.h", "recovery/src/channel/messages.cpp", "recovery/src/worker/worker.cpp"}},
};

// This does not compile when there is a member more. Then it is named here, and where it is declared, checked and
// obeyed.
std::vector<std::string> names_of_members() {
  const RecoveryOptions options;
  const auto& [spares, when_lost, recover_from, when_slow, max_restarts, restart_window, place_rest, start_when_gone,
               hang_after, callback_timeout, start_timeout, stop_grace, faults, log_level] = options;
  std::ignore = std::tie(spares, when_lost, recover_from, when_slow, max_restarts, restart_window, place_rest,
                         start_when_gone, hang_after, callback_timeout, start_timeout, stop_grace, faults, log_level);
  return {"spares",         "when_lost",  "recover_from",    "when_slow",  "max_restarts",
          "restart_window", "place_rest", "start_when_gone", "hang_after", "callback_timeout",
          "start_timeout",  "stop_grace", "faults",          "log_level"};
}

// Sentences name options, too, so texts in quotes stay.
std::string code_without_comments(const fs::path& path) {
  std::ifstream file(path);
  std::string code;
  for (std::string line; std::getline(file, line);) code += line.substr(0, line.find("//")) + "\n";
  return code;
}

// The text of each source without its comments, by its name in the tree.
std::map<std::string, std::string> code_of_the_library() {
  static const std::set<std::string> kExtensions = {".h", ".cpp", ".cu", ".cuh"};
  std::map<std::string, std::string> code;
  for (const char* part : {"base", "format", "exchange", "recovery", "sdk"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / part)) {
      if (!kExtensions.contains(entry.path().extension().string())) continue;
      code[fs::relative(entry.path(), source_folder()).generic_string()] = code_without_comments(entry.path());
    }
  }
  return code;
}

// A use of the member, or a sentence that names it. Words such as "spares" are not names in a sentence.
std::regex use_of(const std::string& member) {
  const std::string use = "(\\.|->|::)" + member + "\\b(?!\\()";
  const std::string sentence = "\"[^\"]*\\b" + member + "\\b[^\"]*\"";
  const bool is_a_name = member.find('_') != std::string::npos;
  return std::regex(is_a_name ? use + "|" + sentence : use);
}

// In a header, a member that is declared under the same name is a copy. In a source it is a variable.
bool is_named_in(const std::string& file, const std::string& code, const std::string& member) {
  if (code.find(member) == std::string::npos) return false;  // looking for a pattern takes long
  const std::regex use = use_of(member);
  const std::regex declaration("[>\\w] " + member + "(\\{\\}| = )");
  const bool is_header = file.ends_with(".h");
  std::istringstream lines(code);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(member) == std::string::npos) continue;
    if (std::regex_search(line, use) || (is_header && std::regex_search(line, declaration))) return true;
  }
  return false;
}

std::vector<std::string> files_that_name(const std::string& member, const std::map<std::string, std::string>& code) {
  const auto other = kOtherMembers.find(member);
  std::vector<std::string> files;
  for (const auto& [file, text] : code) {
    if (other != kOtherMembers.end() && other->second.contains(file)) continue;
    if (is_named_in(file, text, member)) files.push_back(file);
  }
  return files;
}

TEST(Options, AreNamedByThreeSourcesAtMost) {
  const std::map<std::string, std::string> code = code_of_the_library();

  for (const std::string& member : names_of_members()) {
    const std::vector<std::string> files = files_that_name(member, code);

    EXPECT_LE(files.size(), kMostFiles) << member << " is named by " << ::testing::PrintToString(files)
                                        << "; declare, check and obey it in one place each, and let other sources ask";
    EXPECT_THAT(files, ::testing::Contains(kDeclaration)) << member;
  }
}

TEST(Options, AreFoundWhereTheyAreUsedAndNotWhereAWordIsSpelledAlike) {
  const std::map<std::string, std::string> code = {{"access.cpp", "f(options.recovery.stop_grace);"},
                                                   {"initializer.cpp", "return {.stop_grace = grace};"},
                                                   {"copy.h", "std::chrono::milliseconds stop_grace = kLong;"},
                                                   {"sentence.cpp", "refuse(\"the limit of stop_grace is over\");"},
                                                   {"function.cpp", "wait(options.stop_grace());"},
                                                   {"variable.cpp", "const auto stop_grace = kLong;"},
                                                   {"other.cpp", "options.stop_grace_of_others = 1;"}};

  EXPECT_THAT(files_that_name("stop_grace", code),
              ::testing::ElementsAre("access.cpp", "copy.h", "initializer.cpp", "sentence.cpp"));
}

// An exception that no longer applies would hide a copy.
TEST(Options, HaveNoExceptionWithoutUse) {
  const std::map<std::string, std::string> code = code_of_the_library();

  for (const auto& [member, files] : kOtherMembers) {
    for (const std::string& file : files) {
      ASSERT_TRUE(code.contains(file)) << file;
      EXPECT_TRUE(is_named_in(file, code.at(file), member)) << file << " does not name " << member;
    }
  }
}

}  // namespace
}  // namespace holdfast
