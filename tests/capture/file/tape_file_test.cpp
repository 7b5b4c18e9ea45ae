// Tests the .tape file: a saved tape is read back unchanged, the bytes follow FORMAT.md, damage is found, and a write error
// leaves the old file as it was.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/tape_file.h>
#include <tapedeck/capture/formats/safetensors.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/sealed_tape.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <sys/resource.h>

#include <fmt/format.h>

#include <csignal>
#include <cstring>

namespace tapedeck {
namespace {

std::string saved(const TapeFile& tape) {
  const TemporaryFolder folder;
  save_tape(folder.file("t.tape"), tape);
  return read_all(folder.file("t.tape"));
}

void expect_same_tensors(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(b.count(name) && bit_equal(tensor, b.at(name))) << name;
}

void expect_same_tape(const TapeFile& a, const TapeFile& b) {
  EXPECT_EQ(print(a.captured), print(b.captured));
  ASSERT_EQ(a.captured.constants.size(), b.captured.constants.size());
  for (std::size_t i = 0; i < a.captured.constants.size(); ++i) {
    const Literal &x = a.captured.constants[i], &y = b.captured.constants[i];
    ASSERT_EQ(x.type, y.type);
    EXPECT_EQ(std::memcmp(x.data.get(), y.data.get(), static_cast<std::size_t>(x.type.bytes())), 0);
  }
  expect_same_tensors(a.state, b.state);
  expect_same_tensors(a.inputs, b.inputs);
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.plan.has_value(), b.plan.has_value());
  if (!a.plan) return;
  EXPECT_EQ(print(a.plan->graph), print(b.plan->graph));
  expect_same_plan(*a.plan, *b.plan);
}

// An update of a state by itself is left out of the plan, even if only the passes show that it is one.
TEST(TapeFile, PlansMayLeaveOutUpdatesOfAStateByItself) {
  for (const char* same : {"%w", "%b", "%d", "%e"}) {
    SCOPED_TRACE(same);
    TapeFile tape;
    tape.captured = parse(fmt::format(R"(graph g(%x: f32[4]) state(%w: f32[4], %v: f32[4]) {{
      %a: f32[4] = add(%x, %w)
      %b: f32[4] = copy(%w)
      %c: f32[2,2] = reshape(%b) {{shape=[2,2]}}
      %d: f32[4] = reshape(%c) {{shape=[4]}}
      %one: f32[] = constant() {{value=1.0}}
      %e: f32[4] = mul(%w, %one)
      return %a
      update %w = {}, %v = %a
    }})",
                                      same),
                          "same");
    tape.plan = make_plan(tape.captured);
    ASSERT_EQ(tape.plan->graph.updates.size(), 1u) << print(tape.plan->graph);
    const TapeFile back = read_tape(bytes_of(saved(tape)), "t", Check::all);
    EXPECT_EQ(back.plan->graph.updates.size(), 1u);
    EXPECT_EQ(back.plan->unchanged_state, std::vector<std::string>{"w"});

    TapeFile former = tape;  // plans of earlier versions do not name the unchanged state
    former.plan->unchanged_state.clear();
    EXPECT_EQ(read_tape(bytes_of(saved(former)), "t", Check::all).plan->graph.updates.size(), 1u);

    Plan without = *tape.plan;
    without.graph.updates.clear();
    const TapeFile wrong{tape.captured, without, {}, {}, {}, {}};
    EXPECT_THROW(saved(wrong), UsageError) << "%v is another value";
    without.unchanged_state.clear();
    const TapeFile wrong_too{tape.captured, without, {}, {}, {}, {}};
    EXPECT_THROW(saved(wrong_too), UsageError) << "%v does not depend on itself";
  }
}

TEST(TapeFile, RoundTrip) {
  const TemporaryFolder folder;
  for (const double budget : {0.0, 100.0, 85.0}) {
    const TapeFile tape = sample_tape(budget);
    save_tape(folder.file("t.tape"), tape);
    for (const Check check : {Check::structure, Check::all}) expect_same_tape(tape, load_tape(folder.file("t.tape"), check));
    EXPECT_EQ(folder.names(), std::vector<std::string>{"t.tape"});
    const std::string bytes = read_all(folder.file("t.tape"));
    save_tape(folder.file("t.tape"), load_tape(folder.file("t.tape")));
    EXPECT_EQ(read_all(folder.file("t.tape")), bytes) << "equal contents, equal bytes";
  }
}

