// Runs over hosts with a network of their own, which can be killed whole and cut off without a word. Whatever happens,
// the bits are those of one host. Gates hold ranks at a step until what a test waits for has happened, so nothing
// depends on which of two things is quicker. docs/decisions/lost-hosts.md

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "holdfast/base/shared_memory.h"
#include "integration/hosts/gated_hosts_run.h"
#include "support/hosts/host_networks.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kMostHosts = 3;

class HostsInNamespaces : public GatedHostsRun {
 protected:
  HostsInNamespaces() : GatedHostsRun(HostNetworks::address_of(0), kMostHosts) {}

  void SetUp() override {
    const std::string& why_not = HostNetworks::why_not();
    if (!why_not.empty() && are_hosts_required()) FAIL() << why_not;
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    networks_.emplace(kMostHosts);
  }

  std::unique_ptr<RunningProgram> start_program(int host, const std::string& path,
                                                const std::vector<std::string>& arguments) const override {
    return networks_->start(host, path, arguments);
  }

  // The agent first, so that it tells the head nothing of what the others die of.
  void kill_processes(int host) override {
    hosts_.at(host)->signal(SIGKILL);
    networks_->kill_all(host);
  }

  // What comes of a program with another secret that says it is host 1.
  ProgramResult with_another_secret(int from) const {
    const std::string secret = folder_ / "other_secret";
    std::ofstream(secret) << std::string(64, '6');
    std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
    return networks_
        ->start(
            from, built_program("holdfast"),
            {"doctor", "--hosts", "--nnodes", "2", "--node-rank", "1", "--head", head_ + ":" + std::to_string(port_),
             "--secret", secret, "--run-dir", folder_ / "other", "--join-timeout", "1", "--", built_program("digits")})
        ->wait();
  }

  std::optional<HostNetworks> networks_;
};

// ---- One digest for any number of hosts and replicas

class HostsInNamespacesWith : public HostsInNamespaces, public ::testing::WithParamInterface<std::tuple<int, int>> {};

INSTANTIATE_TEST_SUITE_P(HostsAndReplicas, HostsInNamespacesWith,
                         ::testing::Values(std::tuple(1, 1), std::tuple(1, 2), std::tuple(2, 1), std::tuple(2, 2),
                                           std::tuple(3, 1)),
                         [](const auto& hosts_and_replicas) {
                           return std::to_string(std::get<0>(hosts_and_replicas.param)) + "x" +
                                  std::to_string(std::get<1>(hosts_and_replicas.param));
                         });

TEST_P(HostsInNamespacesWith, TrainToTheSameBits) {
  std::tie(number_of_hosts_, replicas_) = GetParam();

  start_with({});

  expect_all_finished();
  expect_the_bits_of_one_host();
  EXPECT_THAT(generations(), ElementsAre(number_of_hosts_ * replicas_));
}

TEST_F(HostsInNamespaces, OpenNoPortIfThereIsOnlyOne) {
  number_of_hosts_ = 1;
  replicas_ = 2;
  start_with({{.rank = 0}});
  wait_at_gate(0);

  EXPECT_THAT(networks_->sockets(0), IsEmpty());

  open_gate(0);
  expect_all_finished();
  expect_the_bits_of_one_host();
}

// ---- Hosts that are lost and come back

enum class How { killed, without_power, cut_off, link_down };

struct Loss {
  How how;
  int hosts;
  int replicas;
  int host;  // 0 is the head's
};

class HostsInNamespacesThatLoseSome : public HostsInNamespaces, public ::testing::WithParamInterface<Loss> {
 protected:
  HostsInNamespacesThatLoseSome() {
    number_of_hosts_ = GetParam().hosts;
    replicas_ = GetParam().replicas;
    digits_ = {{"--save-every", "1"}};
  }

  // A host without power sends nothing to say so.
  void lose(int host, How how) {
    if (how != How::killed) networks_->cut_off(host, where(how));
    if (dies(how)) kill_host(host);
  }

  void bring_back(int host, How how) {
    if (how != How::killed) networks_->heal(host, where(how));
    if (dies(how)) start_again(host);
  }

  static bool dies(How how) { return how == How::killed || how == How::without_power; }
  static HostNetworks::Cut where(How how) {
    return how == How::link_down ? HostNetworks::Cut::at_the_host : HostNetworks::Cut::at_the_bridge;
  }
};

constexpr std::array kLosses = {Loss{How::killed, 2, 2, 1}, Loss{How::without_power, 3, 1, 1},
                                Loss{How::cut_off, 2, 2, 1}, Loss{How::link_down, 3, 1, 2},
                                Loss{How::cut_off, 3, 1, 0}};

std::string name_of(const ::testing::TestParamInfo<Loss>& loss) {
  static const std::map<How, std::string> names = {{How::killed, "Killed"},
                                                   {How::without_power, "WithoutPower"},
                                                   {How::cut_off, "CutOff"},
                                                   {How::link_down, "LinkDown"}};
  return "Host" + std::to_string(loss.param.host) + "Of" + std::to_string(loss.param.hosts) + "x" +
         std::to_string(loss.param.replicas) + names.at(loss.param.how);
}

