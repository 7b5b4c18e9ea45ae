// Tests saved states of trainings. The oracle of a resumed training is the same training without a stop, which must have the
// same bits: parameters, running statistics, moments, scale, learning rate and draws.
#include <tapedeck/capture/file/training_state.h>

#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/random_position.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

struct Net : Module {
  Linear fc1{*this, "fc1", 6, 16};
  BatchNorm1d norm{*this, "norm", 16};
  Dropout drop{*this, "drop", 0.5};
  Linear fc2{*this, "fc2", 16, 4};
  Tensor operator()(const Tensor& x) { return fc2(drop(relu(norm(fc1(x))))); }
};

// A training with everything that has state. All trainings see the same batches.
struct Training {
  Net net;
  Adam optimizer{net.parameters(), {.lr = 0.01}};
  GradScaler scaler{{.scale = 4, .interval = 2}};
  Tensor average = zeros({6, 16});  // of a weight
  std::int64_t step = 0;
  std::optional<CapturedStep> captured;

  explicit Training(bool captures) {
    if (captures) captured.emplace([this](const std::vector<Tensor>& in) { return run(in); });
  }
  StateParts parts() {
    return {.net = &net, .optimizer = &optimizer, .scaler = &scaler, .step = &step, .tensors = {{"average", average}}};
  }
  std::vector<Tensor> run(const std::vector<Tensor>& in) {
    const Tensor loss = cross_entropy(net(in[0]), in[1]);
    backward(scaler.scale_loss(loss));
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
    ema_in_place(average, net.fc1.weight.detach(), 0.25);
    return {loss};
  }
  void train(int steps) {
    for (int i = 0; i < steps; ++i, ++step) {
      std::vector<float> x;
      std::vector<std::int32_t> y;
      for (int k = 0; k < 48; ++k) x.push_back(static_cast<float>((k * 37 + step * 11) % 17) / 8 - 1);
      for (int k = 0; k < 8; ++k) y.push_back(static_cast<std::int32_t>((k + step) % 4));
      const std::vector<Tensor> in{from_vector(x, {8, 6}), from_vector(y, {8})};
      optimizer.set_lr(schedule::cosine(step, 0.01, 10));
      losses.push_back((captured ? (*captured)(in) : run(in))[0].detach());
    }
  }
  std::vector<Tensor> everything() const {
    std::vector<Tensor> all = losses;
    for (const auto& list : {net.parameters(), net.buffers(), optimizer.state(), scaler.state()})
      all.insert(all.end(), list.begin(), list.end());
    all.push_back(average);
    all.push_back(optimizer.lr());
    all.push_back(integer_scalar(step));
    all.push_back(copy(rng_state()));
    return all;
  }
  std::vector<Tensor> losses;
};

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bit_equal(a[i], b[i])) << "tensor " << i << " " << a[i].name().view();
}

// Trains for ten steps; stops after `stop` of them and goes on in a fresh training whose thread stands elsewhere.
void expect_resumes(bool captures, int stop) {
  const TemporaryFolder folder;
  manual_seed(7);
  Training whole(captures);
  whole.train(10);
  const std::vector<Tensor> wanted = whole.everything();

  manual_seed(7);
  std::vector<Tensor> losses;
  {
    Training first(captures);
    first.train(stop);
    save_state(folder.file("s"), first.parts());
    losses = first.losses;
  }
  manual_seed(99);
  Training second(captures);
  normal({5});
  EXPECT_TRUE(load_state(folder.file("s"), second.parts()).complete());
  EXPECT_EQ(second.step, stop);
  second.losses = losses;
  second.train(10 - stop);
  expect_same(second.everything(), wanted);
}

TEST(TrainingState, ResumingGivesTheBitsOfNotStopping) { expect_resumes(false, 3); }
TEST(TrainingState, ResumingBeforeTheFirstStep) { expect_resumes(false, 0); }
TEST(TrainingState, ResumingCapturedSteps) { expect_resumes(true, 5); }

