// Prints the facts of a machine and their diagnosis. The JSON form has every value of the tables, and null where a
// value is not known: monitoring programs read it. See docs/decisions/failing-devices.md.

#include "doctor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/compute/device_support.h"
#include "holdfast/recovery/watchdog.h"
#include "option_checks.h"
#include "subcommands.h"
#include "table.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using Json = nlohmann::json;
using recovery::GpuFacts;

// One sign for everything that is not known, so that a table has no empty cells.
constexpr const char* kUnknown = "-";

// What people read: what is not known is one sign, and numbers are rounded.

// Sizes are shown in the unit in which people know them: MiB below 1 GiB.
std::string describe_bytes(std::uint64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1024 * 1024);
  return mebibytes < 1024 ? fmt::format("{:.0f} MiB", mebibytes) : fmt::format("{:.1f} GiB", mebibytes / 1024);
}

// Fractions are left out: nobody acts on a tenth of a degree or of a watt.
template <class Number>
std::string describe(const std::optional<Number>& number, const std::string& unit = "") {
  return number ? std::to_string(static_cast<long long>(*number)) + unit : kUnknown;
}

std::string describe_of(const std::optional<int>& number, const std::optional<int>& most) {
  return fmt::format("{} of {}", describe(number), describe(most));
}

std::string found_or(const std::string& text, const std::string& otherwise) {
  return text.empty() ? otherwise : text;
}

void tell_host(std::ostream& out, const MachineFacts& facts) {
  Table table({"HOST", ""});
  table.add({"cores", std::to_string(facts.cores)});
  table.add({"memory", describe_bytes(facts.memory_bytes)});
  table.add({"/dev/shm", facts.shared_memory_bytes ? describe_bytes(*facts.shared_memory_bytes) : "none"});
  table.add({"locked memory", facts.locked_memory_bytes
                                  ? fmt::format("at most {}", describe_bytes(*facts.locked_memory_bytes))
                                  : "any"});
  table.add({"HDF5 plugin", found_or(facts.hdf5_plugin, "not found")});
  table.write(out);
}

// A library that was not found has no version, so "missing" stands in that column.
void add_library(Table& table, const LibraryFacts& library, const std::string& least) {
  const std::string version = library.version ? to_string(*library.version) : kUnknown;
  table.add({library.name, library.path.empty() ? "missing" : version, least, found_or(library.path, kUnknown)});
}

std::string describe_back_end(const MachineFacts& facts) {
  if (!facts.was_back_end_tried) return "not tried";
  return facts.back_end_problem.empty() ? "loads" : "does not load";
}

void tell_software(std::ostream& out, const MachineFacts& facts) {
  Table table({"SOFTWARE", "VERSION", "LEAST", "WHERE"});
  if (facts.gpus) {
    const recovery::GpuSurvey& gpus = *facts.gpus;
    table.add({"NVIDIA driver", found_or(gpus.driver_version, kUnknown), kUnknown, kUnknown});
    table.add({"CUDA of the driver", gpus.cuda_version ? to_string(version_of_cuda(*gpus.cuda_version)) : kUnknown,
               to_string(kOldestCuda), kUnknown});
    table.add({"NVML", found_or(gpus.library_version, kUnknown), kUnknown, gpus.library});
  } else {
    // The version would come from the management library, which does not answer.
    table.add({"NVIDIA driver", describe_silent_driver(facts), kUnknown, kUnknown});
  }
  add_library(table, facts.cuda_runtime, kUnknown);
  add_library(table, facts.cublas, kUnknown);
  add_library(table, facts.cudnn, to_string(kOldestCudnn));
  add_library(table, facts.nccl, to_string(kOldestNccl));
  table.add({"CUDA back end", describe_back_end(facts), kUnknown, kUnknown});
  table.write(out);
}

// Errors that were corrected are normal and are not shown.
std::string describe_ecc(const GpuFacts& device) {
  if (!device.has_ecc) return kUnknown;
  if (!*device.has_ecc) return "off";
  const std::string errors =
      device.uncorrected_errors ? describe_count(*device.uncorrected_errors, "error") : "errors unknown";
  std::string text = "on, " + errors;
  if (device.is_retirement_pending.value_or(false)) text += ", retirement pending";
  return text;
}

std::string describe_slowdowns(const GpuFacts& device) {
  // An empty list is a driver that says that nothing slows the device down. No list is a driver that does not say it.
  return device.slowdowns ? found_or(joined(*device.slowdowns, ", "), "no") : kUnknown;
}

