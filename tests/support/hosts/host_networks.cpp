// A thread may leave the network namespace of its process. So threads that live for one command, and new processes that
// enter a namespace before their program begins, are all it takes to be on another host.

#include "support/hosts/host_networks.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/comes_true.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kListening = "0A";  // a state of a socket in /proc/net/tcp

// Calls `act` in a thread of its own, and throws what that throws.
void in_a_thread(const std::function<void()>& act) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      act();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

void in_namespace(const FileDescriptor& where, const std::function<void()>& act) {
  in_a_thread([&] {
    if (::setns(where.value(), CLONE_NEWNET) != 0) {
      throw std::runtime_error(std::string("a thread cannot enter a network namespace: ") + std::strerror(errno));
    }
    act();
  });
}

FileDescriptor new_namespace() {
  FileDescriptor made;
  in_a_thread([&made] {
    if (::unshare(CLONE_NEWNET) != 0) {
      throw std::runtime_error(std::string("this machine refuses network namespaces: ") + std::strerror(errno));
    }
    made = FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!made.is_open())
      throw std::runtime_error(std::string("a network namespace has no file: ") + std::strerror(errno));
  });
  return made;
}

// Runs commands of `ip`, one a line, in a namespace. The path of an ordinary user may lack the folder of `ip`.
void configure(const FileDescriptor& where, const std::string& commands) {
  in_namespace(where, [&commands] {
    const ProgramResult result = run_program("/bin/sh", {"-ec", "PATH=$PATH:/usr/sbin:/sbin\n" + commands});
    if (result.exit_code == 127) {
      throw std::runtime_error(
          "network namespaces need `ip`, which is missing here; scripts/setup installs it (iproute2)");
    }
    if (result.exit_code != 0) {
      const std::string first_line = result.output.substr(0, result.output.find('\n'));
      throw std::runtime_error("`ip` cannot join network namespaces here: " + first_line);
    }
  });
}

// For other programs, as long as this one has it open.
std::string path_of(const FileDescriptor& descriptor) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor.value());
}

std::string port_of(int host) {
  return "port" + std::to_string(host);
}

std::vector<std::string> lines_after_the_title(const std::string& path) {
  std::ifstream table(path);
  std::vector<std::string> lines;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) lines.push_back(line);
  return lines;
}

// Processes that run in a namespace. One that has ended is in none.
std::vector<int> processes_in(const FileDescriptor& where) {
  struct stat ours {};
  if (::fstat(where.value(), &ours) != 0) throw std::runtime_error("a network namespace cannot be looked at");
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    int pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    struct stat theirs {};
    if (::stat((entry.path() / "ns/net").c_str(), &theirs) != 0) continue;
    if (theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev) found.push_back(pid);
  }
  return found;
}

}  // namespace

const std::string& HostNetworks::why_not() {
  static const std::string why = []() -> std::string {
    if (::geteuid() != 0) return "network namespaces need root";
    try {
      const HostNetworks attempt(1);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }();
  return why;
}

HostNetworks::HostNetworks(int hosts) : bridge_(new_namespace()) {
  configure(bridge_,
            "ip link add bridge type bridge\n"
            "ip link set bridge up\n");
  for (int host = 0; host < hosts; ++host) {
    const FileDescriptor& added = hosts_.emplace_back(new_namespace());
    configure(bridge_, "ip link add " + port_of(host) + " type veth peer name eth0 netns " + path_of(added) +
                           "\n"
                           "ip link set " +
                           port_of(host) + " master bridge up\n");
    configure(added,
              "ip link set lo up\n"
              "ip address add " +
                  address_of(host) +
                  "/24 dev eth0\n"
                  "ip link set eth0 up\n");
  }
}

HostNetworks::~HostNetworks() {
  for (std::size_t host = 0; host < hosts_.size(); ++host) kill_all(static_cast<int>(host));
}

std::string HostNetworks::address_of(int host) {
  return "10.77.0." + std::to_string(host + 1);
}

std::unique_ptr<RunningProgram> HostNetworks::start(int host, const std::string& path,
                                                    const std::vector<std::string>& arguments) const {
  const int where = namespace_of(host).value();
  const pid_t parent = ::getpid();
  return std::make_unique<RunningProgram>(path, arguments, [where, parent] {
    // The signal is set before the parent is compared: a parent that died in between is noticed by one of the two.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent || ::setns(where, CLONE_NEWNET) != 0) ::_exit(126);
  });
}

void HostNetworks::on(int host, const std::function<void()>& act) const {
  in_namespace(namespace_of(host), act);
}

std::vector<std::string> HostNetworks::sockets(int host) const {
  std::vector<std::string> found;
  on(host, [&found] {
    for (const char* table : {"tcp", "tcp6", "udp", "udp6"}) {
      for (const std::string& line : lines_after_the_title(std::string("/proc/thread-self/net/") + table)) {
        found.push_back(table + (" " + line));
      }
    }
  });
  return found;
}

// "tcp 0: 0100007F:1F90 00000000:0000 0A ...": the table, the number, the own end, the other end, the state.
std::vector<int> HostNetworks::listening_ports(int host) const {
  std::vector<int> ports;
  for (const std::string& socket : sockets(host)) {
    std::istringstream words(socket);
    std::string table, number, own, other, state;
    words >> table >> number >> own >> other >> state;
    if (table.starts_with("tcp") && state == kListening) {
      ports.push_back(std::stoi(own.substr(own.find(':') + 1), nullptr, 16));
    }
  }
  return ports;
}

// Again and again, since one of them may be starting another.
void HostNetworks::kill_all(int host) const {
  const bool are_gone = comes_true([this, host] {
    const std::vector<int> processes = processes_in(namespace_of(host));
    for (const int process : processes) ::kill(process, SIGKILL);
    return processes.empty();
  });
  if (!are_gone) throw std::runtime_error("processes on host " + std::to_string(host) + " outlive SIGKILL");
}

void HostNetworks::cut_off(int host, Cut where) const {
  if (where == Cut::at_the_host) return configure(namespace_of(host), "ip link set eth0 down\n");
  configure(bridge_, "ip link set " + port_of(host) + " nomaster\n");
}

void HostNetworks::heal(int host, Cut where) const {
  if (where == Cut::at_the_host) return configure(namespace_of(host), "ip link set eth0 up\n");
  configure(bridge_, "ip link set " + port_of(host) + " master bridge\n");
}

// What they send goes to a link address that nobody has.
void HostNetworks::cut_between(int one, int other) const {
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
    configure(namespace_of(from),
              "ip neigh replace " + address_of(to) + " lladdr 02:00:00:00:00:fe nud permanent dev eth0\n");
  }
}

void HostNetworks::heal_between(int one, int other) const {
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
    configure(namespace_of(from), "ip neigh delete " + address_of(to) + " dev eth0\n");
  }
}

}  // namespace holdfast
