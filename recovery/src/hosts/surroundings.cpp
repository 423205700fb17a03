// Launchers name the same things in different ways, and often set variables of one another: Slurm starts mpirun, which
// starts torchrun. So each value is taken from the first launcher in a fixed order that has it, and a sentence about a
// value names where it came from. docs/decisions/launchers.md

#include "hosts/surroundings.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_number.h"
#include "hosts/node_list.h"

namespace holdfast::recovery {
namespace {

constexpr const char* kOwnHost = "HOLDFAST_NODE_RANK";
constexpr const char* kOwnHead = "HOLDFAST_HEAD";

template <class Type>
struct Value {
  Type value{};
  std::string name{};  // where it was given
};

// Parsed only where a run has several hosts: programs set MASTER_ADDR for purposes of their own.
struct HeadText {
  Value<std::string> address{};
  std::optional<Value<std::string>> port{};
};

// What one source says. Values that it does not give stay empty.
struct Said {
  std::optional<Value<int>> hosts{};
  std::optional<Value<int>> host{};
  std::optional<HeadText> head{};
  std::optional<std::string> run_id{};
  std::optional<int> replicas{};
};

int number_of(const Value<std::string>& text, int lowest, int highest) {
  const std::optional<int> value = whole_number<int>(text.value);
  if (value && *value >= lowest && *value <= highest) return *value;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the environment has {}={}, where a number from {} to {} is expected; correct or unset it",
                          text.name, text.value, lowest, highest));
}

std::optional<Value<std::string>> text_in(const Environment& environment, const char* name) {
  const std::optional<std::string> text = environment(name);
  if (!text) return std::nullopt;
  return Value<std::string>{*text, name};
}

std::optional<Value<int>> number(const Environment& environment, const char* name, int lowest, int highest) {
  const auto text = text_in(environment, name);
  if (!text) return std::nullopt;
  return Value<int>{number_of(*text, lowest, highest), name};
}

std::optional<Value<int>> hosts_in(const Environment& environment, const char* name) {
  return number(environment, name, 1, static_cast<int>(kMostHosts));
}

std::optional<Value<int>> host_in(const Environment& environment, const char* name) {
  return number(environment, name, 0, static_cast<int>(kMostHosts) - 1);
}

// A variable with the address, and perhaps one with the port.
std::optional<HeadText> head_in(const Environment& environment, const char* address, const char* port) {
  const auto text = text_in(environment, address);
  if (!text) return std::nullopt;
  return HeadText{*text, port == nullptr ? std::nullopt : text_in(environment, port)};
}

HostAddress address_of(const HeadText& head) {
  HostAddress address = parse_host_address(head.address.value, head.address.name);
  if (head.port) address.port = number_of(*head.port, 1, 65535);
  return address;
}

// Without this check each process that the launcher started would become the agent of its host.
void require_one_process(int on_this_host, const std::string& launcher, const std::string& advice) {
  if (on_this_host == 1) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{} started {} processes on this host, but a run has one watchdog on each host, which starts "
                          "the replicas there itself; {}",
                          launcher, on_this_host, advice));
}

Said said_by_options(const HostOptions& options) {
  Said said;
  if (options.hosts) said.hosts = {*options.hosts, "--nnodes"};
  if (options.host) said.host = {*options.host, "--node-rank"};
  if (options.head) said.head = HeadText{{*options.head, "--head"}};
  return said;
}

Said said_by_holdfast(const Environment& environment) {
  return {.hosts = hosts_in(environment, "HOLDFAST_NNODES"),
          .host = host_in(environment, kOwnHost),
          .head = head_in(environment, kOwnHead, nullptr),
          .run_id = environment("HOLDFAST_RUN_ID")};
}

// "2", or "2:2" as a range of one number. Another range means that hosts may be missing from the beginning.
std::optional<Value<int>> hosts_of_torchrun(const Environment& environment) {
  const std::optional<std::string> text = environment("PET_NNODES");
  const std::size_t colon = text ? text->find(':') : std::string::npos;
  if (colon == std::string::npos) return hosts_in(environment, "PET_NNODES");
  if (text->substr(0, colon) != text->substr(colon + 1)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the environment has PET_NNODES={}, but a run starts with a fixed number of hosts; give it "
                            "with --nnodes",
                            *text));
  }
  return hosts_in([&](const char*) { return text->substr(0, colon); }, "PET_NNODES");
}

