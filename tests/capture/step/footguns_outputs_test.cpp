// Tests that the outputs of a captured step belong to the caller: later replays do not change them, even if they are inputs,
// views or state.
#include <tapedeck/engine/eager/inplace.h>

#include <tapedeck/tests/capture/step/footguns.h>

namespace tapedeck {
namespace {

TEST(Footguns, OutputsAreNotOverwrittenByTheNextReplay) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] * 2, in[0]}; });
  std::vector<Tensors> all;
  for (int i = 0; i < 6; ++i) all.push_back(step({tensor({static_cast<float>(i)})}));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(values(all[i][0]), Floats{2.f * static_cast<float>(i)});
    EXPECT_EQ(values(all[i][1]), Floats{static_cast<float>(i)});
  }
}

TEST(Footguns, AnOutputThatIsItsInputIsACopy) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0]}; });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    const Tensor x = tensor({v});
    const Tensor y = step({x})[0];
    fill_(y, 9);
    EXPECT_EQ(values(x), Floats{v});
  }
}

TEST(Footguns, AnOutputThatIsAViewOfStateIsACopy) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::statistic);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    add_(w, in[0]);
    return {slice(w, 0, 0, 1), w};
  });
  std::vector<Tensors> all;
  for (int i = 0; i < 5; ++i) all.push_back(step({tensor({1})}));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(values(all[i][0]), Floats{static_cast<float>(i + 2)}) << i;
    EXPECT_EQ(values(all[i][1]), (Floats{static_cast<float>(i + 2), static_cast<float>(i + 3)})) << i;
  }
}

TEST(Footguns, OutputsThatShareBytesAreTwoTensors) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    const Tensor y = in[0] * 2;
    return {y, y, slice(y, 0, 0, 1)};
  });
  for (int i = 0; i < 4; ++i) {
    const Tensors out = step({tensor({1, 2})});
    fill_(out[0], 7);
    EXPECT_EQ(values(out[1]), (Floats{2, 4}));
    EXPECT_EQ(values(out[2]), Floats{2});
  }
}

}  // namespace
}  // namespace tapedeck
