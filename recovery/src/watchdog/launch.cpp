// `holdfast run` starts programs that know nothing of Holdfast. So it looks for the program as a shell does, and gives
// each process the variables that torchrun gives, by which such programs find their rank.
// docs/decisions/holdfast-run.md

#include "holdfast/recovery/launch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/base/cores.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/whole_number.h"
#include "hosts/surroundings.h"
#include "watchdog/intended_ranks.h"
#include "watchdog/launch_variables.h"

namespace holdfast::recovery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLoopback = "127.0.0.1";
// For an environment without PATH.
constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<int> number(const char* name, int lowest, int highest) {
  const std::optional<std::string> text = variable(name);
  if (!text) return std::nullopt;
  const std::optional<int> value = whole_number<int>(*text);
  if (value && *value >= lowest && *value <= highest) return value;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the environment has {}={}, where a number from {} to {} is expected; correct or unset it",
                          name, *text, lowest, highest));
}

// Each host would begin a run of its own otherwise, and they may share one directory.
void require_one_host(const HostFlags& flags) {
  const std::string several = who_says_several_hosts(flags);
  if (several.empty()) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{}, and this program starts runs of a single host; use `holdfast run`, or give --nnodes 1 for "
                  "a run of this host alone, in a --run-dir of its own",
                  several));
}

bool is_program(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// Found once, so that each restart starts the same program.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
    throw Error(ErrorCode::not_found, fmt::format("there is no program {} that this user may execute", name));
  }
  const std::string path = variable("PATH").value_or(kUsualPath);
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    // An empty entry of PATH is the current folder, as POSIX has it. The first and the last one may be empty, too.
    const std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_program(candidate)) return candidate;
    begin = end + 1;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("there is no program {} in the folders of PATH ({}); for one in this folder write ./{}", name,
                          path, name));
}

// Another program may take the port before rank 0 does. Then rank 0 fails, and the processes after it get another port.
int find_free_port() {
  // Closed at the end of this function, so that rank 0 can bind the port.
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::inet_addr(kLoopback);
  socklen_t bytes = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!listener.is_open() || ::bind(listener.value(), generic, bytes) != 0 ||
      ::getsockname(listener.value(), generic, &bytes) != 0) {
    throw system_error(errno, fmt::format("cannot find a free port of {} for MASTER_PORT", kLoopback));
  }
  return ntohs(address.sin_port);
}

std::vector<std::string> cpus(int count) {
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(fmt::format("cpu:{}", i));
  return devices;
}

// Returns the function that WatchdogOptions::variables_of needs. `devices` are by device slot. For the watchdog's
// thread alone.
std::function<std::vector<std::string>(const NewProcess&)> variables_for(std::vector<std::string> devices,
                                                                         const std::string& run_directory,
                                                                         std::optional<int> fixed_port) {
  return [devices = std::move(devices), directory = absolute_path(run_directory), fixed_port,
          port = 0](const NewProcess& process) mutable -> std::vector<std::string> {
    // A new port for each set of processes. Otherwise a port that another program has taken would make each set
    // fail.
    if (process.is_first) port = fixed_port ? *fixed_port : find_free_port();
    return {fmt::format("RANK={}", process.rank),
            fmt::format("LOCAL_RANK={}", process.local_rank),
            fmt::format("WORLD_SIZE={}", process.replicas),
            fmt::format("LOCAL_WORLD_SIZE={}", process.replicas),
            fmt::format("MASTER_ADDR={}", kLoopback),
            fmt::format("MASTER_PORT={}", port),
            fmt::format("HOLDFAST_DEVICE={}", devices.at(static_cast<std::size_t>(process.device_slot))),
            fmt::format("HOLDFAST_DEVICES={}", fmt::join(devices, ",")),
            fmt::format("{}={}", kRunDirectoryVariable, directory)};
  };
}