TEST(TapeFile, TheSampleHasClonesInIt) {
  const TapeFile tape = sample_tape(85);
  ASSERT_TRUE(tape.plan->feasible) << tape.plan->infeasible_reason;
  EXPECT_GT(tape.plan->recomputed_nodes, 0);
  EXPECT_FALSE(tape.plan->decisions.empty());
}

TEST(TapeFile, WhatIsLackingStaysLacking) {
  TapeFile tape = sample_tape();
  tape.state.erase("w");
  tape.inputs.clear();
  tape.state["odd name"] = abstract_tensor({DType::f32, {3}});
  const std::string bytes = saved(tape);
  const TapeFile back = read_tape(bytes_of(bytes), "t", Check::all);
  EXPECT_EQ(back.state.size(), 1u);
  EXPECT_TRUE(back.state.count("rng"));
  EXPECT_TRUE(back.inputs.empty());
}

TEST(TapeFile, AbstractConstantsStayAbstract) {
  TapeFile tape;
  tape.captured =
      parse("graph g() { %a: f32[100] = constant() {tensor=\"t\"} %b: f32[2] = constant() {abstract=true} return %a, %b }");
  const std::string bytes = saved(tape);
  const TapeFile back = read_tape(bytes_of(bytes), "t", Check::all);
  EXPECT_EQ(print(back.captured), print(tape.captured));
  EXPECT_FALSE(back.captured.constants[0].data);
}

TEST(TapeFile, ConstantsWithoutANameGetOne) {
  const auto data = [](float first) {
    auto floats = std::make_shared<std::vector<float>>(20, first);
    return std::shared_ptr<const void>(floats, floats->data());
  };
  TapeFile tape;
  const Type type{DType::f32, {20}};
  int serial = 0;
  tape.captured =
      parse("graph g() { %a: f32[20] = constant() {tensor=\"c1\"} %b: f32[20] = constant() {tensor=\"c1\"} return %a, %b }",
            "g", [&](const std::string&, Literal* literal) {
              *literal = {type, data(static_cast<float>(++serial)), {}};
              return true;
            });
  const std::string bytes = saved(tape);  // two constants with the same name: both must be read back
  const TapeFile back = read_tape(bytes_of(bytes), "t", Check::all);
  EXPECT_EQ(static_cast<const float*>(back.captured.constants[0].data.get())[19], 1);
  EXPECT_EQ(static_cast<const float*>(back.captured.constants[1].data.get())[19], 2);
}

TEST(TapeFile, IsASafetensorsFileWithAlignedData) {
  const TemporaryFolder folder;
  const TapeFile tape = sample_tape(85);
  save_tape(folder.file("t.tape"), tape);
  const auto tensors = load_safetensors(folder.file("t.tape"));
  EXPECT_TRUE(bit_equal(tensors.at("state/w"), tape.state.at("w")));
  EXPECT_TRUE(bit_equal(tensors.at("input/x"), tape.inputs.at("x")));
  EXPECT_EQ(tensors.at("constant/table").to_vector<float>()[31], 31.5f);
  const auto text = tensors.at("graph").to_vector<unsigned char>();
  EXPECT_EQ(std::string(text.begin(), text.end()), print(tape.captured));

  const std::string bytes = read_all(folder.file("t.tape"));
  const Safetensors parsed = read_safetensors(MemorySource(bytes_of(bytes), "t"));
  for (const TensorPlace& t : parsed.tensors) {
    if (t.name.starts_with("pad/")) continue;
    EXPECT_EQ(t.begin % 64, 0u) << t.name;
  }
  EXPECT_EQ(parsed.metadata.at("tapedeck.format"), "1");
  EXPECT_EQ(parsed.metadata.at("op.matmul"), "1");
  EXPECT_EQ(parsed.metadata.at("model"), "mlp");
  EXPECT_EQ(bytes.substr(53, 16), parsed.metadata.at("tapedeck.header_checksum"));
}

#ifdef TAPEDECK_SANITIZED
constexpr std::size_t kBitStride = 7;  // this build is many times as slow; the release build flips every bit
#else
constexpr std::size_t kBitStride = 1;
#endif

TEST(TapeFile, EveryFlippedBitIsFound) {
  std::string bytes = saved(sample_tape(85));
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += kBitStride) {
    char& byte = bytes[bit / 8];
    byte = static_cast<char>(byte ^ (1 << bit % 8));
    EXPECT_THROW(read_tape(bytes_of(bytes), "t", Check::all), FileError) << "byte " << bit / 8 << ", bit " << bit % 8;
    byte = static_cast<char>(byte ^ (1 << bit % 8));
  }
  EXPECT_NO_THROW(read_tape(bytes_of(bytes), "t", Check::all));
}

