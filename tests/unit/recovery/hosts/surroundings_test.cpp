// What each launcher sets, as seen in its documentation or in a step that ran, and which of several sources wins.

#include "hosts/surroundings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "holdfast/base/error.h"
#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

const Variables kStepOfSlurm{{"SLURM_JOB_ID", "812"},
                             {"SLURM_NNODES", "3"},
                             {"SLURM_STEP_NODELIST", "h[1-3]"},
                             {"SLURM_STEP_NUM_NODES", "3"},
                             {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                             {"SLURM_NODEID", "1"},
                             {"SLURM_LAUNCH_NODE_IPADDR", "10.99.0.9"}};
const Variables kTorchrun{{"PET_NNODES", "2"},
                          {"PET_NODE_RANK", "1"},
                          {"PET_MASTER_ADDR", "train-0.train"},
                          {"PET_MASTER_PORT", "29500"},
                          {"PET_NPROC_PER_NODE", "4"}};

Variables with(Variables variables, const Variables& further) {
  for (const auto& [name, value] : further) variables[name] = value;
  return variables;
}

Surroundings found(const Variables& variables, const HostOptions& options = {}) {
  return surroundings_of(options, [&](const char* name) -> std::optional<std::string> {
    const auto variable = variables.find(name);
    if (variable == variables.end() || variable->second.empty()) return std::nullopt;
    return variable->second;
  });
}

std::string complaint(const Variables& variables, const HostOptions& options = {}) {
  return complaint_about([&] { found(variables, options); });
}

std::string unsupported(const Variables& variables) {
  try {
    found(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    return error.what();
  }
  return "no complaint";
}

TEST(Surroundings, AreASingleHostWhereNothingSaysOtherwise) {
  for (const Variables& variables :
       {Variables{}, Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, Variables{{"MASTER_ADDR", "not an address"}},
        Variables{{"JOB_COMPLETION_INDEX", "3"}}, Variables{{"PET_NNODES", "1"}, {"PET_NODE_RANK", "0"}},
        Variables{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}}) {
    EXPECT_EQ(found(variables).hosts, 1);
    EXPECT_EQ(found(variables).host, 0);
  }
  EXPECT_EQ(found(kTorchrun, {.hosts = 1}).hosts, 1);
}

TEST(Surroundings, ComeFromOptions) {
  const Surroundings host = found({}, {.hosts = 2, .host = 1, .head = "a:29401"});

  EXPECT_EQ(host.hosts, 2);
  EXPECT_EQ(host.host, 1);
  EXPECT_EQ(host.head, (HostAddress{"a", 29401}));
}

TEST(Surroundings, ComeFromVariablesOfHoldfast) {
  const Surroundings host = found({{"HOLDFAST_NNODES", "20"},
                                   {"HOLDFAST_NODE_RANK", "19"},
                                   {"HOLDFAST_HEAD", "[fd00::1]:7"},
                                   {"HOLDFAST_RUN_ID", "digits"}});

  EXPECT_EQ(host.hosts, 20);
  EXPECT_EQ(host.host, 19);
  EXPECT_EQ(host.head, (HostAddress{"fd00::1", 7}));
  EXPECT_EQ(host.run_id, "digits");
}

TEST(Surroundings, ComeFromTorchrunAndKubeflow) {
  const Surroundings host = found(kTorchrun);

  EXPECT_EQ(host.hosts, 2);
  EXPECT_EQ(host.host, 1);
  EXPECT_EQ(host.head, (HostAddress{"train-0.train", 29500}));
  EXPECT_EQ(host.replicas, 4);
  EXPECT_EQ(found(with(kTorchrun, {{"PET_NPROC_PER_NODE", "auto"}})).replicas, std::nullopt);
  EXPECT_EQ(found(with(kTorchrun, {{"PET_NNODES", "2:2"}})).hosts, 2);
}

TEST(Surroundings, ComeFromTheMeetingPointOfTorchrun) {
  const Surroundings host =
      found({{"PET_NNODES", "2"}, {"PET_NODE_RANK", "0"}, {"PET_RDZV_ENDPOINT", "a:29400"}, {"PET_RDZV_ID", "j7"}});

  EXPECT_EQ(host.head, (HostAddress{"a", 29400}));
  EXPECT_EQ(host.run_id, "j7");
}

TEST(Surroundings, RefuseARangeOfHosts) {
  EXPECT_THAT(complaint(with(kTorchrun, {{"PET_NNODES", "1:4"}})), HasSubstr("fixed number of hosts"));
}

// The address from which srun was started may be that of a login node.
TEST(Surroundings, ComeFromAStepOfSlurm) {
  const Surroundings host = found(kStepOfSlurm);

  EXPECT_EQ(host.hosts, 3);
  EXPECT_EQ(host.host, 1);
  EXPECT_EQ(host.head, (HostAddress{"h1", 29400}));
  EXPECT_EQ(host.run_id, "812");
}

TEST(Surroundings, AreASingleHostInABatchScriptOfSlurm) {
  EXPECT_EQ(found({{"SLURM_JOB_ID", "812"}, {"SLURM_NNODES", "3"}, {"SLURM_NODEID", "0"}}).hosts, 1);
  EXPECT_EQ(
      found(with(kStepOfSlurm,
                 {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NODELIST", "h1"}, {"SLURM_STEP_TASKS_PER_NODE", "4"}}))
          .hosts,
      1);
}

TEST(Surroundings, RefuseAStepWithSeveralTasksOnANode) {
  for (const char* tasks : {"2(x3)", "2,1(x2)", "4"}) {
    EXPECT_THAT(unsupported(with(kStepOfSlurm, {{"SLURM_STEP_TASKS_PER_NODE", tasks}})),
                HasSubstr("--ntasks-per-node=1"));
  }
}

TEST(Surroundings, RefuseAStepWhoseListHasOtherNodesThanItsNumber) {
  EXPECT_THAT(complaint(with(kStepOfSlurm, {{"SLURM_STEP_NODELIST", "h[1-4]"}})), HasSubstr("with 4 nodes"));
  EXPECT_THAT(complaint(with(kStepOfSlurm, {{"SLURM_STEP_NODELIST", "h["}})), HasSubstr("not a list of nodes"));
}

TEST(Surroundings, ComeFromOpenMpi) {
  const Surroundings host = found({{"OMPI_COMM_WORLD_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                                   {"MASTER_ADDR", "a"}});

  EXPECT_EQ(host.hosts, 2);
  EXPECT_EQ(host.host, 1);
  EXPECT_EQ(host.head, (HostAddress{"a", 29400}));
}

TEST(Surroundings, RefuseSeveralProcessesOfOpenMpiOnAHost) {
  EXPECT_THAT(
      unsupported({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
      HasSubstr("mpirun started 2 processes on this host"));
}

TEST(Surroundings, ComeFromAnIndexedJob) {
  const Surroundings host =
      found({{"JOB_COMPLETION_INDEX", "1"}, {"HOLDFAST_NNODES", "2"}, {"HOLDFAST_HEAD", "train-0.train"}});

  EXPECT_EQ(host.host, 1);
  EXPECT_EQ(host.head, (HostAddress{"train-0.train", 29400}));
}

TEST(Surroundings, ComeFromALauncherOfOneProcessOnEachHost) {
  const Surroundings host = found(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}});

  EXPECT_EQ(host.hosts, 2);
  EXPECT_EQ(host.host, 1);
  EXPECT_EQ(host.head, (HostAddress{"a", 29500}));
}

TEST(Surroundings, RefuseToBeOneOfSeveralRanksOfAHost) {
  EXPECT_THAT(unsupported({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), HasSubstr("nothing says how many"));
  EXPECT_THAT(unsupported({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}}),
              HasSubstr("started 2 processes on this host"));
}

TEST(Surroundings, TakeWhatOptionsSayBeforeAllElse) {
  const Surroundings host = found(with(kStepOfSlurm, kTorchrun), {.hosts = 4, .host = 2, .head = "b"});

  EXPECT_EQ(host.hosts, 4);
  EXPECT_EQ(host.host, 2);
  EXPECT_EQ(host.head, (HostAddress{"b", 29400}));
}

TEST(Surroundings, TakeWhatTorchrunSaysBeforeSlurm) {
  EXPECT_EQ(found(with(kStepOfSlurm, kTorchrun)).hosts, 2);
}

TEST(Surroundings, TakeEachValueFromTheFirstThatHasIt) {
  const Surroundings host = found(kStepOfSlurm, {.head = "h1-ib:1"});

  EXPECT_EQ(host.hosts, 3);
  EXPECT_EQ(host.host, 1);
  EXPECT_EQ(host.head, (HostAddress{"h1-ib", 1}));
}

TEST(Surroundings, AskNoLauncherOnceOptionsSayAll) {
  const HostOptions all{.hosts = 2, .host = 0, .head = "a"};

  EXPECT_EQ(found(with(kStepOfSlurm, {{"SLURM_STEP_NODELIST", "h["}}), all).hosts, 2);
  EXPECT_EQ(found({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}}, all).hosts, 2);
  EXPECT_EQ(found({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}}, {.hosts = 1}).hosts, 1);
}

TEST(Surroundings, SayWhatIsMissing) {
  EXPECT_EQ(complaint({}, {.hosts = 2, .head = "a"}),
            "--nnodes says that the run has 2 hosts, and nothing says which of them this one is; give --node-rank "
            "or HOLDFAST_NODE_RANK, from 0 to 1");
  EXPECT_EQ(complaint({}, {.hosts = 2, .host = 0}),
            "--nnodes says that the run has 2 hosts, and nothing says where the first of them is; give --head "
            "or HOLDFAST_HEAD, HOST:PORT with the address of the host whose number is 0");
  EXPECT_THAT(complaint({}, {.host = 0}), HasSubstr("--node-rank is given, but not the number of hosts"));
  EXPECT_THAT(complaint({}, {.head = "a"}), HasSubstr("--head is given, but not the number of hosts"));
}

// Each host would train by itself.
TEST(Surroundings, MissTheNumberOfHostsWhereTheUserHasSaidWhichOneThisIs) {
  EXPECT_THAT(complaint({{"HOLDFAST_NODE_RANK", "1"}}, {}),
              HasSubstr("HOLDFAST_NODE_RANK is given, but not the number"));
  EXPECT_THAT(complaint({{"HOLDFAST_HEAD", "a:1"}}, {}), HasSubstr("give it with HOLDFAST_NNODES or --nnodes"));
  EXPECT_EQ(found({{"HOLDFAST_NODE_RANK", "1"}, {"HOLDFAST_NNODES", "1"}}, {}).hosts, 1);
  EXPECT_EQ(found({{"JOB_COMPLETION_INDEX", "1"}, {"MASTER_ADDR", "a"}}, {}).hosts, 1);
}

TEST(Surroundings, RefuseNumbersThatCannotBe) {
  EXPECT_THAT(complaint({}, {.hosts = 0}), HasSubstr("--nnodes is 0; it must be from 1 to 512"));
  EXPECT_THAT(complaint({}, {.hosts = 513, .host = 0, .head = "a"}), HasSubstr("--nnodes is 513"));
  EXPECT_THAT(complaint({}, {.hosts = 2, .host = 2, .head = "a"}),
              HasSubstr("--node-rank is 2, but the run has 2 hosts by --nnodes; it must be from 0 to 1"));
  EXPECT_THAT(complaint({}, {.hosts = 2, .host = -1, .head = "a"}), HasSubstr("--node-rank is -1"));
  EXPECT_THAT(complaint({}, {.hosts = 1, .host = 1}), HasSubstr("single host"));
  EXPECT_THAT(complaint({{"PET_NNODES", "two"}}), HasSubstr("PET_NNODES=two"));
  EXPECT_THAT(complaint({{"PET_NNODES", "2"}, {"PET_NODE_RANK", "5"}, {"PET_MASTER_ADDR", "a"}}),
              HasSubstr("PET_NODE_RANK is 5"));
}

TEST(Surroundings, SayWhatNamedTheNumberOfHosts) {
  EXPECT_EQ(found({}).hosts_by, "");
  EXPECT_EQ(found(kStepOfSlurm).hosts_by, "SLURM_STEP_NUM_NODES");
  EXPECT_EQ(found(kTorchrun, {.hosts = 1}).hosts_by, "--nnodes");
}

TEST(Surroundings, NameTheFileOfTheSecret) {
  const Variables with_secret = with(kStepOfSlurm, {{"HOLDFAST_SECRET_FILE", "/run/secrets/a"}});

  EXPECT_EQ(found(with_secret).secret_file, "/run/secrets/a");
  EXPECT_EQ(found(with_secret, {.secret_file = "/home/me/b"}).secret_file, "/home/me/b");
  EXPECT_EQ(found(with_secret, {.hosts = 2, .host = 0, .head = "a"}).secret_file, "/run/secrets/a");
  EXPECT_EQ(found(kStepOfSlurm).secret_file, "");
  EXPECT_THAT(complaint({}, {.secret_file = "b"}), HasSubstr("--secret is given, but not the number of hosts"));
}

TEST(Surroundings, HaveNoSecretUnlessOneIsNamed) {
  EXPECT_EQ(complaint_about([] { secret_of(found(kStepOfSlurm)); }),
            "the run has 3 hosts by SLURM_STEP_NUM_NODES, and they share no secret, without which nothing listens; "
            "give --secret FILE or HOLDFAST_SECRET_FILE, a copy of the same file on each host");
}

TEST(Surroundings, SayWhetherEachHostHasARunDirectoryOfItsOwn) {
  const char* const variable = "HOLDFAST_SEPARATE_RUN_DIRS";

  EXPECT_FALSE(found(kStepOfSlurm).has_separate_folders);
  EXPECT_TRUE(found(kStepOfSlurm, {.has_separate_folders = true}).has_separate_folders);
  EXPECT_TRUE(found(with(kStepOfSlurm, {{variable, "1"}})).has_separate_folders);
  EXPECT_FALSE(found(with(kStepOfSlurm, {{variable, "0"}})).has_separate_folders);
  EXPECT_THAT(complaint(with(kStepOfSlurm, {{variable, "yes"}})), HasSubstr("HOLDFAST_SEPARATE_RUN_DIRS=yes"));
}

TEST(Surroundings, RefuseAddressesThatCannotBe) {
  EXPECT_THAT(complaint({}, {.hosts = 2, .host = 1, .head = "a b"}), HasSubstr("--head is \"a b\""));
  EXPECT_THAT(complaint(with(kTorchrun, {{"PET_MASTER_PORT", "0"}})), HasSubstr("PET_MASTER_PORT=0"));
}

}  // namespace
}  // namespace holdfast::recovery