// A captured step that replays already sees the loaded values.
TEST(TrainingState, ALoadUnderARunningCapturedStep) {
  const TemporaryFolder folder;
  manual_seed(7);
  Training training(true);
  training.train(4);
  save_state(folder.file("s"), training.parts());
  training.train(3);
  const std::vector<Tensor> losses = training.losses;
  std::vector<Tensor> after;
  for (const Tensor& p : training.net.parameters()) after.push_back(copy(p.detach()));
  load_state(folder.file("s"), training.parts());
  training.train(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bit_equal(training.losses[7 + i], losses[4 + i])) << "loss " << i;
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(bit_equal(training.net.parameters()[i], after[i]));
  EXPECT_GE(training.captured->replays(), 5);
}

// Draws that were made since the last step count too.
TEST(TrainingState, DrawsInsideARandomStepGoOn) {
  const TemporaryFolder folder;
  manual_seed(3);
  next_step();
  normal({2});
  {
    const PathScope path("data");
    normal({2});
  }
  save_state(folder.file("s"), {});
  const auto draw = [] {
    const PathScope path("data");
    return std::vector<Tensor>{normal({3}), uniform({3})};
  };
  const std::vector<Tensor> wanted = draw();
  const Tensor outside = normal({3});
  manual_seed(4);
  load_state(folder.file("s"), {});
  expect_same(draw(), wanted);
  EXPECT_TRUE(bit_equal(normal({3}), outside));
}

TEST(TrainingState, TheFileIsSafetensorsWithNames) {
  const TemporaryFolder folder;
  Training training(false);
  save_state(folder.file("s"), training.parts());
  const TensorFile file = load_tensor_file(folder.file("s"));
  EXPECT_EQ(file.metadata.at("tapedeck.state"), "1");
  for (const char* name : {"net/fc1.weight", "net/norm.running_var", "optimizer/fc1.weight.m", "optimizer/adam.steps",
                           "optimizer/lr.0", "scaler/grad_scaler.scale", "schedule/step", "rng", "tensors/average"})
    EXPECT_EQ(file.tensors.count(name), 1u) << name;
}

// ---- states that do not fit ----

std::vector<Tensor> copies(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(copy(t.detach()));
  return all;
}

struct Other : Module {
  Linear fc1{*this, "fc1", 6, 8};     // another shape
  Linear fc3{*this, "fc3", 16, 4};    // another name
  LayerNorm norm{*this, "norm", 16};  // no running statistics
};

TEST(TrainingState, AStrictLoadThatDoesNotFitChangesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.file("s");
  Training saved(false);
  saved.train(2);
  save_state(path, saved.parts());
  Other net;
  net.norm.to(DType::f64);
  std::int64_t step = 77;
  const std::vector<Tensor> before = copies(net.parameters()), rng = copies({rng_state()});
  const std::string message = message_of<FileError>([&] { load_state(path, {.net = &net, .step = &step}); });
  EXPECT_EQ(message,
            path +
                ": the state does not fit:\n"
                "missing: \"net/fc3.bias\", \"net/fc3.weight\"\n"
                "unexpected: \"net/fc2.bias\", \"net/fc2.weight\", \"net/norm.running_mean\", \"net/norm.running_var\"\n"
                "mismatched: \"net/fc1.bias\" is f32[16] in the file, not f32[8], "
                "\"net/fc1.weight\" is f32[6,16] in the file, not f32[6,8], "
                "\"net/norm.bias\" is f32[16] in the file, not f64[16], "
                "\"net/norm.weight\" is f32[16] in the file, not f64[16]");
  expect_same(copies(net.parameters()), before);
  expect_same(copies({rng_state()}), rng);
  EXPECT_EQ(step, 77);
}

TEST(TrainingState, ALooseLoadWritesAllThatFits) {
  const TemporaryFolder folder;
  Training saved(false);
  saved.train(2);
  save_state(folder.file("s"), saved.parts());
  Other net;
  std::int64_t step = 77;
  const std::vector<Tensor> before = copies(net.fc3.parameters());
  const LoadReport report = load_state(folder.file("s"), {.net = &net, .step = &step, .rng = false}, {.strict = false});
  EXPECT_EQ(report.missing, (std::vector<std::string>{"net/fc3.bias", "net/fc3.weight"}));
  EXPECT_EQ(report.unexpected.size(), 4u);
  ASSERT_EQ(report.mismatched.size(), 2u);
  EXPECT_EQ(report.mismatched[0].name, "net/fc1.bias");
  EXPECT_FALSE(report.complete());
  EXPECT_EQ(step, 2);
  EXPECT_TRUE(bit_equal(net.norm.weight, saved.net.norm.weight));
  expect_same(copies(net.fc3.parameters()), before);
}

