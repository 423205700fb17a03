// No folder is renamed or written to before it is known to be of the run, and none with savepoints becomes one of
// another run but by the word of its owner. Where two folders hold different runs and nobody has said which is wanted,
// the agent ends. docs/decisions/host-folders.md

#include "agents/folder_of_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "agents/head_mark.h"
#include "agents/hosts_folder.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/run_start.h"
#include "links/link_token.h"

namespace holdfast::recovery {
namespace {

std::string choices_path(const std::string& run_directory) {
  return run_directory + "/run.json";
}

std::string name_path(const std::string& run_directory) {
  return hosts_folder_of(run_directory) + "/run";
}

std::string replaced_path(const std::string& run_directory) {
  return hosts_folder_of(run_directory) + "/replaced";
}

std::string token_path(const std::string& run_directory) {
  return hosts_folder_of(run_directory) + "/token";
}

std::string new_name() {
  return to_text(new_link_key());
}

// A name travels in messages, which are UTF-8. Other text counts as no name.
std::string printable_or_empty(const std::string& text) {
  const bool is_printable = std::ranges::all_of(text, [](char letter) { return letter >= ' ' && letter <= '~'; });
  return is_printable ? text : "";
}

// Empty for damaged text: the code that reads the choices themselves says what is wrong.
std::string choices_in(const std::string& run_directory) {
  const std::string text = text_in(choices_path(run_directory));
  return nlohmann::json::accept(text) ? text : "";
}

// Whether something of a run would be lost with the folder. Choices alone can be made again.
bool holds_work(const std::string& run_directory) {
  return holds_savepoints(run_directory) || is_there(run_directory + "/journal.jsonl");
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
  create_hosts_folder(run_directory);
  const bool has_name = !run_in(run_directory).empty();
  if (!has_name) {
    // Before the name, which says that all is there.
    if (!put_aside_as.empty()) write_text(replaced_path(run_directory), run_in(put_aside_as));
    write_text(name_path(run_directory), new_name());
  }
  facts_ = {.mark = leave_head_mark(run_directory),
            .run = run_in(run_directory),
            .replaced = printable_or_empty(text_in(replaced_path(run_directory))),
            .token = printable_or_empty(token_of_run(run_directory)),
            .is_fresh = was_asked_anew && !has_name,
            .is_empty = !holds_savepoints(run_directory),
            .choices = choices_in(run_directory)};
}

bool HeadFolder::take_over(const OfferedRun& offered) {
  if (offered.run == facts_.run) return true;
  if (!facts_.is_empty || offered.run.empty()) return false;
  // No process of another host has started. One of this host may have, and has no state yet: where it has settled other
  // choices, the replicas find that before the first step.
  if (!offered.choices.empty() && nlohmann::json::accept(offered.choices)) {
    write_text(choices_path(run_directory_), offered.choices);
    facts_.choices = offered.choices;
  }
  write_text(name_path(run_directory_), offered.run);
  facts_.run = offered.run;
  facts_.is_empty = false;
  log(LogLevel::info, fmt::format("head: {} has no savepoint, so the run goes on that another host has in its run "
                                  "directory",
                                  run_directory_));
  return true;
}

// The folder of a run that was put aside is another one, so its successor begins without this file.
std::string run_in(const std::string& run_directory) {
  return printable_or_empty(text_in(name_path(run_directory)));
}

FolderOfAgent compare_folder(const std::string& run_directory, const FolderOfHead& head) {
  const std::string here = run_in(run_directory);
  if (here == head.run) return FolderOfAgent::of_the_run;
  if (!holds_work(run_directory)) return FolderOfAgent::without_a_run;
  if (!head.replaced.empty() && here == head.replaced) return FolderOfAgent::of_an_earlier_one;
  if (!head.is_empty) return FolderOfAgent::of_another_one;
  // The same occasion: a scheduler has started the job again, on a host with a new disk.
  const bool is_of_occasion = !head.token.empty() && text_in(token_path(run_directory)) == head.token;
  if (head.is_fresh && !is_of_occasion) return FolderOfAgent::of_an_earlier_one;
  return FolderOfAgent::offers_its_run;
}

OfferedRun offered_run(const std::string& run_directory) {
  if (run_in(run_directory).empty()) name_folder(run_directory, new_name(), "");
  return {.run = run_in(run_directory), .choices = choices_in(run_directory)};
}

void name_folder(const std::string& run_directory, const std::string& run, const std::string& token) {
  create_hosts_folder(run_directory);
  if (!token.empty()) write_text(token_path(run_directory), token);
  write_text(name_path(run_directory), run);
}

void take_choices(const std::string& run_directory, const std::string& choices) {
  if (choices.empty() || is_there(choices_path(run_directory))) return;
  write_text(choices_path(run_directory), choices);
}

}  // namespace holdfast::recovery
