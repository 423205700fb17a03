#pragma once

// Which run the run directories of hosts hold, where each host has one of its own. Each folder has the name of its run
// (hosts/run). The newest savepoint of all hosts counts, so their folders must be of one run: the head says what its
// folder holds, and each agent compares that with its own before any process starts. docs/decisions/host-folders.md

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace holdfast::recovery {

// The name of the run in this folder, which tells it from one that was begun anew there, whatever head it has; empty if
// no head of several hosts has been there.
std::string run_in(const std::string& run_directory);

// What a head says of its run directory.
struct FolderOfHead {
  std::string mark{};      // which hosts that share it see there (head_mark.h); empty: nobody looks
  std::string run{};       // its name
  std::string replaced{};  // the name of the run that it took the place of, as was asked for
  std::string token{};     // the occasion on which it was begun (run_start.h); empty: none was named
  bool is_fresh = false;   // it was begun anew by this start
  bool is_empty = false;   // there is nothing to go on from yet, so a run of another host's folder may go on
  std::string choices{};   // the text of run.json; empty where that is missing or damaged
};

nlohmann::json to_json(const FolderOfHead& folder);
// Throws nlohmann::json::exception.
FolderOfHead folder_of_head_from(const nlohmann::json& message);

// A run that an agent's folder holds, where the head has none.
struct OfferedRun {
  std::string run{};
  std::string choices{};  // as above
};

// The folder of a head. For one thread.
class HeadFolder {
 public:
  HeadFolder() = default;  // nobody compares anything with it
  // For the owner of the run directory. Names the run where it has no name, and leaves the head's mark.
  // `was_asked_anew`: this start was asked to begin anew; `put_aside_as`: where it has put an earlier run, if there was
  // one. Throws Error of the file system.
  HeadFolder(const std::string& run_directory, bool was_asked_anew, const std::string& put_aside_as);

  const FolderOfHead& facts() const { return facts_; }
  // Whether the run that an agent offers may go on. The head's folder becomes one of it then. Throws as above.
  bool take_over(const OfferedRun& offered);
  // From here on there is something to go on from.
  void begin_generation() { facts_.is_empty = false; }

 private:
  std::string run_directory_{};
  FolderOfHead facts_{};
};

// What the folder of an agent is to that of the head.
enum class FolderOfAgent {
  of_the_run,
  without_a_run,      // it becomes one of the run with its first generation (name_folder())
  offers_its_run,     // the head has nothing to go on from
  of_an_earlier_one,  // it is to be put aside, as the head did or would have done
  of_another_one,     // nothing says which of the two is wanted
};
FolderOfAgent compare_folder(const std::string& run_directory, const FolderOfHead& head);

// The run in a folder that offers it. One that was made by a host alone gets a name. Throws Error of the file system.
OfferedRun offered_run(const std::string& run_directory);
// Makes the folder one of this run. Throws Error of the file system.
void name_folder(const std::string& run_directory, const std::string& run, const std::string& token);
// Writes run.json, unless the folder has it or `choices` is empty: a program that asks for none takes those of the run.
// Throws Error of the file system.
void take_choices(const std::string& run_directory, const std::string& choices);

}  // namespace holdfast::recovery
