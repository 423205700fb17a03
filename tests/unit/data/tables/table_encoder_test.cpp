#include "holdfast/data/table_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/data/csv.h"
#include "unit/data/support/idx_writer.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;
using Texts = std::vector<std::string>;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

template <typename Function>
void expect_refused_encoder(const Function& function, const std::vector<std::string>& words,
                            ErrorCode code = ErrorCode::invalid_argument) {
  try {
    function();
    ADD_FAILURE() << "nothing was wrong; expected: " << words[0];
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
  }
}

// Two areas with mean 3 and deviation 1 around them, three towns, and rooms with an empty cell.
Table houses() {
  return Table({{"area", Reals{2, 4, 2, 4}},
                {"town", Texts{"Unna", "Bonn", "Unna", "Köln"}},
                {"rooms", Reals{1, kMissing, 3, 2}},
                {"floor", Integers{2, 10, 2, -1}},
                {"price", Reals{100, 200, 300, 400}}});
}

TableEncoderOptions options_for(std::vector<std::string> features) {
  return {.targets = {"price"}, .features = std::move(features)};
}

TEST(TableEncoder, NormalizesNumbersByTheRowsForTraining) {
  const TableEncoder encoder = TableEncoder::fit(houses(), options_for({"area"}));
  const Table other({{"area", Reals{3, 5}}, {"price", Reals{1, 2}}});

  EXPECT_THAT(encoder.features(houses()).values(), ElementsAre(-1, 1, -1, 1));
  EXPECT_THAT(encoder.features(other).values(), ElementsAre(0, 2));
}

TEST(TableEncoder, LeavesNumbersAsTheyAreIfAsked) {
  TableEncoderOptions options = options_for({"area"});
  options.normalize = false;

  EXPECT_THAT(TableEncoder::fit(houses(), options).features(houses()).values(), ElementsAre(2, 4, 2, 4));
}

// The deviation of years is far below their size: a difference of sums of squares would have lost it.
TEST(TableEncoder, NormalizesNumbersFarFromZero) {
  const Table years({{"year", Reals{1e9 + 1, 1e9 + 2, 1e9 + 3}}, {"price", Reals{1, 2, 3}}});
  const float step = static_cast<float>(1 / std::sqrt(2.0 / 3));

  EXPECT_THAT(TableEncoder::fit(years, options_for({"year"})).features(years).values(), ElementsAre(-step, 0, step));
}

TEST(TableEncoder, MakesZerosOfAConstantColumn) {
  const Table constant({{"a", Reals{7, 7}}, {"price", Reals{1, 2}}});
  const Table other({{"a", Reals{9}}, {"price", Reals{1}}});
  const TableEncoder encoder = TableEncoder::fit(constant, {.targets = {"price"}});

  EXPECT_THAT(encoder.features(constant).values(), ElementsAre(0, 0));
  EXPECT_THAT(encoder.features(other).values(), ElementsAre(2));
}

TEST(TableEncoder, GivesEachCategoryANumber) {
  const TableEncoder encoder = TableEncoder::fit(houses(), options_for({"town", "area"}));

  EXPECT_EQ(encoder.features(), 4);
  EXPECT_THAT(encoder.feature_names(), ElementsAre("town=Bonn", "town=Köln", "town=Unna", "area"));
  EXPECT_THAT(encoder.features(houses()).sample(0), ElementsAre(0, 0, 1, -1));
  EXPECT_THAT(encoder.features(houses()).sample(1), ElementsAre(1, 0, 0, 1));
}

TEST(TableEncoder, TakesIntegersForCategoriesWhereItIsTold) {
  TableEncoderOptions options = options_for({"floor"});
  options.categories = {"floor"};

  EXPECT_THAT(TableEncoder::fit(houses(), options).categories("floor"), ElementsAre("-1", "2", "10"));
}

TEST(TableEncoder, TakesAllOtherColumnsForFeaturesByDefault) {
  TableEncoderOptions options = {.targets = {"price"}, .fill = {{"rooms", 0}}};

  EXPECT_THAT(TableEncoder::fit(houses(), options).feature_names(),
              ElementsAre("area", "town=Bonn", "town=Köln", "town=Unna", "rooms", "floor"));
}