TEST(TapeFile, EveryTruncationIsFound) {
  const std::string bytes = saved(sample_tape(85));
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW(read_tape(bytes_of(bytes).first(n), "t", Check::structure), FileError) << n;
  const std::string longer = bytes + '\0';
  EXPECT_THROW(read_tape(bytes_of(longer), "t", Check::structure), FileError);
}

TEST(TapeFile, StructureLeavesTensorDataAlone) {
  std::string bytes = saved(sample_tape());
  const std::string weights(static_cast<const char*>(sample_tape().state.at("w").data()), 256);
  const std::size_t at = bytes.find(weights);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  EXPECT_NO_THROW(read_tape(bytes_of(bytes), "t", Check::structure));
  EXPECT_EQ(message_of<FileError>([&] { read_tape(bytes_of(bytes), "dir/t.tape", Check::all); }),
            "dir/t.tape: tensor \"state/w\" is damaged (wrong checksum)");
}

// Files whose checksums are all right but whose content must be refused.
TEST(TapeFile, RefusesWhatItCannotUse) {
  struct Case {
    const char* why;
    void (*change)(SealedTape&);
    const char* reason;
  };
  const Case cases[] = {
      {"foreign", [](SealedTape& t) { t.metadata.erase("tapedeck.format"); }, "a safetensors file, but not a tape"},
      {"newer", [](SealedTape& t) { t.metadata["tapedeck.format"] = "2"; }, "format version 2, newer than version 1"},
      {"odd version", [](SealedTape& t) { t.metadata["tapedeck.format"] = "1x"; }, "version of \"the format\" is not a number"},
      {"unknown op", [](SealedTape& t) { t.metadata["op.acme.swiglu"] = "1"; },
       "uses the op \"acme.swiglu\", which is unknown here"},
      {"newer op", [](SealedTape& t) { t.metadata["op.matmul"] = "7"; }, "version 7 of the op matmul, newer than version 1"},
      {"unlisted op", [](SealedTape& t) { t.metadata.erase("op.matmul"); }, "no version is given for the op matmul"},
      {"no graph", [](SealedTape& t) { t.tensors.erase("graph"); }, "there is no graph inside"},
      {"half a plan", [](SealedTape& t) { t.tensors.erase("plan"); }, "a plan needs both"},
      {"graph as floats",
       [](SealedTape& t) {
         t.tensors["graph"].type = {DType::f32, {1}}, t.tensors["graph"].bytes.resize(4);
       },
       "should be text in u8"},
      {"another graph's plan", [](SealedTape& t) { t.set_text("planned_graph", "graph g(%x: f32[2]) { return %x }"); },
       "the planned graph is not the captured one's"},
      {"plan is no JSON", [](SealedTape& t) { t.set_text("plan", "{"); }, "not a readable plan"},
      {"plan without values", [](SealedTape& t) { t.set_text("plan", R"({"schema":"tapedeck.plan_data/1"})"); },
       "the plan places 0 values"},
      {"state of another type", [](SealedTape& t) { t.tensors["state/w"].type.shape = {64}; },
       "\"state/w\" is f32[64], the graph says f32[8,8]"},
      {"input of another type", [](SealedTape& t) { t.tensors["input/x"].type.dtype = DType::i32; },
       "\"input/x\" is i32[4,8], the graph says f32[4,8]"},
      {"padding in use",
       [](SealedTape& t) {
         t.tensors["pad/7"] = {{DType::u8, {1}}, "x"};
       },
       "padding is not zero"},
  };
  for (const Case& c : cases) {
    SealedTape tape(saved(sample_tape(100)));
    c.change(tape);
    const std::string bytes = tape.seal();
    const std::string message = message_of<FileError>([&] { read_tape(bytes_of(bytes), "dir/t.tape", Check::all); });
    EXPECT_EQ(message.rfind("dir/t.tape: ", 0), 0u) << message;
    EXPECT_NE(message.find(c.reason), std::string::npos) << c.why << " gives  " << message;
  }
}

TEST(TapeFile, BadGraphTextNamesItsPlace) {
  SealedTape tape(saved(sample_tape()));
  tape.set_text("graph", "graph g(%x: f32[2]) {\n  %y: f32[3] = relu(%x)\n  return %y\n}");
  const std::string bytes = tape.seal();
  EXPECT_EQ(message_of<ParseError>([&] { read_tape(bytes_of(bytes), "t.tape", Check::all); }).rfind("t.tape:graph:2:", 0), 0u);
}

