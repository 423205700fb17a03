#pragma once

// How the hosts of a run find out that they share its run directory: the head leaves a mark there, and tells each agent
// what it is. Savepoints would otherwise be scattered over the hosts, and a later start would not find the newest.
//
// Where each host has a run directory of its own, the head tells its agents which run it has, and each agent compares
// that with the run in its own folder: the newest of their savepoints counts, so they must be of one run.

#include <string>

namespace holdfast::recovery {

// RUN_DIRECTORY/hosts/NUMBER, with the lock of the host's agent.
std::string folder_of_host(const std::string& run_directory, int host);

// What a head says to its agents of its run directory.
struct FolderOfHead {
  std::string mark{};  // which those see there who share it; empty: nobody looks
  std::string run{};   // which is there; run_in()
  // It has no savepoint, so the run goes on from those of hosts that have folders of their own.
  bool is_empty = false;
};

// The mark is new. For the owner of the run directory. Throws Error of the file system. A run that has no name yet gets
// one; `is_begun_anew`: it took the place of an earlier run on purpose, and its name says so.
FolderOfHead leave_head_mark(const std::string& run_directory, bool is_begun_anew = false);
bool is_head_mark_there(const std::string& run_directory, const std::string& mark);

// What tells the run in this folder from one that was begun anew there, whatever head it has; empty if no head of
// several hosts has been there.
std::string run_in(const std::string& run_directory);

// Whether the folder of an agent is of the head's run.
enum class FolderOfAgent {
  of_the_run,
  taken_over,         // it is since this call: the head's folder is empty, and the run in this one goes on
  of_an_earlier_one,  // the head has begun anew since, on purpose: it is to be put aside
  of_another_one,     // nothing says which of the two is wanted
};

// Makes the folder, from which an earlier run was put aside, one of `run`. Throws Error of the file system.
void begin_folder(const std::string& run_directory, const std::string& run);
// A folder without a run becomes one of the head's. So does one with another run, where the head has nothing to go on
// from: what it holds is compared with the choices of the run before it is used. Throws Error of the file system.
FolderOfAgent take_folder(const std::string& run_directory, const FolderOfHead& head);

}  // namespace holdfast::recovery