TEST(TableEncoder, FillsCellsWithoutAValue) {
  TableEncoderOptions options = options_for({"rooms"});
  options.normalize = false;
  options.fill = {{"rooms", Fill::mean()}};
  EXPECT_THAT(TableEncoder::fit(houses(), options).features(houses()).values(), ElementsAre(1, 2, 3, 2));

  options.fill = {{"rooms", 0}};
  EXPECT_THAT(TableEncoder::fit(houses(), options).features(houses()).values(), ElementsAre(1, 0, 3, 2));

  const Table towns({{"town", Texts{"Bonn", ""}}, {"price", Reals{1, 2}}});
  const TableEncoder encoder = TableEncoder::fit(towns, {.targets = {"price"}, .fill = {{"town", "unknown"}}});
  EXPECT_THAT(encoder.categories("town"), ElementsAre("Bonn", "unknown"));
  EXPECT_THAT(encoder.features(towns).sample(1), ElementsAre(0, 1));
}

TEST(TableEncoder, FillsWithTheMeanOfTrainingAlone) {
  TableEncoderOptions options = options_for({"rooms"});
  options.fill = {{"rooms", Fill::mean()}};
  const Table other({{"rooms", Reals{kMissing, 100}}, {"price", Reals{1, 2}}});

  EXPECT_EQ(TableEncoder::fit(houses(), options).features(other).values()[0], 0);
}

TEST(TableEncoder, MakesSamplesOfRows) {
  const Dataset data = TableEncoder::fit(houses(), options_for({"area"})).dataset(houses());

  ASSERT_EQ(data.size(), 4);
  EXPECT_EQ(data.feature_shape(), Shape{1});
  EXPECT_EQ(data.target_shape(), Shape{1});
  std::vector<float> features(1);
  std::vector<float> targets(1);
  data.load(0, 0, 2, {features, targets});
  EXPECT_EQ(features[0], -1);
  EXPECT_EQ(targets[0], 300);
}

TEST(TableEncoder, DescribesEqualDataAlikeAndOtherDataOtherwise) {
  const auto description = [](const Table& table) {
    return TableEncoder::fit(table, options_for({"area"})).dataset(table).description();
  };

  EXPECT_EQ(description(houses()), description(houses()));
  EXPECT_NE(description(houses()), description(houses().take(3)));
}

TEST(TableEncoder, CountsClassesOfATargetOfCategories) {
  const TableEncoder encoder = TableEncoder::fit(houses(), {.targets = {"town"}, .features = {"area"}});
  const Dataset data = encoder.dataset(houses());

  EXPECT_EQ(data.target_shape(), Shape{});
  EXPECT_THAT(encoder.categories("town"), ElementsAre("Bonn", "Köln", "Unna"));
  std::vector<float> features(1);
  std::vector<float> targets(1);
  data.load(0, 0, 0, {features, targets});
  EXPECT_EQ(targets[0], 2);
}

TEST(TableEncoder, MakesInputsOfIds) {
  TableEncoderOptions options = options_for({"town", "area"});
  options.ids = {"town"};
  const TableEncoder encoder = TableEncoder::fit(houses(), options);
  const Dataset data = encoder.dataset(houses());

  ASSERT_EQ(data.inputs().size(), 2U);
  EXPECT_EQ(data.inputs()[0], (ArraySpec{"features", {1}, DType::f32}));
  EXPECT_EQ(data.inputs()[1], (ArraySpec{"town", {1}, DType::i32}));
  EXPECT_EQ(encoder.ids("town"), 3);
  EXPECT_THAT(encoder.inputs(houses())[1].elements<std::int32_t>(), ElementsAre(2, 0, 2, 1));
  expect_refused_encoder([&] { encoder.features(houses()); }, {"several inputs", "inputs()"});
}

TEST(TableEncoder, TreatsUnknownCategoriesAsItIsTold) {
  const Table other({{"town", Texts{"Unna", "Hamm"}}, {"price", Reals{1, 2}}});
  TableEncoderOptions options = options_for({"town"});
  expect_refused_encoder([&] { TableEncoder::fit(houses(), options).features(other); },
                         {"row 1 of the table", "column \"town\"", "category \"Hamm\"", "UnknownCategory::other"});

  options.unknown = UnknownCategory::other;
  EXPECT_THAT(TableEncoder::fit(houses(), options).features(other).sample(1), ElementsAre(0, 0, 0));

  options.ids = {"town"};
  EXPECT_EQ(TableEncoder::fit(houses(), options).ids("town"), 4);
  EXPECT_THAT(TableEncoder::fit(houses(), options).inputs(other)[0].elements<std::int32_t>(), ElementsAre(3, 0));
}