// torchrun reads its own options from variables with PET_ in front (PyTorch Elastic).
Said said_by_torchrun(const Environment& environment) {
  Said said{.hosts = hosts_of_torchrun(environment),
            .host = host_in(environment, "PET_NODE_RANK"),
            .head = head_in(environment, "PET_MASTER_ADDR", "PET_MASTER_PORT"),
            .run_id = environment("PET_RDZV_ID")};
  if (!said.head) said.head = head_in(environment, "PET_RDZV_ENDPOINT", nullptr);
  // Words such as "auto" leave the number to the program.
  const std::optional<std::string> processes = environment("PET_NPROC_PER_NODE");
  if (processes) said.replicas = whole_number<int>(*processes);
  return said;
}

// Only a step counts, which has a task on each node. A batch script runs on the first node alone.
Said said_by_slurm(const Environment& environment) {
  const std::optional<std::string> list = environment("SLURM_STEP_NODELIST");
  const auto nodes = hosts_in(environment, "SLURM_STEP_NUM_NODES");
  if (!list || !nodes || nodes->value == 1) return {};
  // SLURM_NODEID counts along this list, so its first name is that of host 0.
  const std::vector<std::string> names = nodes_of(*list);
  // Variables of two steps may be mixed, where one of them was exported.
  if (static_cast<int>(names.size()) != nodes->value) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the environment has SLURM_STEP_NODELIST={} with {} nodes and SLURM_STEP_NUM_NODES={}; "
                            "start the step again with srun",
                            *list, names.size(), nodes->value));
  }
  // Such as "1(x3)" or "2,1(x2)".
  const std::string tasks = environment("SLURM_STEP_TASKS_PER_NODE").value_or("1");
  if (tasks != "1" && tasks != fmt::format("1(x{})", nodes->value)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("the step of Slurm has {} tasks per node, but a run has one watchdog on each host, which "
                            "starts the replicas there itself; start the step with srun --ntasks-per-node=1",
                            tasks));
  }
  return {.hosts = nodes,
          .host = host_in(environment, "SLURM_NODEID"),
          .head = HeadText{{names.front(), "SLURM_STEP_NODELIST"}},
          // Tells the run from those of other jobs on these hosts. A job that is queued again keeps its number.
          .run_id = environment("SLURM_JOB_ID")};
}

// mpirun says nothing about where rank 0 is, so the address comes from MASTER_ADDR.
Said said_by_open_mpi(const Environment& environment) {
  const auto size = number(environment, "OMPI_COMM_WORLD_SIZE", 1, 1 << 30);
  if (!size || size->value == 1) return {};
  // With one process on each host, its number among all is the number of the host.
  const auto on_this_host = number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, 1 << 30);
  require_one_process(on_this_host ? on_this_host->value : 1, "mpirun", "start it with mpirun --npernode 1");
  return {.hosts = hosts_in(environment, "OMPI_COMM_WORLD_SIZE"),
          .host = host_in(environment, "OMPI_COMM_WORLD_RANK"),
          .head = head_in(environment, "MASTER_ADDR", "MASTER_PORT")};
}

// Kubernetes gives the number of a pod, and neither how many there are nor where the first one is.
Said said_by_indexed_job(const Environment& environment) {
  return {.host = host_in(environment, "JOB_COMPLETION_INDEX")};
}

// Without LOCAL_WORLD_SIZE nothing shows how many of its ranks are on this host.
Said said_by_ranks(const Environment& environment) {
  const auto rank = number(environment, "RANK", 0, 1 << 30);
  const auto size = number(environment, "WORLD_SIZE", 1, 1 << 30);
  const auto on_this_host = number(environment, "LOCAL_WORLD_SIZE", 1, 1 << 30);
  Said said{.head = head_in(environment, "MASTER_ADDR", "MASTER_PORT")};
  if (!rank || !size || size->value == 1) return said;
  if (!on_this_host) {
    throw Error(ErrorCode::unsupported,
                fmt::format("another launcher started this process as rank {} of {}, and nothing says how many of "
                            "them are on this host; a run has one watchdog on each host: set LOCAL_WORLD_SIZE=1 if "
                            "there is one, otherwise start one, with --replicas, or unset RANK and WORLD_SIZE",
                            rank->value, size->value));
  }
  require_one_process(on_this_host->value, "another launcher", "start one, with --replicas");
  said.hosts = hosts_in(environment, "WORLD_SIZE");
  said.host = host_in(environment, "RANK");
  return said;
}