// The number of replicas: the option wins, then the launcher, then the devices, then the cores.
WatchdogOptions complete(WatchdogOptions options, std::vector<std::string> devices, std::optional<int> of_launcher) {
  options.executable = find_program(options.command.front());
  if (options.replicas == 0) options.replicas = of_launcher.value_or(0);
  if (options.replicas == 0) options.replicas = static_cast<int>(devices.size());
  if (options.replicas == 0) options.replicas = std::min(core_count(), kMaxReplicas);
  if (devices.empty()) devices = cpus(std::max(1, options.replicas));
  options.devices = std::move(devices);
  return options;
}

}  // namespace

WatchdogOptions for_any_program(WatchdogOptions options, std::vector<std::string> devices, const HostFlags& hosts) {
  if (options.command.empty()) throw Error(ErrorCode::invalid_argument, "there is no program to run");
  const std::optional<int> rank = number("RANK", 0, 1 << 30);
  const std::optional<int> world_size = number("WORLD_SIZE", 1, 1 << 30);
  const std::optional<int> master_port = number("MASTER_PORT", 1, 65535);
  // Refused before anything else.
  require_one_host(hosts);
  options = complete(std::move(options), std::move(devices), rank ? std::nullopt : world_size);
  options.variables_of = variables_for(options.devices, options.run_directory, master_port);
  return options;
}

std::string who_says_several_hosts(const HostFlags& flags) {
  const Surroundings found = surroundings_from(flags);
  if (found.hosts == 1) return "";
  return fmt::format("{} says that the run has {} hosts, of which this is number {}", found.hosts_by, found.hosts,
                     found.host);
}

Surroundings surroundings_from(const HostFlags& flags) {
  return surroundings_of({.hosts = flags.nnodes,
                          .host = flags.node_rank,
                          .head = flags.head,
                          .secret_file = flags.secret,
                          .has_separate_folders = flags.separate_run_dirs},
                         variable);
}

WatchdogOptions complete_for_a_host(WatchdogOptions options, std::vector<std::string> devices,
                                    std::optional<int> replicas) {
  if (options.command.empty()) throw Error(ErrorCode::invalid_argument, "there is no program to run");
  options.run_directory = absolute_path(options.run_directory);
  return complete(std::move(options), std::move(devices), replicas);
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.string();
}

// Piece by piece: a program that is linked with much has gigabytes.
std::string digest_of_program(const std::string& path) {
  const std::unique_ptr<File> program = posix_file_system().open_for_reading(path);
  std::vector<std::byte> piece(std::size_t{1} << 20);
  DigestBuilder builder;
  std::uint64_t offset = 0;
  while (const std::size_t read = program->read_at(offset, piece)) {
    builder.update(std::span(piece).first(read));
    offset += read;
  }
  return builder.finish().hex();
}

std::function<std::vector<std::string>(const NewProcess&)> variables_on_hosts(std::vector<std::string> devices,
                                                                              int hosts, std::string run_directory) {
  return [devices = std::move(devices), hosts, directory = std::move(run_directory)](const NewProcess& process) {
    // Hosts take turns in device slots (watchdog_options.h), so the slot has this number on its host.
    const auto slot = static_cast<std::size_t>(process.device_slot / hosts);
    const int host = process.device_slot % hosts;
    return std::vector<std::string>{
        fmt::format("RANK={}", process.rank), fmt::format("LOCAL_RANK={}", process.local_rank),
        fmt::format("WORLD_SIZE={}", process.replicas),
        fmt::format("LOCAL_WORLD_SIZE={}", replicas_planned_on(host, hosts, process.replicas)),
        fmt::format("HOLDFAST_DEVICE={}", devices.at(slot)),
        fmt::format("HOLDFAST_DEVICES={}", fmt::join(devices, ",")),
        fmt::format("{}={}", kRunDirectoryVariable, directory),
        // What a replica starts is not a host of the run.
        "HOLDFAST_NNODES=1"};
  };
}

}  // namespace holdfast::recovery
