// Sums over hosts, which are threads with sockets between them. Four ways take turns, so that a busy moment of the
// machine hits all alike: the sum; the same bytes streamed in both directions at once from and into a small buffer, as
// iperf3 does; the same from and into whole blocks, as any sum must; and the sum in shared memory.

#include "reduction_hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>

#include "holdfast/base/error.h"
#include "support/host_threads.h"
#include "support/rank_threads.h"

namespace holdfast {
namespace {

struct Size {
  const char* name;
  std::size_t floats;
  int rounds;  // in each turn
};
constexpr Size kSizes[] = {{"1 KiB", 256, 400},
                           {"241 KiB", 61'712, 100},  // the gradients of LeNet-5
                           {"4 MiB", std::size_t{1} << 20, 15},
                           {"64 MiB", std::size_t{16} << 20, 3}};

// Far longer than any turn takes: a hang ends the benchmark with an error.
Deadline end_of_turn() {
  return Deadline::after(std::chrono::minutes(2));
}

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The network namespace of a host is one of the calling thread. Sockets stay in the one that they were made in.
void enter_namespace(const std::string& name) {
  const std::string path = name.starts_with('/') ? name : "/run/netns/" + name;
  const FileDescriptor entered(checked(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  checked(::setns(entered.value(), CLONE_NEWNET));
}

// What each round took, on rank 0. The first rounds map pages and open windows, and are not counted.
std::vector<double> rounds_of(Communicator& communicator, const Size& size) {
  constexpr int kWarm = 2;
  std::vector<double> rounds;
  const int slot = 0;
  for (int round = 0; round < kWarm + size.rounds; ++round) {
    const double took = milliseconds_of([&] {
      communicator.reduce(std::span(&slot, 1), {0, size.floats}, end_of_turn());
    });
    if (round >= kWarm) rounds.push_back(took);
  }
  return rounds;
}

CommunicatorShape shape_of(int rank, int ranks, const Size& size) {
  return {.rank = rank,
          .size = ranks,
          .assignment = ShardAssignment::even(ranks, ranks),
          .slots = 1,
          .float_count = size.floats};
}

// Connections and memory are new in each turn, so no way finds windows or pages that another one has opened. Only rank
// 0 writes `rounds`; all ranks have ended when it is read.
std::vector<double> sums_over(const HostsBenchmark& options, const Size& size, const HostGroup::Wrap& other_link) {
  const HostLayout layout(std::vector<int>(static_cast<std::size_t>(options.hosts), options.ranks));
  HostGroup group(layout, connect_of(options));
  if (other_link) group.wrap_links(other_link);
  std::vector<double> rounds;
  run_host_ranks(group, [&](int rank) {
    const auto communicator = group.connect(shape_of(rank, layout.ranks(), size));
    const std::vector<double> own = rounds_of(*communicator, size);
    if (rank == 0) rounds = own;
  });
  return rounds;
}

std::vector<double> sums_over_hosts(const HostsBenchmark& options, const Size& size) {
  return sums_over(options, size, {});
}

std::vector<double> sums_over_other_links(const HostsBenchmark& options, const Size& size) {
  return sums_over(options, size, options.other_link);
}

// As many ranks as on all hosts together, in one memory: what the sum takes without a network.
std::vector<double> sums_in_memory(const HostsBenchmark& options, const Size& size) {
  const int ranks = options.hosts * options.ranks;
  ThreadGroup group(ranks);
  std::vector<double> rounds;
  run_ranks(ranks, group, [&](int rank) {
    const auto communicator = group.connect(shape_of(rank, ranks, size));
    const std::vector<double> own = rounds_of(*communicator, size);
    if (rank == 0) rounds = own;
  });
  return rounds;
}

// Sends and receives so many bytes on each socket at once, in calls of at most 256 KiB. They come from `from` and go to
// `to`, which are used again and again where they are smaller.
void stream(const std::vector<FileDescriptor>& sockets, std::size_t bytes, std::span<const std::byte> from,
            std::span<std::byte> to) {
  constexpr std::size_t kCall = std::size_t{256} * 1024;
  // Both directions move in turns, and no call waits. Two ends that both sent all first would wait for each other as
  // soon as the buffers of their sockets are full.
  struct Left {
    std::size_t to_send;
    std::size_t to_receive;
  };
  std::vector<Left> left;
  for (const FileDescriptor& socket : sockets) {
    // The place of the own host is empty.
    const std::size_t of_socket = socket.is_open() ? bytes : 0;
    left.push_back({of_socket, of_socket});
  }
  // Where a call begins in a buffer of `room` bytes, and how many bytes it moves: at most to the buffer's end, from
  // where the next call begins at 0 again.
  const auto call = [](std::size_t left_bytes, std::size_t all, std::size_t room) {
    const std::size_t at = (all - left_bytes) % room;
    return std::pair(at, std::min({kCall, left_bytes, room - at}));
  };
  for (;;) {
    std::vector<pollfd> polled;
    bool has_moved = false;
    bool is_done = true;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      const auto moved = [&](ssize_t count, std::size_t& of) {
        if (count < 0 && errno != EAGAIN) throw system_error(errno, "a stream failed");
        if (count == 0) throw Error(ErrorCode::input_output, "a stream ended");
        if (count > 0) of -= static_cast<std::size_t>(count);
        has_moved = has_moved || count > 0;
      };
      Left& of = left[i];
      const int socket = sockets[i].value();
      if (of.to_send > 0) {
        const auto [at, count] = call(of.to_send, bytes, from.size());
        moved(::send(socket, from.data() + at, count, MSG_DONTWAIT), of.to_send);
      }
      if (of.to_receive > 0) {
        const auto [at, count] = call(of.to_receive, bytes, to.size());
        moved(::recv(socket, to.data() + at, count, MSG_DONTWAIT), of.to_receive);
      }
      if (of.to_send + of.to_receive == 0) continue;
      is_done = false;
      polled.push_back(
          {socket, static_cast<short>((of.to_send > 0 ? POLLOUT : 0) | (of.to_receive > 0 ? POLLIN : 0)), 0});
    }
    if (is_done) return;
    // While anything moves, asking the sockets again costs less than a poll() before each call.
    if (!has_moved && ::poll(polled.data(), polled.size(), 60'000) <= 0) {
      throw Error(ErrorCode::deadline_exceeded, "a stream stood still for a minute");
    }
  }
}

// As many bytes between each two hosts as the sum exchanges: values of a part in one direction, sums of a part too.
std::vector<double> streams(const HostsBenchmark& options, const Size& size, std::size_t buffer_bytes) {
  const HostLayout layout(std::vector<int>(static_cast<std::size_t>(options.hosts), 1));
  // One connection between two hosts, whatever the number of ranks: a stream shows what the link carries.
  HostGroup group(layout, connect_of(options));
  const std::size_t bytes = 2 * size.floats * sizeof(float) / static_cast<std::size_t>(options.hosts);
  std::vector<double> rounds;
  run_host_ranks(group, [&](int rank) {
    const std::vector<FileDescriptor> sockets = group.sockets_of(rank);
    const std::vector<std::byte> from(buffer_bytes, std::byte{1});
    std::vector<std::byte> to(buffer_bytes);
    for (int round = 0; round < 2 + size.rounds; ++round) {
      const double took = milliseconds_of([&] { stream(sockets, bytes, from, to); });
      if (rank == 0 && round >= 2) rounds.push_back(took);
    }
  });
  return rounds;
}

std::vector<double> streams_of_a_buffer(const HostsBenchmark& options, const Size& size) {
  return streams(options, size, std::size_t{128} * 1024);
}

std::vector<double> streams_of_blocks(const HostsBenchmark& options, const Size& size) {
  return streams(options, size, size.floats * sizeof(float));
}

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1))];
}

// How much longer the first takes, as the median of the turns. Both ways met the same load in a turn, which a ratio of
// two medians would not know.
double ratio_of(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> ratios;
  for (std::size_t turn = 0; turn < first.size(); ++turn) ratios.push_back(first[turn] / second[turn]);
  return quantile(ratios, 0.5);
}

struct Way {
  std::function<std::vector<double>(const HostsBenchmark&, const Size&)> measure;
  std::vector<double> medians;  // by turn
  std::vector<double> all;
};

void measure_size(const HostsBenchmark& options, const Size& size) {
  // The sum stands first: the other columns are compared with it.
  std::vector<Way> ways = {
      {sums_over_hosts, {}, {}}, {streams_of_a_buffer, {}, {}}, {streams_of_blocks, {}, {}}, {sums_in_memory, {}, {}}};
  if (options.other_link) ways.push_back({sums_over_other_links, {}, {}});
  for (int turn = 0; turn < options.turns; ++turn) {
    for (Way& way : ways) {
      const std::vector<double> rounds = way.measure(options, size);
      way.medians.push_back(quantile(rounds, 0.5));
      way.all.insert(way.all.end(), rounds.begin(), rounds.end());
    }
  }
  const double median = quantile(ways[0].medians, 0.5);
  fmt::print("{:>8} | {:9.3f} {:9.3f} {:9.3f} {:6.2f} |", size.name, median, quantile(ways[0].all, 0.99),
             quantile(ways[0].all, 0.0), static_cast<double>(size.floats * sizeof(float)) / median / 1e6);
  for (const Way& way : std::span(ways).subspan(1)) {
    fmt::print(" {:9.3f} {:5.2f} |", quantile(way.medians, 0.5), ratio_of(way.medians, ways[0].medians));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

HostGroup::Connect connect_of(const HostsBenchmark& options) {
  if (options.namespaces.empty()) return [] { return tcp_pair(); };
  if (options.hosts != 2 || options.namespaces.size() != 2 || options.addresses.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "namespaces are measured between two hosts; give two, and the address of the first");
  }
  return [options] {
    return tcp_pair([&](int host) { enter_namespace(options.namespaces[static_cast<std::size_t>(host)]); },
                    options.addresses[0].c_str());
  };
}

void measure_hosts(const HostsBenchmark& options) {
  fmt::print("{} hosts with {} ranks each, {}; {} turns. Times in ms, of rank 0.\n", options.hosts, options.ranks,
             options.namespaces.empty() ? "TCP over loopback" : "TCP between network namespaces", options.turns);
  fmt::print("Each way is followed by its time divided by that of the sum, in the median turn.\n");
  fmt::print(
      "   block |       sum       p99      best   GB/s |     stream, share |     blocks, share |  in memory, share "
      "|{}\n",
      options.other_link ? "        UCX, share |" : "");
  for (const Size& size : kSizes) measure_size(options, size);
}

}  // namespace holdfast
