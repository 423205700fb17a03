#include "agents/head_mark.h"

#include "agents/hosts_folder.h"
#include "links/link_token.h"

namespace holdfast::recovery {
namespace {

std::string mark_path(const std::string& run_directory) {
  return hosts_folder_of(run_directory) + "/head";
}

}  // namespace

// New at each start, so that an old copy of a folder cannot pass for the shared one.
std::string leave_head_mark(const std::string& run_directory) {
  create_hosts_folder(run_directory);
  const std::string mark = to_text(new_link_key());
  write_text(mark_path(run_directory), mark);
  return mark;
}

bool is_head_mark_there(const std::string& run_directory, const std::string& mark) {
  return text_in(mark_path(run_directory)) == mark;
}

}  // namespace holdfast::recovery