// The devices whose memory it can read. A '?' follows a device of which the driver does not know this.
std::string describe_peers(const MachineFacts& facts, const GpuFacts& device) {
  if (!device.problem.empty()) return kUnknown;
  std::vector<std::string> names;
  for (const recovery::PeerAccess& peer : facts.gpus->peers) {
    // The driver is asked once for each pair, so a device may stand on either side of it.
    if (peer.from != device.index && peer.to != device.index) continue;
    const int index = peer.from == device.index ? peer.to : peer.from;
    const GpuFacts& other = facts.gpus->devices.at(static_cast<std::size_t>(index));
    if (!other.problem.empty() || peer.is_possible == false) continue;
    const std::string name = found_or(cuda_name_of(facts, other), fmt::format("GPU {}", index));
    names.push_back(name + (peer.is_possible ? "" : "?"));
  }
  return found_or(joined(names, ", "), "none");
}

// Memory in use matters more than the size: what other processes hold is missing to training.
std::string describe_memory(const GpuFacts& device) {
  if (!device.memory_bytes) return kUnknown;
  return fmt::format("{} of {}", device.used_memory_bytes ? describe_bytes(*device.used_memory_bytes) : kUnknown,
                     describe_bytes(*device.memory_bytes));
}

// A device that does not work keeps its row; the problem takes the place of its name.
void tell_devices(std::ostream& out, const MachineFacts& facts) {
  Table table({"DEVICE", ">GPU", "NAME", "PCI", ">MEMORY IN USE", ">LANES", ">GENERATION", ">CELSIUS", ">WATTS",
               ">LOAD", "SLOWED DOWN", "ECC", "PEERS"});
  for (const GpuFacts& device : facts.gpus->devices) {
    table.add({found_or(cuda_name_of(facts, device), kUnknown), std::to_string(device.index),
               found_or(device.problem.empty() ? device.name : device.problem, kUnknown),
               found_or(device.pci_bus_id, kUnknown), describe_memory(device),
               describe_of(device.link_width, device.max_link_width),
               describe_of(device.link_generation, device.max_link_generation), describe(device.temperature_celsius),
               describe(device.power_watts), describe(device.utilization_percent, " %"), describe_slowdowns(device),
               describe_ecc(device), describe_peers(facts, device)});
  }
  table.write(out);
}

// Only `what` may quote a driver or a path, so only it can hold control characters.
void tell_finding(std::ostream& out, const Finding& finding) {
  out << to_string(finding.severity) << ": " << printable(finding.what) << "\n";
  if (!finding.remedy.empty()) out << "    " << finding.remedy << "\n";
}

// What programs read: each value as it is, and null where it is not known.

// null and not 0: a monitor must not take an unknown temperature for a cold device.
template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// An empty text would look like a value in a monitor's table.
Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// Names of fields are data that programs read, so they stay as they are.
Json to_json(const LibraryFacts& library) {
  return {{"name", library.name},
          {"path", text_or_null(library.path)},
          {"version", library.version ? Json(to_string(*library.version)) : Json(nullptr)},
          {"problem", text_or_null(library.problem)}};
}

Json to_json(const MachineFacts& facts, const GpuFacts& device) {
  return {{"index", device.index},
          {"device", text_or_null(cuda_name_of(facts, device))},
          {"problem", text_or_null(device.problem)},
          {"name", text_or_null(device.name)},
          {"uuid", text_or_null(device.uuid)},
          {"pci_bus_id", text_or_null(device.pci_bus_id)},
          {"compute_capability", device.major ? Json::array({*device.major, device.minor.value_or(0)}) : Json(nullptr)},
          {"memory_bytes", or_null(device.memory_bytes)},
          {"used_memory_bytes", or_null(device.used_memory_bytes)},
          {"temperature_celsius", or_null(device.temperature_celsius)},
          {"power_watts", or_null(device.power_watts)},
          {"power_limit_watts", or_null(device.power_limit_watts)},
          {"utilization_percent", or_null(device.utilization_percent)},
          {"is_split", or_null(device.is_split)},
          {"slowdowns", or_null(device.slowdowns)},
          {"has_ecc", or_null(device.has_ecc)},
          {"uncorrected_errors", or_null(device.uncorrected_errors)},
          {"uncorrected_errors_ever", or_null(device.uncorrected_errors_ever)},
          {"is_retirement_pending", or_null(device.is_retirement_pending)},
          {"has_retirement_failed", or_null(device.has_retirement_failed)},
          {"link_generation", or_null(device.link_generation)},
          {"max_link_generation", or_null(device.max_link_generation)},
          {"link_width", or_null(device.link_width)},
          {"max_link_width", or_null(device.max_link_width)}};
}