TEST(TapeFile, ConstantOfAnotherTypeIsRefused) {
  SealedTape tape(saved(sample_tape()));
  tape.tensors["constant/table"].type.shape = {8, 4};
  const std::string bytes = tape.seal();
  EXPECT_NE(message_of<ParseError>([&] { read_tape(bytes_of(bytes), "t.tape", Check::all); }).find("\"table\" is f32[8,4]"),
            std::string::npos);
}

TEST(TapeFile, WhatALaterVersionMayAddIsSkipped) {
  SealedTape tape(saved(sample_tape(100)));
  tape.metadata["tapedeck.mood"] = "good";
  tape.tensors["profile/0"] = {{DType::f64, {1}}, std::string(8, '\0')};
  tape.tensors["state/unheard of"] = {{DType::u8, {3}}, "abc"};
  const std::string bytes = tape.seal();
  const TapeFile back = read_tape(bytes_of(bytes), "t", Check::all);
  expect_same_tape(sample_tape(100), back);
}

TEST(TapeFile, RefusesToSaveNonsense) {
  const TemporaryFolder folder;
  const auto refused = [&](void (*change)(TapeFile&)) {
    TapeFile tape = sample_tape(100);
    change(tape);
    return message_of<UsageError>([&] { save_tape(folder.file("t"), tape); });
  };
  EXPECT_NE(refused([](TapeFile& t) { t.state["nobody"] = scalar(1); }).find("the graph has no state/nobody"),
            std::string::npos);
  EXPECT_NE(refused([](TapeFile& t) { t.inputs["x"] = scalar(1); }).find("input/x is f32[], the graph says f32[4,8]"),
            std::string::npos);
  EXPECT_NE(refused([](TapeFile& t) { t.metadata["tapedeck.format"] = "9"; }).find("is reserved"), std::string::npos);
  EXPECT_NE(refused([](TapeFile& t) { t.metadata["op.relu"] = "9"; }).find("is reserved"), std::string::npos);
  EXPECT_NE(refused([](TapeFile& t) { t.metadata["k"] = "\xff"; }).find("not UTF-8"), std::string::npos);
  EXPECT_NE(refused([](TapeFile& t) {
              t.captured = parse("graph g() { return }"), t.state.clear(), t.inputs.clear();
            }).find("not the captured graph's"),
            std::string::npos);
  EXPECT_TRUE(folder.names().empty());
}

TEST(TapeFile, AFullDiskLeavesTheOldTape) {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.tape");
  save_tape(path, sample_tape());
  const std::string before = read_all(path);
  TapeFile large;
  large.captured = parse("graph g() state(%w: f32[100000]) { return }");
  large.state["w"] = default_value({DType::f32, {100000}}, 1, "w");

  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old;
  ::getrlimit(RLIMIT_FSIZE, &old);
  const struct rlimit now = {100'000, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &now);
  const std::string message = message_of<FileError>([&] { save_tape(path, large); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(message, path + ": cannot write: File too large");
  EXPECT_EQ(read_all(path), before);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"t.tape"});
  EXPECT_EQ(message_of<FileError>([&] { save_tape("/dev/full", large); }), "/dev/full: cannot write: No space left on device");
  EXPECT_THROW(save_tape(folder.file("no/t.tape"), large), FileError);
}

TEST(TapeFile, MissingAndForeignFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<FileError>([] { load_tape("/no/such.tape"); }), "/no/such.tape: cannot read: No such file or directory");
  write_all(folder.file("text"), "graph g() { return }");
  save_safetensors(folder.file("w"), {{"w", tensor({1})}});
  EXPECT_NE(message_of<FileError>([&] { load_tape(folder.file("w")); }).find("a safetensors file, but not a tape"),
            std::string::npos);
  write_all(folder.file("empty"), "");
  EXPECT_THROW(load_tape(folder.file("empty")), FileError);
}

TEST(TapeFile, GraphFiles) {
  const TemporaryFolder folder;
  write_all(folder.file("g.graph"), print(sample_graph()));
  EXPECT_EQ(print(load_graph(folder.file("g.graph"))), print(sample_graph()));
  write_all(folder.file("bad.graph"), "graph g(%x: f32[2]) {\n  oops\n}");
  EXPECT_EQ(message_of<ParseError>([&] { load_graph(folder.file("bad.graph")); }).rfind(folder.file("bad.graph") + ":2:", 0),
            0u);
  write_all(folder.file("empty.graph"), "");
  EXPECT_THROW(load_graph(folder.file("empty.graph")), ParseError);
  EXPECT_THROW(load_graph(folder.file("none.graph")), FileError);
}

}  // namespace
}  // namespace tapedeck