INSTANTIATE_TEST_SUITE_P(Losses, HostsInNamespacesThatLoseSome, ::testing::ValuesIn(kLosses), name_of);

// When the head's host is cut off, the others are lost to it: it goes on alone.
TEST_P(HostsInNamespacesThatLoseSome, TakeThemBackAndLoseNoStep) {
  const Loss loss = GetParam();
  const auto all = static_cast<std::size_t>(loss.hosts * loss.replicas);
  const std::size_t lost_hosts = loss.host == 0 ? static_cast<std::size_t>(loss.hosts) - 1 : 1;
  const std::size_t lost = lost_hosts * static_cast<std::size_t>(loss.replicas);
  start_with({{.rank = 0}, {.rank = 0, .step = 12, .generation = 1}});
  wait_at_gate(0);

  lose(loss.host, loss.how);
  wait_for("host_lost", lost_hosts);
  open_gate(0);
  wait_at_gate(1);
  bring_back(loss.host, loss.how);
  wait_until_ready_to_join(lost);
  open_gate(1);

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_THAT(generations(), ElementsAre(all, all - lost, all));
  EXPECT_EQ(events("host_lost").size(), lost_hosts);
  EXPECT_EQ(events("host_returned").size(), lost_hosts);
  const std::string why = events("host_lost")[0].at("reason");
  EXPECT_THAT(why, HasSubstr(loss.how == How::killed ? "the connection was closed" : "did not answer"));
}

// Nothing is heard of its replicas, which does not show that they hang.
TEST_F(HostsInNamespaces, BlameNoReplicaOfOneThatIsCutOff) {
  number_of_hosts_ = 2;
  digits_ = {{"--epochs", "100000"}, {"--save-every", "0"}};
  // A hang is found sooner than a host is given up.
  prepare({{.rank = 1}}, "300", "4");
  start_all(options_, preloading("libheld_faults.so"));
  wait_at_gate(0);
  ASSERT_TRUE(comes_true([this] {
    const Json replica = Json::parse(command({"status", "--json"})).at("members").at(1);
    return replica.at("step") == 10 && replica.at("phase") == "computing";
  })) << "the last that the head hears of it is from the midst of a step";

  networks_->cut_off(1, HostNetworks::Cut::at_the_bridge);
  open_gate(0);
  wait_for("host_lost");

  EXPECT_THAT(events("hang_detected"), IsEmpty());
  networks_->heal(1, HostNetworks::Cut::at_the_bridge);
  ASSERT_TRUE(comes_true([this] { return generations().size() == 3; }));
  EXPECT_THAT(generations(), ElementsAre(2, 1, 2));
  hosts_[0]->signal(SIGTERM);
  EXPECT_EQ(end_of(0).exit_code, 75);
  EXPECT_EQ(end_of(1).exit_code, 75);
}

// ---- Two hosts reach the head, but not each other

class HostsInNamespacesThatLoseEachOther : public HostsInNamespaces {
 protected:
  HostsInNamespacesThatLoseEachOther() {
    number_of_hosts_ = 3;
    digits_ = {{"--save-every", "1"}};
  }

  // A generation that opened waits in vain for ten seconds, and one that trains waits as long before it ends.
  void wait_until_parted() const {
    ASSERT_TRUE(comes_true([this] { return generations().size() >= 3; })) << "the others do not go on";
  }

  std::vector<int> hosts_of_newest_generation() const {
    std::vector<int> hosts;
    for (const Json& line : journal_of(folder_)) {
      for (const Json& action : line.value("actions", Json::array())) {
        if (action.at("action") == "open_generation") hosts = action.at("hosts").get<std::vector<int>>();
      }
    }
    return hosts;
  }
};

// The head's host goes on with the host of the lower number. No step is lost, and the bits are those of one host.
TEST_F(HostsInNamespacesThatLoseEachOther, GoOnWithoutOneOfThem) {
  start_with({{.rank = 0}});
  wait_at_gate(0);

  networks_->cut_between(1, 2);
  open_gate(0);

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_EQ(generations().front(), 3U);
  EXPECT_EQ(generations().back(), 2U);
  EXPECT_THAT(hosts_of_newest_generation(), ElementsAre(0, 1));
  ASSERT_EQ(events("hosts_cut").size(), 1U);
  EXPECT_THAT(std::string(events("hosts_cut")[0].at("reason")),
              HasSubstr("host 1 and host 2 have no connection with each other"));
  EXPECT_THAT(events("host_lost"), IsEmpty());
  EXPECT_THAT(ended_.at(0).output, HasSubstr("the run goes on without host 2"));
}