TEST(TrainingState, PartsThatAreNotAskedForAreNoConcern) {
  const TemporaryFolder folder;
  Training saved(false);
  saved.train(2);
  save_state(folder.file("s"), saved.parts());
  const std::vector<Tensor> rng = copies({rng_state()});
  Net net;
  EXPECT_TRUE(load_state(folder.file("s"), {.net = &net, .rng = false}).complete());
  expect_same(net.parameters(), saved.net.parameters());
  Adam adam(net.parameters());
  AdamW adamw(net.parameters());
  EXPECT_TRUE(load_state(folder.file("s"), {.optimizer = &adam}).complete());
  EXPECT_EQ(adam.lr().item(), saved.optimizer.lr().item());
  const LoadReport report = load_state(folder.file("s"), {.optimizer = &adamw}, {.strict = false});
  EXPECT_EQ(report.missing, (std::vector<std::string>{"optimizer/adamw.steps"}));
  EXPECT_EQ(report.unexpected, (std::vector<std::string>{"optimizer/adam.steps"}));
}

TEST(TrainingState, ATiedParameterIsSavedOnce) {
  struct Tied : Module {
    Linear fc{*this, "fc", 2, 2};
    struct User : Module {
      User(Module& parent, Tensor shared) : Module(parent, "user") { parameter("weight", std::move(shared)); }
    } user{*this, fc.weight};
  } saved, loaded;
  const TemporaryFolder folder;
  save_state(folder.file("s"), {.net = &saved});
  EXPECT_TRUE(load_state(folder.file("s"), {.net = &loaded}).complete());
  EXPECT_TRUE(bit_equal(loaded.fc.weight, saved.fc.weight));
}

TEST(TrainingState, RefusesOtherFiles) {
  const TemporaryFolder folder;
  const std::string path = folder.file("s");
  const std::map<std::string, Tensor> rng = {{"rng", from_vector(std::vector<std::int64_t>{1, 2}, {2})}};
  const auto message = [&](const std::map<std::string, std::string>& metadata) {
    save_safetensors(path, rng, metadata);
    return message_of<FileError>([&] { load_state(path, {}); });
  };
  EXPECT_EQ(message({}), path + ": a safetensors file, but not a saved state (no tapedeck.state in its metadata)");
  EXPECT_EQ(message({{"tapedeck.state", "2"}}),
            path + ": written in format version 2, newer than version 1 that this program reads");
  EXPECT_EQ(message({{"tapedeck.state", "1x"}}), path + ": the version of the format is not a number: \"1x\"");
  for (const char* draws : {"[", "[]", "{\"a\":-1}", "{\"a\":2147483647}", "{\"a\":0.5}", "{\"a\":1,\"a\":1}"})
    EXPECT_MENTIONS(message({{"tapedeck.state", "1"}, {"tapedeck.draws", draws}}), path + ": tapedeck.draws: ");
  EXPECT_EQ(message_of<FileError>([&] { load_state(folder.file("none"), {}); }),
            folder.file("none") + ": cannot read: No such file or directory");
}

TEST(TrainingState, RefusesStatesThatCannotBeSaved) {
  const TemporaryFolder folder;
  const std::string path = folder.file("s");
  const Tensor a = tensor({1});
  Tensor w1 = tensor({1}), w2 = tensor({2});  // both without a name
  Adam optimizer({w1, w2});
  EXPECT_EQ(message_of<UsageError>([&] { save_state(path, {.optimizer = &optimizer}); }),
            "two tensors of the state are named \"optimizer/.m\"");
  EXPECT_EQ(message_of<UsageError>([&] {
              save_state(path, {.tensors = {{"a", Tensor()}}});
            }),
            "tensor \"a\" of the state is undefined");
  {
    Capture capture;
    EXPECT_MENTIONS(message_of<CaptureError>([&] { save_state(path, {}); }), "[save_state] works on the host inside a capture");
    EXPECT_MENTIONS(message_of<CaptureError>([&] { load_state(path, {}); }), "[load_state] works on the host inside a capture");
  }
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace tapedeck