TEST(TableEncoder, TurnsOutputsBackIntoTheUnitsOfTheTargets) {
  TableEncoderOptions options = options_for({"area"});
  options.normalize_targets = true;
  const TableEncoder encoder = TableEncoder::fit(houses(), options);
  std::vector<float> features(1);
  std::vector<float> targets(1);
  encoder.dataset(houses()).load(0, 0, 3, {features, targets});

  EXPECT_NEAR(targets[0], 150 / std::sqrt(12500.0), 1e-6);
  // A float has 24 bits, so an error of a few units of 2^-24 in 400.
  EXPECT_NEAR(encoder.to_target_units(Tensor(Shape{1, 1}, {targets[0]})).values()[0], 400, 1e-4);
  expect_refused_encoder([&] { encoder.to_target_units(Tensor(Shape{2})); }, {"[samples, 1], not [2]"});
}

TEST(TableEncoder, ReadsItsTextBackWithTheSameBits) {
  TableEncoderOptions options = {.targets = {"price"},
                                 .ids = {"floor"},
                                 .normalize_targets = true,
                                 .unknown = UnknownCategory::other,
                                 .fill = {{"rooms", Fill::mean()}, {"town", "?"}}};
  const TableEncoder encoder = TableEncoder::fit(houses(), options);
  const TableEncoder again = TableEncoder::from_text(encoder.text());

  EXPECT_EQ(again.text(), encoder.text());
  EXPECT_EQ(again.dataset(houses()).description(), encoder.dataset(houses()).description());
  EXPECT_EQ(again.feature_names(), encoder.feature_names());
}

TEST(TableEncoder, IsSavedAndLoaded) {
  const TemporaryFolder folder;
  const TableEncoder encoder = TableEncoder::fit(houses(), options_for({"area", "town"}));

  encoder.save(folder / "encoder.json");

  EXPECT_EQ(TableEncoder::load(folder / "encoder.json").text(), encoder.text());
  write_plain(folder / "bad", {'{', '}'});
  expect_refused_encoder([&] { TableEncoder::load(folder / "bad"); },
                         {folder / "bad", "not that of a table encoder", "\"format\" is missing"},
                         ErrorCode::invalid_file);
}

TEST(TableEncoder, RefusesTextsThatItDidNotWrite) {
  const std::string whole = TableEncoder::fit(houses(), options_for({"area", "town"})).text();
  const auto expect_damage = [&](const std::string& patch, const std::string& reason) {
    const nlohmann::json changed = nlohmann::json::parse(whole).patch(nlohmann::json::parse(patch));
    expect_refused_encoder([&] { TableEncoder::from_text(changed.dump()); }, {reason}, ErrorCode::invalid_file);
  };

  expect_refused_encoder([] { TableEncoder::from_text("{"); }, {"not JSON"}, ErrorCode::invalid_file);
  expect_refused_encoder([] { TableEncoder::from_text(std::string(5000, '[')); }, {"nested"}, ErrorCode::invalid_file);
  expect_damage(R"([{"op":"replace","path":"/version","value":2}])", "version 2");
  expect_damage(R"([{"op":"replace","path":"/features","value":[]}])", "not a list of one or more");
  expect_damage(R"([{"op":"replace","path":"/features/0/deviation","value":0}])", "not above 0");
  expect_damage(R"([{"op":"replace","path":"/features/0/mean","value":"x"}])", "\"mean\" is not a finite number");
  expect_damage(R"([{"op":"replace","path":"/features/0/kind","value":"x"}])", "kind \"x\" is unknown");
  expect_damage(R"([{"op":"add","path":"/features/1/categories/-","value":"Bonn"}])", "\"Bonn\" twice");
  expect_damage(R"([{"op":"add","path":"/features/1/fill","value":"x"}])", "not one of its categories");
  expect_damage(R"([{"op":"replace","path":"/targets/0/column","value":"area"}])", "\"area\" is there twice");
}