// A process tries the device slot of the host that went. With a connection it stays.
TEST_F(HostsInNamespacesThatLoseEachOther, AreTogetherAgainWhenTheConnectionIsBack) {
  prepare({{.rank = 0}, {.rank = 0, .step = 12, .generation = 2}});
  options_.insert(options_.end(), {"--place-rest", "1"});
  start_all(options_, preloading("libheld_faults.so"));
  wait_at_gate(0);
  networks_->cut_between(1, 2);
  open_gate(0);
  wait_at_gate(1);

  networks_->heal_between(1, 2);
  ASSERT_TRUE(comes_true([this] { return events("ready").size() == 4; })) << "the host that went is not tried";
  open_gate(1);

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_THAT(generations(), ElementsAre(3, 3, 2, 3));
  EXPECT_THAT(hosts_of_newest_generation(), ElementsAre(0, 1, 2));
}

// ---- The head's host is lost, and the others have the newest state

class HostsInNamespacesWithoutAHead : public HostsInNamespaces {
 protected:
  // All have computed ten steps then, and keep the state in memory alone.
  void hold_all_at_step_ten() {
    digits_ = {{"--memory-snapshot-every", "1"}, {"--save-every", "0"}};
    start_with({{.rank = 0}, {.rank = 1}, {.rank = 2}}, "1");
    for (int gate = 0; gate < 3; ++gate) wait_at_gate(gate);
  }

  // One that finds the savepoint of another host has nothing to save.
  void expect_that_the_others_save_step_ten() {
    for (int gate = 0; gate < 3; ++gate) open_gate(gate);
    for (const int host : {1, 2}) {
      const ProgramResult result = end_of(host);
      EXPECT_EQ(result.exit_code, 75) << result.output;
    }
    const std::string saved = folder_ / "run/savepoint-0000000010.h5";
    EXPECT_EQ(run_program(built_program("holdfast"), {"verify", saved}).exit_code, 0);
  }

  void expect_that_the_next_start_goes_on_there() {
    start_with({});
    expect_all_finished();
    expect_the_bits_of_one_host();
    ASSERT_EQ(events("resumed").size(), 1U);
    EXPECT_EQ(events("resumed")[0].at("details").at("step"), 10);
  }
};

TEST_F(HostsInNamespacesWithoutAHead, SaveTheirNewestStepWhenItIsKilled) {
  hold_all_at_step_ten();

  kill_host(0);

  expect_that_the_others_save_step_ten();
  expect_that_the_next_start_goes_on_there();
}

TEST_F(HostsInNamespacesWithoutAHead, SaveTheirNewestStepWhenItLosesPower) {
  hold_all_at_step_ten();

  networks_->cut_off(0, HostNetworks::Cut::at_the_bridge);
  kill_host(0);

  expect_that_the_others_save_step_ten();
  networks_->heal(0, HostNetworks::Cut::at_the_bridge);
  expect_that_the_next_start_goes_on_there();
}

// The head goes on with its own host. The others cannot know that, and save what they have.
TEST_F(HostsInNamespacesWithoutAHead, SaveWhatTheyHaveWhenItIsCutOff) {
  digits_ = {{"--memory-snapshot-every", "1"}, {"--save-every", "1"}};
  start_with({{.rank = 0}}, "1");
  wait_at_gate(0);

  networks_->cut_off(0, HostNetworks::Cut::at_the_bridge);
  const std::vector<ProgramResult> others = {end_of(1), end_of(2)};
  wait_for("host_lost", 2);
  open_gate(0);
  expect_finished(0);

  for (const ProgramResult& other : others) EXPECT_EQ(other.exit_code, 75) << other.output;
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_THAT(generations(), ElementsAre(3, 1));
}

// ---- Strangers

FileDescriptor connected_to(const std::string& address, int port) {
  FileDescriptor connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), &peer.sin_addr), 1);
  EXPECT_EQ(::connect(connection.value(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer), 0)
      << address << ":" << port;
  return connection;
}

// What a stranger can do without the secret, at each port of two hosts that train: to say nothing on hundreds of
// connections, to say what makes no sense, and to come with another secret.
TEST_F(HostsInNamespaces, AreNotDisturbedByStrangers) {
  number_of_hosts_ = 2;
  digits_ = {{"--save-every", "1"}};
  const int stranger = 2;
  start_with({{.rank = 0}});
  wait_at_gate(0);

  std::vector<FileDescriptor> silent;
  std::size_t ports = 0;
  for (int host = 0; host < number_of_hosts_; ++host) {
    for (const int port : networks_->listening_ports(host)) {
      ++ports;
      networks_->on(stranger, [&] {
        for (int i = 0; i < 200; ++i) silent.push_back(connected_to(HostNetworks::address_of(host), port));
        const FileDescriptor garbage = connected_to(HostNetworks::address_of(host), port);
        const std::string bytes(100'000, '\xa5');
        EXPECT_GT(::send(garbage.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
      });
    }
  }
  const ProgramResult unwelcome = with_another_secret(stranger);
  open_gate(0);

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_EQ(unwelcome.exit_code, 1);
  EXPECT_THAT(unwelcome.output, HasSubstr("cannot be reached"));
  EXPECT_GE(ports, 3U) << "the head's, and one for gradients on each host";
  EXPECT_THAT(events("host_lost"), IsEmpty());
  EXPECT_THAT(generations(), ElementsAre(2));
}

}  // namespace
}  // namespace holdfast
