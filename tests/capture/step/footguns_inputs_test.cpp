// Tests inputs of a captured step that are written, shared, missing or of other types. The oracle is eager code, or an
// error.
#include <tapedeck/engine/eager/inplace.h>

#include <tapedeck/tests/capture/step/footguns.h>

namespace tapedeck {
namespace {

using testing::message_of;

TEST(Footguns, AnInputAssignedInside) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    Tensor x = in[0];
    x = x + 1;
    x = x * x;
    return {x, in[0]};
  });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    const Tensors out = step({tensor({v})});
    EXPECT_EQ(values(out[0]), Floats{(v + 1) * (v + 1)});
    EXPECT_EQ(values(out[1]), Floats{v});
  }
}

TEST(Footguns, AnInputWrittenInPlace) {
  int line = 0;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    line = __LINE__ + 1;
    add_(in[0], 1);
    return {in[0]};
  });
  const std::string text = refused(step, {tensor({1, 2})});
  EXPECT_MENTIONS(text, "the input 'in0' f32[2] is modified in place inside the step by 'add' at " + here(line));
}

TEST(Footguns, AViewOfAnInputWrittenInPlace) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    mul_(slice(in[0], 0, 0, 1), 5);
    return {in[0] * 2};
  });
  EXPECT_MENTIONS(refused(step, {tensor({1, 2})}), "the input 'in0' f32[2] is modified in place inside the step by");
  // Writing to a copy of the input is allowed.
  CapturedStep copies = capture([](const Tensors& in) -> Tensors {
    const Tensor own = copy(in[0]);
    mul_(slice(own, 0, 0, 1), 5);
    return {own * 2};
  });
  for (float v : {1.f, 2.f, 3.f}) EXPECT_EQ(values(copies({tensor({v, v})})[0]), (Floats{10 * v, 2 * v}));
}

TEST(Footguns, AListOfInputs) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    Tensor total = in[0];
    for (std::size_t i = 1; i < in.size(); ++i) total = total + in[i];
    return {total};
  });
  for (int n : {1, 3, 1, 3, 1, 3, 3})
    EXPECT_EQ(values(step(Tensors(static_cast<std::size_t>(n), tensor({2})))[0]), Floats{2.f * static_cast<float>(n)});
  EXPECT_EQ(step.recordings(), 4);
  EXPECT_EQ(step.replays(), 3);
}

TEST(Footguns, NoInputsAndUndefinedInputs) {
  Tensor w = tensor({1});
  w.name("w").role(Role::parameter);
  CapturedStep step = capture([&](const Tensors&) -> Tensors {
    add_(w, 1);
    return {w * 2};
  });
  for (float v : {4.f, 6.f, 8.f, 10.f}) EXPECT_EQ(values(step({})[0]), Floats{v});
  EXPECT_EQ(values(w), Floats{5});
  CapturedStepOptions options;
  options.input_names = {"x", "mask"};
  CapturedStep two = capture([](const Tensors& in) -> Tensors { return {in[0]}; }, options);
  EXPECT_MENTIONS(message_of<CaptureError>([&] { two({tensor({1}), Tensor()}); }), "input 1 ('mask') of the step is undefined");
}

TEST(Footguns, NamesAreAsManyAsInputsAndResults) {
  CapturedStepOptions options;
  options.input_names = {"x", "y"};
  options.output_names = {"sum"};
  const auto add = [](const Tensors& in) -> Tensors { return {in[0] + in.back()}; };
  CapturedStep step = capture(add, options);
  const Tensor t = tensor({3});
  EXPECT_MENTIONS(message_of<UsageError>([&] { step({t}); }), "input_names has 2 (x, y), and the call gives 1 input (");
  EXPECT_MENTIONS(message_of<UsageError>([&] {
                    step({t, t, t});
                  }),
                  "gives 3 inputs (tests/capture/step/footguns_inputs_test.cpp:");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({t, t})[0]), Floats{6});
  options.output_names = {"sum", "difference"};
  CapturedStep two = capture(add, options);
  EXPECT_MENTIONS(
      message_of<UsageError>([&] {
        two({t, t});
      }),
      "the function gave 1 result, and output_names has 2: sum, difference (tests/capture/step/footguns_inputs_test.cpp:");
  CapturedStep writes = capture([](const Tensors& in) -> Tensors { return {add_(in[0], 1)}; });
  EXPECT_MENTIONS(message_of<CaptureError>([&] { writes({tensor({3})}); }),
                  "write to a copy (tests/capture/step/footguns_inputs_test.cpp:");
  options.input_names = {"x", "x"};
  EXPECT_MENTIONS(message_of<UsageError>([&] { capture(add, options); }), "input_names has the name 'x' more than once");
}

TEST(Footguns, TheSameTensorAsTwoInputs) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] - in[1]}; });
  const Tensor t = tensor({3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({t, t})[0]), Floats{0});
  EXPECT_EQ(values(step({t, tensor({1})})[0]), Floats{2});
}

TEST(Footguns, InputsThatShareBytes) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] * in[1]}; });
  const Tensor t = tensor({3, 4});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({t, slice(t, 0, 0, 1)})[0]), (Floats{9, 12}));
  EXPECT_EQ(values(step({t, tensor({1})})[0]), (Floats{3, 4}));
}

// The function reads a tensor both as an input and directly. Only the input may change with the call.
TEST(Footguns, AnInputThatTheFunctionAlsoReadsOtherwise) {
  const Tensor fixed = tensor({10});
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * 2 + fixed}; });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(values(step({fixed})[0]), Floats{30});
  EXPECT_EQ(values(step({tensor({1})})[0]), Floats{12});
}

TEST(Footguns, OtherTypesRecordAgainAndSayWhy) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] + in[0]}; });
  for (int i = 0; i < 3; ++i) step({tensor({1, 2})});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step({scalar(3, DType::f64)})[0].item(), 6);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step({ones({2, 2})})[0].to_vector<float>(), (Floats{2, 2, 2, 2}));
  EXPECT_EQ(step.recordings(), 6);
  EXPECT_MENTIONS(step.explain(), "for (f64[]): input types changed to (f64[]) from (f32[2])");
  EXPECT_MENTIONS(step.explain(), "for (f32[2,2]): input types changed to (f32[2,2]) from (f64[])");
}

}  // namespace
}  // namespace tapedeck
