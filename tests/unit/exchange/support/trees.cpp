// Trees for tests, their comparison, and random damage to files. Damage avoids zero bytes, which are mostly padding.

#include "unit/exchange/support/trees.h"

#include <algorithm>
#include <array>

#include "holdfast/base/shape_bytes.h"
#include "support/folders.h"

namespace holdfast::format::testing {
namespace {

bool are_equal_values(const Hdf5Attribute& a, const Hdf5Attribute& b) {
  if (a.value.index() != b.value.index()) return false;
  const auto* numbers = std::get_if<NamedArray>(&a.value);
  if (numbers == nullptr) {
    return a.value.index() == 0 ? std::get<0>(a.value) == std::get<0>(b.value)
                                : std::get<1>(a.value) == std::get<1>(b.value);
  }
  const auto& other = std::get<NamedArray>(b.value);
  return numbers->dtype == other.dtype && numbers->shape == other.shape && numbers->bytes == other.bytes;
}

::testing::AssertionResult are_equal(const std::string& owner, const std::vector<Hdf5Attribute>& a,
                                     const std::vector<Hdf5Attribute>& b) {
  if (a.size() != b.size()) {
    return ::testing::AssertionFailure() << owner << " has " << a.size() << " and " << b.size() << " attributes";
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || !are_equal_values(a[i], b[i])) {
      return ::testing::AssertionFailure() << "attribute " << a[i].name << " of " << owner << " differs";
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

NamedArray make_numbers(const std::string& name, DType dtype, std::vector<std::uint64_t> shape) {
  std::uint64_t bytes = 0;
  EXPECT_TRUE(multiply_shape(shape, size_bytes(dtype), bytes));
  NamedArray array{name, dtype, std::move(shape), std::vector<std::byte>(bytes)};
  std::uint32_t state = static_cast<std::uint32_t>(std::hash<std::string>()(name)) | 1U;
  for (std::byte& byte : array.bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
    if (dtype == DType::boolean) byte &= std::byte{1};
  }
  return array;
}

Hdf5Tree every_kind_of_content() {
  Hdf5Tree tree;
  tree.groups.push_back({"",
                         {{"keras_version", std::string("3.16.0")},
                          {"layer_names", std::vector<std::string>{"dense", "", "größe"}},
                          {"none", std::vector<std::string>{}},
                          {"nothing", std::string()}}});
  tree.groups.push_back({"layers", {}});
  tree.groups.push_back({"layers/schicht_\xC3\xBC", {{"name", std::string("\xE5\xB1\xA4")}}});
  constexpr std::array kAll = {DType::bf16, DType::boolean, DType::f16, DType::f32, DType::f64, DType::i16, DType::i32,
                               DType::i64,  DType::i8,      DType::u16, DType::u32, DType::u64, DType::u8};
  for (const DType dtype : kAll) {
    const std::string type_name(name(dtype));
    tree.datasets.push_back({make_numbers("layers/" + type_name, dtype, {7, 5}), {}});
    if (dtype == DType::bf16) continue;  // an attribute cannot be bf16
    tree.groups[2].attributes.push_back({"numbers_" + type_name, make_numbers("", dtype, {3})});
  }
  tree.datasets.push_back({make_numbers("nothing", DType::f32, {3, 0, 2}), {}});
  tree.datasets.push_back({make_numbers("scalar", DType::i64, {}),
                           {{"axes", make_numbers("", DType::u8, {2, 2})}, {"unit", std::string("m")}}});
  tree.texts.push_back({"layers/no_text", "", {}});
  tree.texts.push_back({"text", "gr\xC3\xB6\xC3\x9F\x65", {{"axes", make_numbers("", DType::u8, {2})}}});
  std::sort(tree.groups[2].attributes.begin(), tree.groups[2].attributes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return tree;
}

::testing::AssertionResult are_equal(const Hdf5Tree& a, const Hdf5Tree& b) {
  const auto counts = [](const Hdf5Tree& tree) {
    return std::vector<std::size_t>{tree.groups.size(), tree.datasets.size(), tree.texts.size()};
  };
  if (counts(a) != counts(b)) {
    return ::testing::AssertionFailure() << "groups, datasets and texts: " << ::testing::PrintToString(counts(a))
                                         << " and " << ::testing::PrintToString(counts(b));
  }
  for (std::size_t i = 0; i < a.groups.size(); ++i) {
    if (a.groups[i].path != b.groups[i].path) {
      return ::testing::AssertionFailure() << "group " << a.groups[i].path << " and " << b.groups[i].path;
    }
    const auto result = are_equal("group " + a.groups[i].path, a.groups[i].attributes, b.groups[i].attributes);
    if (!result) return result;
  }
  for (std::size_t i = 0; i < a.datasets.size(); ++i) {
    const NamedArray& left = a.datasets[i].array;
    const NamedArray& right = b.datasets[i].array;
    const bool are_same = left.name == right.name && left.dtype == right.dtype && left.shape == right.shape;
    if (!are_same || left.bytes != right.bytes) {
      return ::testing::AssertionFailure() << "dataset " << left.name << " differs from " << right.name;
    }
    const auto result = are_equal("dataset " + left.name, a.datasets[i].attributes, b.datasets[i].attributes);
    if (!result) return result;
  }
  for (std::size_t i = 0; i < a.texts.size(); ++i) {
    if (a.texts[i].path != b.texts[i].path || a.texts[i].text != b.texts[i].text) {
      return ::testing::AssertionFailure() << "text " << a.texts[i].path << " differs from " << b.texts[i].path;
    }
    const auto result = are_equal("text " + a.texts[i].path, a.texts[i].attributes, b.texts[i].attributes);
    if (!result) return result;
  }
  return ::testing::AssertionSuccess();
}

std::string path_of(const std::string& name) {
  return source_folder() + "/tests/unit/exchange/foreign_hdf5/files/" + name;
}

std::vector<std::byte> damaged(std::vector<std::byte> bytes, std::mt19937_64& random) {
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  // Zeros are mostly padding: aim at bytes that mean something.
  const auto position = [&] {
    std::size_t found = below(bytes.size());
    for (int i = 0; i < 50 && bytes[found] == std::byte{0}; ++i) found = below(bytes.size());
    return found;
  };
  const std::size_t kind = below(10);
  if (kind == 0) {
    bytes.resize(1 + below(bytes.size()));
  } else if (kind == 1) {
    const std::size_t begin = position();
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), std::min(1 + below(64), bytes.size() - begin),
                std::byte{0});
  } else {
    constexpr std::byte kValues[] = {std::byte{0}, std::byte{1}, std::byte{0x7F}, std::byte{0x80}, std::byte{0xFF}};
    for (std::size_t i = 0; i <= below(4); ++i) {
      bytes[position()] = below(2) == 0 ? kValues[below(std::size(kValues))] : static_cast<std::byte>(below(256));
    }
  }
  return bytes;
}

}  // namespace holdfast::format::testing