// null stands for a driver that does not answer, and an empty list for a driver without devices.
Json gpus_as_json(const MachineFacts& facts) {
  if (!facts.gpus) return nullptr;
  Json devices = Json::array();
  for (const GpuFacts& device : facts.gpus->devices) devices.push_back(to_json(facts, device));
  Json peers = Json::array();
  for (const recovery::PeerAccess& peer : facts.gpus->peers) {
    peers.push_back({{"from", peer.from},
                     {"to", peer.to},
                     {"is_possible", or_null(peer.is_possible)},
                     {"why_not", text_or_null(peer.why_not)}});
  }
  return {{"driver_version", text_or_null(facts.gpus->driver_version)},
          {"nvml", text_or_null(facts.gpus->library)},
          {"nvml_version", text_or_null(facts.gpus->library_version)},
          {"cuda_version",
           facts.gpus->cuda_version ? Json(to_string(version_of_cuda(*facts.gpus->cuda_version))) : Json(nullptr)},
          {"devices", devices},
          {"peers", peers}};
}

Json findings_as_json(const Diagnosis& diagnosis) {
  Json findings = Json::array();
  for (const Finding& finding : diagnosis.findings) {
    findings.push_back(
        {{"severity", to_string(finding.severity)}, {"what", finding.what}, {"remedy", text_or_null(finding.remedy)}});
  }
  return findings;
}

}  // namespace

std::string describe_hosts(const recovery::HostsReport& report) {
  std::ostringstream out;
  if (!report.checks.empty()) {
    Table table({">HOST", "CHECK", "FOUND"});
    for (const recovery::HostCheck& check : report.checks) {
      table.add({std::to_string(check.host), check.what, check.problem.empty() ? printable(check.found) : "wrong"});
    }
    table.write(out);
    out << "\n";
  }
  // Problems follow the table, whose columns have no room for sentences.
  for (const recovery::HostCheck& check : report.checks) {
    if (check.problem.empty()) continue;
    out << "error: host " << check.host << ": " << check.what << ": " << printable(check.problem) << "\n    "
        << printable(check.remedy) << "\n";
  }
  out << printable(report.sentence) << "\n";
  return out.str();
}

