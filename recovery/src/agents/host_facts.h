#pragma once

// What hosts that are checked tell host 0 of themselves, and how it judges that. In a run the first difference sends an
// agent home (hosts/introduction.h); here each has a line of its own, with a remedy.
//
// The messages, once the hosts are introduced (kinds are below):
//
//   head to host: question {mark}             what host 0 has just written into the run directory
//   host to head: facts {...}
//   head to host: links {peers}               which hosts it is to connect with
//   host to head: linked {host, problem}      for each host with a lower number
//   head to host: verdict {is_well, sentence}

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/recovery/hosts_report.h"
#include "links/link_peer.h"

namespace holdfast::recovery {

inline constexpr const char* kQuestion = "question";
inline constexpr const char* kFacts = "facts";
inline constexpr const char* kLinks = "links";
inline constexpr const char* kLinked = "linked";
inline constexpr const char* kVerdict = "verdict";

struct HostFacts {
  std::string version{};  // of Holdfast
  std::string arithmetic{};
  int replicas = 1;
  std::string program{};         // the digest of its file; empty: no program was named
  std::string command{};         // empty: no program was named
  std::string run_directory{};   // an absolute path
  bool has_own_folder = false;   // which is that of this host alone
  std::string folder_problem{};  // why that folder is of no use to the host; empty: it can be used
};

nlohmann::json facts_message(const HostFacts& facts);
// Throws Error{input_output} or nlohmann::json::exception for any other message.
HostFacts parse_facts(const nlohmann::json& message);

nlohmann::json links_message(const std::vector<LinkPeer>& peers);
// Throws as parse_facts().
std::vector<LinkPeer> parse_links(const nlohmann::json& message);

// What host `host` has, compared with what host 0 has.
std::vector<HostCheck> compare(const HostFacts& of_head, const HostFacts& theirs, int host);

// RUN_DIRECTORY/hosts/doctor, which exists while hosts are checked. The file of a live run is another one
// (agents/head_mark.h): a check must not change it.
class DoctorMark {
 public:
  // Throws Error of the file system, and leaves nothing then.
  explicit DoctorMark(const std::string& run_directory);

  const std::string& text() const { return text_; }

 private:
  // Removes the mark and the folders that were made for it. A member, so that it also does when the constructor throws.
  class Removal {
   public:
    explicit Removal(const std::string& run_directory);
    ~Removal();
    Removal(const Removal&) = delete;
    Removal& operator=(const Removal&) = delete;

   private:
    const std::string run_directory_;
    std::vector<std::string> missing_;  // the run directory and those above it that were not there, the deepest first
  };

  const Removal removal_;
  const std::string text_;
};

// Why the host cannot use its run directory, where host 0 has left the mark `text` in its own; empty if it can. One
// that is shared must have the mark; one of the host's own must not.
std::string why_folder_is_of_no_use(const HostFacts& facts, const std::string& text, int host);

}  // namespace holdfast::recovery
