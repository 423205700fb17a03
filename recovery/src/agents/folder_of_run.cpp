// No folder is renamed or written to before it is known to be of the run, and none with savepoints becomes one of
// another run but by the word of its owner. Where two folders hold different runs and nobody has said which is wanted,
// the agent ends. docs/decisions/agents.md

#include "agents/folder_of_run.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "agents/head_mark.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/log.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/recovery/run_start.h"
#include "links/link_token.h"

namespace holdfast::recovery {
namespace {

namespace fs = std::filesystem;

std::string choices_path(const std::string& run_directory) {
  return run_directory + "/run.json";
}

// Damaged text is none: who reads the file itself says what is wrong with it.
std::string choices_in(const std::string& run_directory) {
  const std::string text = text_in(choices_path(run_directory));
  return nlohmann::json::accept(text) ? text : "";
}

void write_text(const std::string& path, const std::string& text) {
  write_whole_file(posix_file_system(), path, std::as_bytes(std::span(text)));
}

void create_folder_of_names(const std::string& run_directory) {
  std::error_code error;
  fs::create_directories(run_directory + "/hosts", error);
  if (error) throw system_error(error.value(), "cannot create the folder " + run_directory + "/hosts");
}

bool has_file(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Something of a run that would be lost. Choices alone, and records of them, are none.
bool holds_work(const std::string& run_directory) {
  return holds_savepoints(run_directory) || has_file(run_directory + "/journal.jsonl");
}

}  // namespace

nlohmann::json to_json(const FolderOfHead& folder) {
  return {{"mark", folder.mark},      {"run", folder.run},           {"replaced", folder.replaced},
          {"token", folder.token},    {"is_fresh", folder.is_fresh}, {"is_empty", folder.is_empty},
          {"choices", folder.choices}};
}

FolderOfHead folder_of_head_from(const nlohmann::json& message) {
  return {.mark = message.at("mark").get<std::string>(),
          .run = message.at("run").get<std::string>(),
          .replaced = message.at("replaced").get<std::string>(),
          .token = message.at("token").get<std::string>(),
          .is_fresh = message.at("is_fresh").get<bool>(),
          .is_empty = message.at("is_empty").get<bool>(),
          .choices = message.at("choices").get<std::string>()};
}

HeadFolder::HeadFolder(const std::string& run_directory, bool was_asked_anew, const std::string& put_aside_as)
    : run_directory_(run_directory) {
  create_folder_of_names(run_directory);
  const bool has_name = !run_in(run_directory).empty();
  if (!has_name) {
    // Before the name, which says that all is there.
    if (!put_aside_as.empty()) write_text(run_directory + "/hosts/replaced", run_in(put_aside_as));
    write_text(run_name_path(run_directory), to_text(new_link_key()));
  }
  facts_ = {.mark = leave_head_mark(run_directory),
            .run = run_in(run_directory),
            .replaced = name_or_none(text_in(run_directory + "/hosts/replaced")),
            .token = name_or_none(token_of_run(run_directory)),
            .is_fresh = was_asked_anew && !has_name,
            .is_empty = !holds_savepoints(run_directory),
            .choices = choices_in(run_directory)};
}

bool HeadFolder::take_over(const OfferedRun& offered) {
  if (offered.run == facts_.run) return true;
  if (!facts_.is_empty || offered.run.empty()) return false;
  // No process of another host has started, and none of this one has anything.
  if (!offered.choices.empty() && nlohmann::json::accept(offered.choices)) {
    write_text(choices_path(run_directory_), offered.choices);
    facts_.choices = offered.choices;
  }
  write_text(run_name_path(run_directory_), offered.run);
  facts_.run = offered.run;
  facts_.is_empty = false;
  log(LogLevel::info, fmt::format("head: {} has no savepoint, so the run goes on that another host has in its run "
                                  "directory",
                                  run_directory_));
  return true;
}

FolderOfAgent compare_folder(const std::string& run_directory, const FolderOfHead& head) {
  const std::string here = run_in(run_directory);
  if (here == head.run) return FolderOfAgent::of_the_run;
  if (!holds_work(run_directory)) return FolderOfAgent::without_a_run;
  if (!head.replaced.empty() && here == head.replaced) return FolderOfAgent::of_an_earlier_one;
  if (!head.is_empty) return FolderOfAgent::of_another_one;
  // The same occasion: a scheduler has started the job again, on a host with a new disk.
  const bool is_of_occasion = !head.token.empty() && text_in(run_directory + "/hosts/token") == head.token;
  if (head.is_fresh && !is_of_occasion) return FolderOfAgent::of_an_earlier_one;
  return FolderOfAgent::offers_its_run;
}

OfferedRun offered_run(const std::string& run_directory) {
  if (run_in(run_directory).empty()) name_folder(run_directory, to_text(new_link_key()), "");
  return {.run = run_in(run_directory), .choices = choices_in(run_directory)};
}

void name_folder(const std::string& run_directory, const std::string& run, const std::string& token) {
  create_folder_of_names(run_directory);
  if (!token.empty()) write_text(run_directory + "/hosts/token", token);
  write_text(run_name_path(run_directory), run);
}

void take_choices(const std::string& run_directory, const std::string& choices) {
  if (choices.empty() || has_file(choices_path(run_directory))) return;
  write_text(choices_path(run_directory), choices);
}

}  // namespace holdfast::recovery
