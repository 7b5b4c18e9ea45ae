// The layout of f32 copies, compared with the set of addresses that the elements of the view have.
#include <tapedeck/kernels/f32_copy.h>

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace tapedeck::testing {
namespace {

View half_view(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  View v;
  v.dtype = DType::bf16;
  v.rank = static_cast<std::int32_t>(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) v.sizes[d] = sizes[d], v.strides[d] = strides[d];
  return v;
}

// The offsets of all elements, in row-major order of the indices.
std::vector<std::int64_t> offsets_of(const View& v) {
  std::vector<std::int64_t> offsets = {0};
  for (int d = 0; d < v.rank; ++d) {
    std::vector<std::int64_t> longer;
    for (const std::int64_t from : offsets)
      for (std::int64_t i = 0; i < v.sizes[d]; ++i) longer.push_back(from + i * v.strides[d]);
    offsets = longer;
  }
  return offsets;
}

// The elements of the copy fill its memory without gaps, and two share a place only where the operand repeats an element.
void expect_copy_of(const View& half) {
  char memory = 0;
  const kernels::F32Copy copy = kernels::f32_copy(half, &memory);
  EXPECT_EQ(copy.view.dtype, DType::f32);
  EXPECT_EQ(copy.view.data, &memory);
  const std::vector<std::int64_t> from = offsets_of(half), to = offsets_of(copy.view);
  ASSERT_EQ(from.size(), to.size());
  std::map<std::int64_t, std::int64_t> place_of;
  for (std::size_t i = 0; i < from.size(); ++i) EXPECT_EQ(place_of.emplace(from[i], to[i]).first->second, to[i]);
  const std::set<std::int64_t> places(to.begin(), to.end());
  EXPECT_EQ(static_cast<std::int64_t>(places.size()), copy.elements);
  EXPECT_EQ(places.size(), place_of.size());
  if (!places.empty()) {
    EXPECT_EQ(*places.rbegin(), copy.elements - 1);
  }

  // Without repeats, each place is visited once.
  std::vector<std::int64_t> once = offsets_of(kernels::without_repeats(copy.view));
  EXPECT_EQ(std::set<std::int64_t>(once.begin(), once.end()), places);
  EXPECT_EQ(once.size(), places.size());
}

TEST(F32Copy, HasOnePlaceForEachElementInMemory) {
  expect_copy_of(half_view({2, 3, 4}, {12, 4, 1}));
  expect_copy_of(half_view({3, 2}, {1, 3}));        // transposed
  expect_copy_of(half_view({4, 5}, {20, 2}));       // with gaps
  expect_copy_of(half_view({2, 3, 4}, {0, 4, 1}));  // a row repeats
  expect_copy_of(half_view({2, 3, 4}, {3, 1, 0}));  // elements repeat
  expect_copy_of(half_view({3, 3}, {0, 0}));        // one element
  expect_copy_of(half_view({1, 3}, {7, 1}));
  expect_copy_of(half_view({}, {}));
}

TEST(F32Copy, OfNoElementsTakesNoMemory) {
  expect_copy_of(half_view({2, 0, 3}, {0, 3, 1}));
  expect_copy_of(half_view({0, 3}, {0, 1}));
}

}  // namespace
}  // namespace tapedeck::testing