TEST(TableEncoder, RefusesNamesThatAreNotColumns) {
  const auto expect_refused = [](const TableEncoderOptions& options, const std::vector<std::string>& words) {
    expect_refused_encoder([&] { TableEncoder::fit(houses(), options); }, words);
  };

  expect_refused({.targets = {"prize"}}, {"\"prize\"", "nearest name is \"price\""});
  expect_refused({.targets = {"price"}, .features = {"aera"}}, {"\"aera\"", "\"area\""});
  expect_refused({.targets = {"price"}, .ids = {"twon"}}, {"`ids` names \"twon\"", "\"town\""});
  expect_refused({.targets = {"price"}, .categories = {"flor"}}, {"`categories` names \"flor\"", "\"floor\""});
  expect_refused({.targets = {"price"}, .fill = {{"roms", 0}}}, {"`fill` names \"roms\"", "\"rooms\""});
  expect_refused({.targets = {"price"}, .features = {"area", "price"}}, {"\"price\" is named twice"});
  expect_refused({.targets = {}}, {"at least one column in `targets`"});
}

TEST(TableEncoder, RefusesColumnsThatDoNotServe) {
  const auto expect_refused = [](const Table& table, const TableEncoderOptions& options,
                                 const std::vector<std::string>& words) {
    expect_refused_encoder([&] { TableEncoder::fit(table, options).dataset(table); }, words);
  };
  const Table empty({{"a", Reals{kMissing, kMissing}}, {"b", Texts{"", ""}}, {"price", Reals{1, 2}}});

  expect_refused(houses().take(0), {.targets = {"price"}}, {"the table has no rows"});
  expect_refused(empty, options_for({"a"}), {"column \"a\" has no value in any of the 2 rows"});
  expect_refused(empty, options_for({"b"}), {"column \"b\" has no value"});
  expect_refused(houses(), options_for({"rooms"}), {"row 1 of the table", "column \"rooms\" has no value", "`fill`"});
  expect_refused(houses(), {.targets = {"price"}, .features = {"area"}, .categories = {"area"}},
                 {"\"area\" is one of reals"});
  expect_refused(houses(), {.targets = {"price", "town"}, .features = {"area"}}, {"\"town\"", "the one target"});
  expect_refused(houses(), {.targets = {"price"}, .features = {"area"}, .fill = {{"area", "x"}}}, {"one of numbers"});
  expect_refused(houses(), {.targets = {"price"}, .features = {"town"}, .fill = {{"town", 1}}}, {"one of categories"});
  expect_refused(houses(), {.targets = {"price"}, .features = {"town"}, .max_one_hot = 2},
                 {"3 categories, more than max_one_hot (2)"});
  expect_refused(Table({{"a", Reals{1e300}}, {"price", Reals{1}}}),
                 {.targets = {"price"}, .features = {"a"}, .normalize = false}, {"row 0", "32-bit float"});
}

// A letter in a column of numbers makes it text. The message leads to that letter.
TEST(TableEncoder, NamesTheLineThatMakesAColumnText) {
  const TemporaryFolder folder;
  const std::string content = "area,price\n1,2\n2O,3\n";
  write_plain(folder / "a.csv", Bytes(content.begin(), content.end()));
  const Table typed({{"area", Reals{1, 2}}, {"price", Reals{1, 2}}});
  const TableEncoder encoder = TableEncoder::fit(typed, {.targets = {"price"}});

  expect_refused_encoder([&] { encoder.features(read_csv(folder / "a.csv")); },
                         {"column \"area\" is used as a number", "a.csv\", line 3 holds \"2O\""});
}

namespace {

// A table of as many rows, with numbers in "area" and "price" but for what is given, by row.
Table of_file_with(std::int64_t rows, const std::map<std::int64_t, std::string>& areas,
                   const std::map<std::int64_t, std::string>& prices = {}, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  std::string content = "area,price\n";
  for (std::int64_t row = 0; row < rows; ++row) {
    content += areas.contains(row) ? areas.at(row) : std::to_string(20 + row) + ".5";
    content += ',';
    content += prices.contains(row) ? prices.at(row) : std::to_string(100 * row);
    content += '\n';
  }
  write_plain(folder / "houses.csv", Bytes(content.begin(), content.end()));
  return read_csv(folder / "houses.csv", options);
}

}  // namespace

