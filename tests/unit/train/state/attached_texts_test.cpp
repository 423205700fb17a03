#include "train/state/attached_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/data/table_encoder.h"
#include "holdfast/train/attached_texts.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using Texts = std::map<std::string, std::string>;

// Trains for an epoch, and saves as `path`.
void train_with_texts(const ThreadRun& run, const Texts& texts, const std::string& path,
                      const std::vector<CallbackHandle>& callbacks = {}) {
  train_on_threads(run, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    for (const auto& [name, text] : texts) trainer.attach(name, text);
    trainer.fit(small_data(20).batch(10), {.callbacks = callbacks});
    if (replica.is_primary()) trainer.save(path);
  });
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST(AttachedTexts, ComeBackByNameFromASavepoint) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  const Table rows({{"area", std::vector<std::int64_t>{5, 7}}, {"price", std::vector<double>{1, 2.5}}});
  const TableEncoder encoder = TableEncoder::fit(rows, {.targets = {"price"}});

  train_with_texts({.replicas = 2}, {{"columns", encoder.text()}, {"classes", "roses\nT\u00fclpen"}}, path);

  EXPECT_EQ(TableEncoder::from_text(attached_text(path, "columns")).text(), encoder.text());
  EXPECT_THAT(attached_texts(path),
              ElementsAre(Pair("classes", "roses\nT\u00fclpen"), Pair("columns", encoder.text())));
  EXPECT_NO_THROW(load_model(path));
}

TEST(AttachedTexts, AreInFilesOfWeightsAlone) {
  const TemporaryFolder folder;
  const ModelCheckpoint weights{{.directory = folder / "weights", .weights_only = true}};

  train_with_texts({}, {{"classes", "a b"}}, folder / "a.h5", {weights});

  const std::vector<std::string> files = savepoint_files(folder / "weights");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(attached_text(folder / ("weights/" + files[0]), "classes"), "a b");
}

TEST(AttachedTexts, LeaveFilesWithoutThemAsTheyAre) {
  const TemporaryFolder folder;
  train_with_texts({}, {}, folder / "a.h5");
  train_with_texts({}, {{"x", "y"}}, folder / "b.h5");

  EXPECT_THAT(attached_texts(folder / "a.h5"), IsEmpty());
  EXPECT_EQ(content_of(folder / "a.h5").find("\"attached\""), std::string::npos);
  EXPECT_NE(content_of(folder / "b.h5").find("\"attached\""), std::string::npos);
}

TEST(AttachedTexts, AreAChoiceOfTheRun) {
  const TemporaryFolder folder;
  const TemporaryFolder directory;
  const ThreadRun run{.run_directory = directory.path()};
  train_with_texts(run, {{"encoder", "one"}}, folder / "a.h5");

  EXPECT_NO_THROW(train_with_texts(run, {{"encoder", "one"}}, folder / "a.h5"));
  EXPECT_THAT(sentence_thrown_by([&] {
                train_with_texts(run, {{"encoder", "two"}}, folder / "a.h5");
              }),
              HasSubstr("the attached text \"encoder\" is another one"));
  EXPECT_THAT(sentence_thrown_by([&] { train_with_texts(run, {}, folder / "a.h5"); }),
              HasSubstr("the text \"encoder\" was attached and is not"));
}

TEST(AttachedTexts, NameThoseThatAreThere) {
  const TemporaryFolder folder;
  train_with_texts({}, {{"left", "1"}, {"right", "2"}}, folder / "a.h5");

  EXPECT_EQ(code_thrown_by([&] { attached_text(folder / "a.h5", "middle"); }), ErrorCode::not_found);
  EXPECT_THAT(sentence_thrown_by([&] { attached_text(folder / "a.h5", "middle"); }),
              HasSubstr("it has \"left\", \"right\""));
}

TEST(AttachedTexts, MayBeListsThatComeBackInTheirOrder) {
  const TemporaryFolder folder;
  const std::vector<std::string> classes = {"tulip", "", "rose, \"wild\"", "T\u00fclpe\n"};
  train_on_threads({}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.attach_list("classes", classes);
    trainer.attach_list("nothing", {});
    trainer.attach("one", "rose");
    trainer.attach("numbers", "[1]");
    EXPECT_EQ(code_thrown_by([&] { trainer.attach_list("bytes", {"\xff"}); }), ErrorCode::invalid_argument);
    trainer.save(folder / "a.h5");
  });

  EXPECT_EQ(attached_list(folder / "a.h5", "classes"), classes);
  EXPECT_THAT(attached_list(folder / "a.h5", "nothing"), IsEmpty());
  for (const char* const name : {"one", "numbers"}) {
    EXPECT_THAT(sentence_thrown_by([&] { attached_list(folder / "a.h5", name); }), HasSubstr("attached_text()"));
  }
  EXPECT_EQ(code_thrown_by([&] { attached_list(folder / "a.h5", "two"); }), ErrorCode::not_found);
}

TEST(AttachedTexts, ComeBeforeTheFirstCall) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  trainer.evaluate(small_data(20).batch(10));

  EXPECT_THAT(sentence_thrown_by([&] { trainer.attach("late", "text"); }), HasSubstr("before the first fit()"));
}

TEST(AttachedTexts, AreTextsOfALimitedSize) {
  const auto refused = [](const Texts& there, const std::string& name, const std::string& text) {
    return code_thrown_by([&] { check_attached(there, name, text); }) == ErrorCode::invalid_argument;
  };
  const std::string large(std::size_t{9} << 20, 'x');

  EXPECT_TRUE(refused({}, "", "x"));
  EXPECT_TRUE(refused({}, "a\nb", "x"));
  EXPECT_TRUE(refused({}, "\xff", "x"));
  EXPECT_TRUE(refused({}, std::string(201, 'a'), "x"));
  EXPECT_TRUE(refused({}, "a", "\xff"));
  EXPECT_TRUE(refused({{"b", large}}, "a", large));
  // It replaces the one of that name.
  EXPECT_NO_THROW(check_attached({{"a", large}}, "a", large));
}

TEST(AttachedTexts, AreRefusedWhereAFileHasOtherThings) {
  for (const char* attached : {"[]", "3", "null", R"({"a": 1})", R"({"a": "b", "c": {}})"}) {
    const nlohmann::json metadata = {{"attached", nlohmann::json::parse(attached)}};
    EXPECT_EQ(code_thrown_by([&] { attached_from(metadata); }), ErrorCode::invalid_file) << attached;
  }
  EXPECT_THAT(attached_from(nlohmann::json::object()), IsEmpty());
}

}  // namespace holdfast
