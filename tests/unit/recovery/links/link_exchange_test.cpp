// Three hosts of a generation, each with its listener, in one process: who gets which connection, and how all end.

#include "links/link_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/recovery/support/link_ends.h"
#include "unit/recovery/support/loopback.h"

namespace holdfast::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RanksByHost, AreCountedInTheOrderOfRanks) {
  EXPECT_THAT(ranks_by_host({}), IsEmpty());
  EXPECT_THAT(ranks_by_host({1, 1}), ElementsAre(2));
  EXPECT_THAT(ranks_by_host({2, 2, 0, 1, 1}), ElementsAre(2, 1, 2));
}

class HostsOfAGeneration : public ::testing::Test {
 protected:
  struct Host {
    std::unique_ptr<LinkListener> listener{};
    std::unique_ptr<LinkExchange> exchange{};
    std::map<int, LinkExchange::Links> links{};
    std::vector<std::string> failed{};
  };

  HostsOfAGeneration() {
    for (Host& host : hosts_) host.listener = std::make_unique<LinkListener>(loopback_.io);
    for (const auto& pair : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) keys_[pair] = new_link_key();
  }

  // Host 2 has the first ranks, and host 0 has one alone: one lane.
  void open(const std::vector<int>& hosts = {2, 2, 0, 1, 1}) {
    for (int number = 0; number < 3; ++number) {
      Host& host = hosts_.at(static_cast<std::size_t>(number));
      LinkExchange::Hosts of_generation{.host = number, .of_ranks = hosts};
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == number) continue;
        of_generation.peers.push_back(
            {.host = peer,
             .address = {"127.0.0.2", hosts_.at(static_cast<std::size_t>(peer)).listener->port()},
             .key = keys_.at(std::minmax(number, peer))});
      }
      host.exchange = std::make_unique<LinkExchange>(
          loopback_.io, *host.listener, of_generation,
          LinkExchange::Handlers{
              .on_links = [&host](int exchange, LinkExchange::Links links) { host.links[exchange] = std::move(links); },
              .on_failed = [&host](int, int, const std::string& why) { host.failed.push_back(why); }});
    }
  }

  void connect(int exchange) {
    for (Host& host : hosts_) host.exchange->connect(exchange);
    loopback_.run_until(
        [&] {
          return std::all_of(hosts_.begin(), hosts_.end(),
                             [&](const Host& host) { return host.links.contains(exchange); });
        },
        "all connections");
  }

  const FileDescriptor& link(int host, int exchange, std::size_t position, std::size_t lane = 0) {
    return hosts_.at(static_cast<std::size_t>(host)).links.at(exchange).at(lane).at(position);
  }

  Loopback loopback_;
  std::array<Host, 3> hosts_;
  std::map<std::pair<int, int>, LinkKey> keys_;
};

TEST_F(HostsOfAGeneration, AreConnectedInTheOrderOfTheirRanks) {
  open();
  connect(0);

  EXPECT_EQ(hosts_[0].exchange->lanes(), 1);
  // Positions: host 2, host 0, host 1.
  EXPECT_TRUE(are_connected(link(2, 0, 1), link(0, 0, 0)));
  EXPECT_TRUE(are_connected(link(2, 0, 2), link(1, 0, 0)));
  EXPECT_TRUE(are_connected(link(0, 0, 2), link(1, 0, 1)));
  EXPECT_FALSE(link(2, 0, 0).is_open());
  EXPECT_FALSE(link(0, 0, 1).is_open());
  EXPECT_FALSE(link(1, 0, 2).is_open());
}

TEST_F(HostsOfAGeneration, HaveAsManyLanesAsEachHostHasRanks) {
  open({2, 2, 0, 0, 1, 1});
  connect(0);

  EXPECT_EQ(hosts_[1].exchange->lanes(), 2);
  EXPECT_TRUE(are_connected(link(2, 0, 1, 1), link(0, 0, 0, 1)));
  EXPECT_TRUE(are_connected(link(0, 0, 0, 0), link(2, 0, 1, 0)));
}

TEST_F(HostsOfAGeneration, GetNewConnectionsWithEachExchange) {
  open();
  connect(0);
  connect(1);

  EXPECT_TRUE(are_connected(link(2, 0, 1), link(0, 0, 0)));
  EXPECT_TRUE(are_connected(link(2, 1, 1), link(0, 1, 0)));
}

// Each keeps duplicates, so the end reaches replicas that hold their sockets open.
TEST_F(HostsOfAGeneration, EndTheConnectionsOnBothSides) {
  open();
  connect(0);

  hosts_[0].exchange->shut_down();

  loopback_.run_until([&] { return has_ended(link(2, 0, 1)) && has_ended(link(1, 0, 1)); }, "the end");
  EXPECT_TRUE(has_ended(link(0, 0, 0)));
  EXPECT_FALSE(has_ended(link(2, 0, 2)));
}

TEST_F(HostsOfAGeneration, ConnectNothingOnceTheyAreShutDown) {
  open();
  hosts_[2].exchange->connect(0);
  hosts_[2].exchange->shut_down();

  hosts_[2].exchange->connect(1);
  hosts_[0].exchange->connect(0);
  hosts_[1].exchange->connect(0);
  loopback_.io.run_for(std::chrono::milliseconds(5));

  for (const Host& host : hosts_) EXPECT_TRUE(host.links.empty());
}

}  // namespace
}  // namespace holdfast::recovery