// What was said first stays.
void add(Said& said, Said further) {
  if (!said.hosts) said.hosts = std::move(further.hosts);
  if (!said.host) said.host = std::move(further.host);
  if (!said.head) said.head = std::move(further.head);
  if (!said.run_id) said.run_id = std::move(further.run_id);
  if (!said.replicas) said.replicas = further.replicas;
}

// Every other word could be a yes or a no.
bool are_folders_separate(const HostOptions& options, const Environment& environment) {
  if (options.has_separate_folders) return true;
  const auto said = number(environment, "HOLDFAST_SEPARATE_RUN_DIRS", 0, 1);
  return said && said->value == 1;
}

bool is_complete(const Said& said) {
  if (!said.hosts) return false;
  return said.hosts->value == 1 || (said.host && said.head);
}

void check(const HostOptions& options, const Said& said) {
  const auto refuse = [](const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); };
  if (!said.hosts) {
    if (options.host || options.head || options.secret_file) {
      refuse(fmt::format("{} is given, but not the number of hosts; give it with --nnodes", options.host ? "--node-rank"
                                                                                            : options.head
                                                                                                ? "--head"
                                                                                                : "--secret"));
    }
    // Otherwise each host would train by itself. Other launchers set such variables for a single host, too.
    const std::string variable = said.host && said.host->name == kOwnHost           ? kOwnHost
                                 : said.head && said.head->address.name == kOwnHead ? kOwnHead
                                                                                    : "";
    if (!variable.empty()) {
      refuse(
          fmt::format("{} is given, but not the number of hosts; give it with HOLDFAST_NNODES or --nnodes", variable));
    }
    return;
  }
  const int hosts = said.hosts->value;
  if (hosts < 1 || hosts > static_cast<int>(kMostHosts)) {
    refuse(fmt::format("{} is {}; it must be from 1 to {}", said.hosts->name, hosts, kMostHosts));
  }
  if (hosts == 1) {
    if (said.host && said.host->value != 0 && said.host->name == "--node-rank") {
      refuse(fmt::format("--node-rank is {}, but {} says that the run has a single host", said.host->value,
                         said.hosts->name));
    }
    return;
  }
  if (!said.host) {
    refuse(
        fmt::format("{} says that the run has {} hosts, and nothing says which of them this one is; give "
                    "--node-rank or HOLDFAST_NODE_RANK, from 0 to {}",
                    said.hosts->name, hosts, hosts - 1));
  }
  if (said.host->value < 0 || said.host->value >= hosts) {
    refuse(fmt::format("{} is {}, but the run has {} hosts by {}; it must be from 0 to {}", said.host->name,
                       said.host->value, hosts, said.hosts->name, hosts - 1));
  }
  if (!said.head) {
    refuse(
        fmt::format("{} says that the run has {} hosts, and nothing says where the first of them is; give --head "
                    "or HOLDFAST_HEAD, HOST:PORT with the address of the host whose number is 0",
                    said.hosts->name, hosts));
  }
}

}  // namespace

Surroundings surroundings_of(const HostOptions& options, const Environment& environment) {
  Said said = said_by_options(options);
  // Later launchers are not asked once all is known, so that their variables cannot refuse what the user has said.
  for (const auto source :
       {said_by_holdfast, said_by_torchrun, said_by_slurm, said_by_open_mpi, said_by_indexed_job, said_by_ranks}) {
    if (is_complete(said)) break;
    add(said, source(environment));
  }
  check(options, said);
  Surroundings found{.run_id = said.run_id.value_or(""), .replicas = said.replicas};
  if (said.hosts) found.hosts_by = said.hosts->name;
  // On a single host neither a head nor a secret is needed, whatever else the environment has.
  if (!said.hosts || said.hosts->value == 1) return found;
  // The user alone names one: no launcher has a secret.
  found.secret_file = options.secret_file ? *options.secret_file : environment("HOLDFAST_SECRET_FILE").value_or("");
  found.hosts = said.hosts->value;
  found.host = said.host->value;
  found.head = address_of(*said.head);
  found.has_separate_folders = are_folders_separate(options, environment);
  return found;
}

Secret secret_of(const Surroundings& surroundings) {
  if (!surroundings.secret_file.empty()) return read_secret(surroundings.secret_file);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the run has {} hosts by {}, and they share no secret, without which nothing listens; give "
                          "--secret FILE or HOLDFAST_SECRET_FILE, a copy of the same file on each host",
                          surroundings.hosts, surroundings.hosts_by));
}

}  // namespace holdfast::recovery