std::string hosts_as_json(const recovery::HostsReport& report) {
  Json checks = Json::array();
  for (const recovery::HostCheck& check : report.checks) {
    checks.push_back({{"host", check.host},
                      {"what", check.what},
                      {"found", text_or_null(check.found)},
                      {"problem", text_or_null(check.problem)},
                      {"remedy", text_or_null(check.remedy)}});
  }
  const Json body = {
      {"host", report.host}, {"checks", checks}, {"sentence", report.sentence}, {"is_well", report.is_well}};
  // Paths of other hosts may not be UTF-8, as in machine_as_json().
  return body.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string describe_machine(const MachineFacts& facts, const Diagnosis& diagnosis) {
  std::ostringstream out;
  tell_host(out, facts);
  out << "\n";
  tell_software(out, facts);
  out << "\n";
  // A table without rows would say less than the finding that there is no device.
  if (facts.gpus && !facts.gpus->devices.empty()) {
    tell_devices(out, facts);
    out << "\n";
  }
  for (const Finding& finding : diagnosis.findings) tell_finding(out, finding);
  out << diagnosis.plan << "\n";
  return out.str();
}

std::string machine_as_json(const MachineFacts& facts, const Diagnosis& diagnosis) {
  const Json body = {
      {"host",
       {{"cores", facts.cores},
        {"memory_bytes", facts.memory_bytes},
        {"shared_memory_bytes", or_null(facts.shared_memory_bytes)},
        {"locked_memory_bytes", or_null(facts.locked_memory_bytes)},
        {"hdf5_plugin", text_or_null(facts.hdf5_plugin)},
        {"nvidia_cards", facts.nvidia_cards}}},
      {"gpus", gpus_as_json(facts)},
      {"why_no_gpus", text_or_null(facts.why_no_gpus)},
      {"libraries", {to_json(facts.cuda_runtime), to_json(facts.cublas), to_json(facts.cudnn), to_json(facts.nccl)}},
      {"back_end",
       {{"was_tried", facts.was_back_end_tried},
        {"problem", text_or_null(facts.back_end_problem)},
        {"devices", facts.back_end_devices}}},
      {"findings", findings_as_json(diagnosis)},
      {"plan", diagnosis.plan},
      {"can_train", diagnosis.can_train}};
  // Texts of drivers and paths may not be UTF-8. They are replaced, because dump() would throw.
  return body.dump(1, ' ', false, Json::error_handler_t::replace);
}

namespace {

struct DoctorOptions {
  bool as_json = false;
  bool are_hosts_checked = false;
  recovery::HostsCheckOptions check{};
};

// Returns kDone when a run over the hosts can begin, as far as this host knows.
int check_hosts(const DoctorOptions& options, const std::vector<std::string>& program, Console& console) {
  recovery::HostsCheckOptions check = options.check;
  check.command = program;
  // Hosts whose text differs would compute other bits, and the check refuses them.
  check.arithmetic = describe_cpu_arithmetic();
  // Flushed at once, since the check may wait for other hosts.
  check.on_news = [&console](const std::string& news) {
    console.problems << "holdfast: " << printable(news) << "\n" << std::flush;
  };
  const recovery::HostsReport report = recovery::check_hosts(check);
  console.out << (options.as_json ? hosts_as_json(report) + "\n" : describe_hosts(report));
  return report.is_well ? kDone : kCannotTrain;
}

// Returns kDone when training can run on the GPUs, or on the CPUs of a machine without a GPU. Returns kCannotTrain when
// the machine has GPUs and none can be used.
int doctor(const DoctorOptions& options, const std::vector<std::string>& program, Console& console) {
  if (options.are_hosts_checked) return check_hosts(options, program, console);
  if (!program.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "a program is named, which is looked at only on several hosts; add --hosts, or leave it out");
  }
  const MachineFacts facts = look_at_machine();
  // The facts are collected once, so the diagnosis is about the values that are printed.
  const Diagnosis diagnosis = diagnose(facts);
  console.out << (options.as_json ? machine_as_json(facts, diagnosis) + "\n" : describe_machine(facts, diagnosis));
  return diagnosis.can_train ? kDone : kCannotTrain;
}

// Those of `holdfast run`. They mean nothing to the check of a single machine.
void add_hosts_check(CLI::App& command, DoctorOptions& options) {
  recovery::HostsCheckOptions& check = options.check;
  CLI::Option* hosts = command.add_flag("--hosts", options.are_hosts_checked,
                                        "Check whether a run over several hosts can begin: start this on each of them, "
                                        "with the options and the program of that run");
  // Without --hosts these options have no effect, so the parser refuses them.
  const auto of_hosts = [&](CLI::Option* option) { option->needs(hosts); };
  of_hosts(command.add_option("--nnodes", check.hosts.nnodes,
                              "With --hosts: the number of hosts. Default: what a launcher says in the environment"));
  of_hosts(command.add_option("--node-rank", check.hosts.node_rank, "With --hosts: which of them this one is, from 0"));
  of_hosts(command.add_option("--head", check.hosts.head,
                              "With --hosts: where the host of rank 0 listens, such as node7:29400"));
  of_hosts(command.add_option("--secret", check.hosts.secret,
                              "With --hosts: the file with the secret that all share; default: HOLDFAST_SECRET_FILE"));
  of_hosts(command.add_option("--run-dir", check.run_directory, "With --hosts: the folder of the run, which all share")
               ->capture_default_str());
  of_hosts(command.add_flag("--separate-run-dirs", check.hosts.separate_run_dirs,
                            "With --hosts: each host has a run directory of its own"));
  of_hosts(command.add_option("--replicas", check.replicas, "With --hosts: the number of replicas of each host")
               ->check(CLI::Range(1, recovery::kMaxReplicas).description("")));
  CLI::Option* timeout = add_seconds(command, "--join-timeout", check.join_timeout,
                                     "With --hosts: how long the hosts wait for each other", between(0.001, 1e6));
  of_hosts(timeout);
}

}  // namespace

void add_doctor(Subcommands& commands) {
  commands.add<DoctorOptions>(
      "doctor",
      "Show what this machine can train on, what is wrong with it, and what to do about it; with --hosts, whether a "
      "run "
      "over several can begin. Exit code: 0 training can run on the GPUs, or on the CPUs of a machine without a GPU; 1 "
      "the GPUs cannot be used, or something is wrong with the hosts; 2 wrong usage",
      [](CLI::App& command, DoctorOptions& options) {
        command.add_flag("--json", options.as_json, "Print JSON");
        add_hosts_check(command, options);
      },
      [&commands](const DoctorOptions& options) { return doctor(options, commands.program, commands.console); });
}

}  // namespace holdfast::cli