// One wrong cell made 60 features, one for each number.
TEST(TableEncoder, RefusesAColumnThatIsTextBecauseOfAFewCells) {
  const Table table = of_file_with(60, {{40, "6o.5"}, {41, "?"}});

  expect_refused_encoder(
      [&] { TableEncoder::fit(table, {.targets = {"price"}}); },
      {"column \"area\" is text", "houses.csv\", line 42 holds \"6o.5\"", "58 of its 60 values are numbers",
       "correct the cell", "CsvOptions::missing", "`categories`"});
  // Also where no row of this part has such a cell.
  expect_refused_encoder([&] { TableEncoder::fit(table.take(30), {.targets = {"price"}}); }, {"line 42"});
}

TEST(TableEncoder, RefusesATargetThatIsTextBecauseOfAFewCells) {
  const Table table = of_file_with(60, {}, {{3, "12O"}});

  expect_refused_encoder([&] { TableEncoder::fit(table, {.targets = {"price"}}); },
                         {"column \"price\" is text", "line 5 holds \"12O\"", "59 of its 60 values"});
  // A column of fewer than ten values may be one of categories, which then cannot be normalized.
  expect_refused_encoder(
      [&] {
        TableEncoder::fit(of_file_with(6, {}, {{3, "ten"}}), {.targets = {"price"}, .normalize_targets = true});
      },
      {"column \"price\" is one of categories", "line 5 holds \"ten\"", "CsvOptions::missing"});
}

// A word for no value in each seventh row made a category of each number, without a message.
TEST(TableEncoder, TakesCellsForMistakesIfHalfOfTheirColumnIsNumbers) {
  const auto is_refused = [](std::int64_t rows, const std::map<std::int64_t, std::string>& areas) {
    try {
      TableEncoder::fit(of_file_with(rows, areas), {.targets = {"price"}});
    } catch (const Error&) {
      return true;
    }
    return false;
  };

  EXPECT_TRUE(is_refused(10, {{0, "a"}}));
  EXPECT_FALSE(is_refused(9, {{0, "a"}}));
  EXPECT_TRUE(is_refused(11, {{0, "a"}, {1, "b"}, {2, "c"}, {3, "d"}, {4, "e"}}));
  EXPECT_FALSE(is_refused(11, {{0, "a"}, {1, "b"}, {2, "c"}, {3, "d"}, {4, "e"}, {5, "f"}}));
  // Cells without a value do not count.
  EXPECT_FALSE(is_refused(12, {{0, "a"}, {3, "NA"}, {4, ""}, {5, ""}}));
}

TEST(TableEncoder, TakesAColumnOfNumbersForCategoriesWhereItIsTold) {
  const std::map<std::int64_t, std::string> areas = {{4, "A7"}};
  const Table found = of_file_with(12, areas);
  const Table declared = of_file_with(12, areas, {}, {.types = {{"area", ColumnType::text}}});

  EXPECT_EQ(TableEncoder::fit(found, {.targets = {"price"}, .categories = {"area"}}).features(), 12);
  EXPECT_EQ(TableEncoder::fit(found, {.targets = {"price"}, .ids = {"area"}}).ids("area"), 12);
  EXPECT_EQ(TableEncoder::fit(declared, {.targets = {"price"}}).features(), 12);
  EXPECT_EQ(
      TableEncoder::fit(of_file_with(12, areas, {}, {.missing = {"A7"}}).without_missing(), {.targets = {"price"}})
          .features(),
      1);
}

// It had no effect, and the model was trained on classes.
TEST(TableEncoder, RefusesToNormalizeATargetOfCategories) {
  const Table table({{"area", Reals{1, 2}}, {"kind", Texts{"a", "b"}}});

  expect_refused_encoder([&] { TableEncoder::fit(table, {.targets = {"kind"}, .normalize_targets = true}); },
                         {"`normalize_targets`", "\"kind\" is one of categories"});
}

TEST(TableEncoder, AppliesToTablesWithoutTargets) {
  const TableEncoder encoder = TableEncoder::fit(houses(), options_for({"area", "town"}));
  const Table asked({{"area", std::vector<std::int64_t>{5}}, {"town", std::vector<std::string>{"Bonn"}}});
  const Tensor features = encoder.features(asked);  // [1, encoder.features()]

  EXPECT_THAT(features.values(), ElementsAre(2, 1, 0, 0));
  expect_refused_encoder([&] { encoder.dataset(asked); }, {"no column \"price\""});
}

}  // namespace
}  // namespace holdfast
