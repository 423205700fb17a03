// What TensorBoard's projector reads of tables and labels. Its own code reads them in tests/interop/logging_test.py.

#include "callbacks/embedding_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "support/disks/memory_file_system.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

WeightArray table(const std::string& layer, std::vector<float> values, std::int64_t columns) {
  const auto rows = static_cast<std::int64_t>(values.size()) / columns;
  return {.name = "model/" + layer + "/embeddings", .shape = Shape{rows, columns}, .values = std::move(values)};
}

std::string written(MemoryFileSystem& files, const std::string& name) {
  return read_text_file(files, "/logs/train/" + name);
}

}  // namespace

TEST(EmbeddingTables, AreRowsOfNumbersThatAreReadAsTheSame) {
  MemoryFileSystem files;
  const float tiny = std::numeric_limits<float>::denorm_min();

  write_embedding_tables(files, "/logs/train", {table("words", {0.1F, -2, 1e30F, tiny}, 2)}, {});

  EXPECT_EQ(written(files, "embeddings_0.tsv"), "0.1\t-2\n1e+30\t1e-45\n");
  EXPECT_EQ(written(files, "projector_config.pbtxt"),
            "embeddings {\n  tensor_name: \"words/embeddings\"\n  tensor_shape: 2\n  tensor_shape: 2\n"
            "  tensor_path: \"embeddings_0.tsv\"\n}\n");
}

TEST(EmbeddingTables, HaveTheirOwnFilesAndLabels) {
  MemoryFileSystem files;
  const std::vector<WeightArray> weights = {table("encoder/words", {1, 2}, 1),
                                            {.name = "model/dense/kernel", .shape = Shape{1, 1}, .values = {1}},
                                            {.name = "model/odd/embeddings", .shape = Shape{2}, .values = {1, 2}},
                                            table("letters", {3, 4, 5, 6}, 1)};

  write_embedding_tables(files, "/logs/train", weights, {{"letters", {"a", " ", "\t\n", ""}}});

  EXPECT_EQ(written(files, "embeddings_1.tsv"), "3\n4\n5\n6\n");
  // A blank line would shift the labels of all rows after it.
  EXPECT_EQ(written(files, "embeddings_1_labels.tsv"), "a\n\" \"\n\\t\\n\n\"\"\n");
  const std::string configuration = written(files, "projector_config.pbtxt");
  EXPECT_THAT(configuration, HasSubstr("tensor_name: \"encoder/words/embeddings\""));
  EXPECT_THAT(configuration,
              HasSubstr("tensor_path: \"embeddings_1.tsv\"\n  metadata_path: \"embeddings_1_labels.tsv\""));
  EXPECT_FALSE(files.exists("/logs/train/embeddings_2.tsv"));
  EXPECT_FALSE(files.exists("/logs/train/embeddings_0_labels.tsv"));
}

TEST(EmbeddingTables, WriteNothingForAModelWithoutOne) {
  MemoryFileSystem files;

  write_embedding_tables(files, "/logs/train", {{.name = "model/dense/kernel", .shape = Shape{1, 1}, .values = {1}}},
                         {});

  EXPECT_FALSE(files.exists("/logs/train"));
}

TEST(EmbeddingTables, RefuseLabelsThatDoNotFit) {
  const std::vector<WeightArray> weights = {table("words", {1, 2, 3, 4}, 2)};

  EXPECT_THAT(sentence_thrown_by([&] {
                check_embedding_labels(weights, {{"letters", {"a", "b"}}});
              }),
              HasSubstr("labels for \"letters\", and the model has tables of embeddings in \"words\""));
  EXPECT_THAT(sentence_thrown_by([&] {
                check_embedding_labels(weights, {{"words", {"a"}}});
              }),
              HasSubstr("1 labels for the 2 rows of \"words\""));
  EXPECT_THAT(sentence_thrown_by([&] {
                check_embedding_labels({}, {{"words", {"a"}}});
              }),
              HasSubstr("no layer with a table of embeddings"));
  EXPECT_NO_THROW(check_embedding_labels(weights, {{"words", {"a", "b"}}}));
}

}  // namespace holdfast
