#include "train/context/array_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast {
namespace {

using testing::ElementsAre;

std::vector<std::size_t> places_of(const std::vector<std::string>& of_sample,
                                   const std::vector<std::string>& of_model) {
  std::vector<ArraySpec> sample;
  std::vector<ModelArray> model;
  for (const std::string& name : of_sample) sample.push_back({.name = name, .shape = {}});
  for (const std::string& name : of_model) model.push_back({.name = name, .spec = {}});
  std::vector<std::size_t> places = {7, 7, 7};
  find_array_places(sample, model, places);
  return places;
}

TEST(ArrayPlaces, AreThoseOfTheNamesOfTheModel) {
  EXPECT_THAT(places_of({"b", "c", "a"}, {"a", "b", "c"}), ElementsAre(2, 0, 1));
  EXPECT_THAT(places_of({"a"}, {"a"}), ElementsAre(0));
}

TEST(ArrayPlaces, AreInOrderUnlessAllNamesAreThere) {
  EXPECT_THAT(places_of({"b", "", "a"}, {"a", "b", "c"}), ElementsAre(0, 1, 2));
  EXPECT_THAT(places_of({"b", "d", "a"}, {"a", "b", "c"}), ElementsAre(0, 1, 2));
  EXPECT_THAT(places_of({"b", "a", "c"}, {"a", "b"}), ElementsAre(0, 1));
  EXPECT_THAT(places_of({"x"}, {"input"}), ElementsAre(0));
}

}  // namespace
}  // namespace holdfast
