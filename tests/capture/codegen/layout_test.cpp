// Tests how a fused kernel walks over its views, and which launches may read 16 bytes at a time.
#include <tapedeck/capture/codegen/layout.h>

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace tapedeck::codegen {
namespace {

alignas(64) unsigned char memory[4096];

View view(std::initializer_list<std::int64_t> sizes, std::initializer_list<std::int64_t> strides, DType dtype = DType::f32) {
  View v;
  v.dtype = dtype;
  v.data = memory;
  v.rank = static_cast<std::int32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), v.sizes);
  std::copy(strides.begin(), strides.end(), v.strides);
  return v;
}

FusedLayout layout(const std::vector<View>& inputs, const View& output) { return fused_layout(inputs, {&output, 1}); }

std::vector<Access> accesses(const FusedLayout& l) {
  std::vector<Access> found;
  for (const auto& v : l.views) found.push_back(v.access);
  return found;
}

using A = Access;

TEST(FusedLayout, MergesWhatLiesSideBySide) {
  const View x = view({4, 1, 6, 5}, {30, 30, 5, 1});
  const FusedLayout l = layout({x, x}, x);
  EXPECT_EQ(l.rank, 1);
  EXPECT_EQ(l.sizes[0], 120);
  EXPECT_EQ(l.n, 120);
  EXPECT_EQ(accesses(l), (std::vector<Access>{A::linear, A::linear, A::linear}));
  EXPECT_EQ(l.lanes, 4);
  EXPECT_FALSE(l.long_index);
}

TEST(FusedLayout, KnowsTheAccessOfEachView) {
  const View out = view({8, 12}, {12, 1});
  const FusedLayout l =
      layout({view({8, 12}, {0, 1}), view({8, 12}, {1, 0}), view({8, 12}, {0, 0}), view({8, 12}, {1, 8})}, out);
  EXPECT_EQ(l.rank, 2);
  EXPECT_EQ(accesses(l), (std::vector<Access>{A::row, A::repeated, A::repeated, A::gathered, A::linear}));
  EXPECT_EQ(l.lanes, 4);
}

TEST(FusedLayout, HasNoLanesAcrossRows) {
  const View row = view({8, 10}, {0, 1}), out = view({8, 10}, {10, 1});
  EXPECT_EQ(layout({row}, out).lanes, 1) << "10 is no multiple of 4";
  EXPECT_EQ(layout({view({8, 12}, {13, 1})}, view({8, 12}, {12, 1})).lanes, 1) << "the second row is not aligned";
  EXPECT_EQ(layout({view({8, 12}, {16, 1})}, view({8, 12}, {12, 1})).lanes, 4);
  EXPECT_EQ(layout({view({8, 12}, {12, 1})}, view({8, 12}, {1, 8})).lanes, 1) << "the result is scattered";
  EXPECT_EQ(layout({view({3}, {1})}, view({3}, {1})).lanes, 1) << "fewer elements than lanes";
}

TEST(FusedLayout, TakesAsManyLanesAsTheWidestViewFills) {
  const auto lanes = [](DType a, DType b) { return layout({view({64}, {1}, a)}, view({64}, {1}, b)).lanes; };
  EXPECT_EQ(lanes(DType::bf16, DType::bf16), 8);
  EXPECT_EQ(lanes(DType::bf16, DType::f32), 4);
  EXPECT_EQ(lanes(DType::f64, DType::boolean), 2);
  EXPECT_EQ(lanes(DType::u8, DType::boolean), 16);
}

TEST(FusedLayout, OneElement) {
  const FusedLayout l = layout({view({1, 1}, {0, 0}), view({1, 1}, {7, 3})}, view({1, 1}, {1, 1}));
  EXPECT_EQ(l.rank, 1);
  EXPECT_EQ(l.sizes[0], 1);
  EXPECT_EQ(accesses(l), (std::vector<Access>{A::linear, A::linear, A::linear}));
}

TEST(FusedLayout, CountsBeyond32Bits) {
  const View x = view({1 << 16, 1 << 16}, {1 << 16, 1});
  EXPECT_TRUE(layout({x}, x).long_index);
}

// ---- launches ----

FusedLaunch launch(const std::vector<View>& inputs, const View& output) {
  KernelCall call;
  call.inputs = inputs.data();
  call.n_inputs = static_cast<std::int32_t>(inputs.size());
  call.outputs = &output;
  call.n_outputs = 1;
  FusedLaunch made;
  fill_launch(layout(inputs, output), call, &made);
  return made;
}

TEST(FusedLaunch, ReadsSingleElementsWhereAnAddressIsNotAligned) {
  View x = view({100}, {1}), out = view({100}, {1});
  EXPECT_TRUE(launch({x}, out).wide);
  x.data = memory + 4;
  EXPECT_FALSE(launch({x}, out).wide);
  EXPECT_TRUE(launch({view({100}, {1}), view({100}, {0})}, out).wide);
  View one = view({100}, {0});
  one.data = memory + 4;
  EXPECT_TRUE(launch({view({100}, {1}), one}, out).wide) << "a repeated element is read alone";
  out.data = memory + 8;
  EXPECT_FALSE(launch({view({100}, {1})}, out).wide);
}

TEST(FusedLaunch, HasAThreadForEachGroupOfLanesUpToALimit) {
  EXPECT_EQ(launch({view({1024}, {1})}, view({1024}, {1})).blocks, 1u);
  EXPECT_EQ(launch({view({1025}, {1})}, view({1025}, {1})).blocks, 2u);
  EXPECT_EQ(launch({view({300, 5}, {5, 0})}, view({300, 5}, {5, 1})).blocks, 6u);
  const View large = view({1 << 30}, {1});
  EXPECT_EQ(launch({large}, large).blocks, 4096u);
  EXPECT_EQ(launch({view({0, 4}, {4, 1})}, view({0, 4}, {4, 1})).blocks, 0u);
}

TEST(FusedLaunch, GivesTheArgumentAsTheSourceDeclaresIt) {
  const View row = view({8, 12}, {0, 1}), out = view({8, 12}, {12, 1});
  const FusedLaunch made = launch({row, out}, out);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::vector<std::uint64_t> expected = {96, 8, 12, address, address, address, 0, 1};
  EXPECT_EQ(argument_places(layout({row, out}, out)).words, 8);
  EXPECT_EQ(std::vector<std::uint64_t>(made.words, made.words + 8), expected);
}

}  // namespace
}  // namespace tapedeck::codegen
