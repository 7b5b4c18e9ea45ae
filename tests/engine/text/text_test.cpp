// Tests the text form against golden text. text_error_test.cpp tests error messages, text_fuzz_test.cpp random graphs.
#include <tapedeck/engine/text/text.h>

#include <tapedeck/engine/ir/error.h>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

// ---- golden text: print gives exactly this text, and parse then print gives it again ----

void expect_golden(const std::string& text) { EXPECT_EQ(print(parse(text, "golden")), text); }

TEST(Text, a_training_step) {
  expect_golden(R"(graph train_step(%x: f32[64,784], %y: i32[64], %lr: f32[]) state(%w: f32[784,10], %rng: i64[2] [role=rng]) {
  %h: f32[64,10] = matmul(%x, %w)                    [path="fc1"]
  %l: f32[] = cross_entropy(%h, %y) {label_smoothing=0.0, ignore_index=-100, reduction="mean"}
  %w2: f32[784,10] = opaque(%w, %lr) {us=12.5}       [phase=update]
  %rng2: i64[2] = rng_next(%rng)                     [phase=update]
  return %l
  update %w = %w2, %rng = %rng2
}
)");
}

// Files of before lack the attribute, and their losses of halves are halves.
TEST(Text, an_attribute_that_was_added_later_prints_where_it_is_not_the_default) {
  expect_golden(R"(graph losses(%x: bf16[4,3], %y: i32[4]) {
  %a: bf16[] = cross_entropy(%x, %y) {label_smoothing=0.0, ignore_index=-100, reduction="mean"}
  %b: f32[] = cross_entropy(%x, %y) {label_smoothing=0.0, ignore_index=-100, reduction="mean", loss_in_f32=true}
  return %a, %b
}
)");
}

TEST(Text, every_note) {
  expect_golden(R"(graph notes(%x: f32[4]) state(%m: f32[4] [role=moment], %c: i64[] [role=counter]) {
  %h: f32[4] = relu(%x)                              [region=3, path="fc1", site="train.cpp:12"]
  %k: f32[4] = relu(%x)                              [of=%h, region=3, after=[%h]]
  %a_rather_long_name: f32[4] = add(%h, %k)          [phase=backward, twin=%h, after=[%h, %k]]
  %another_rather_long_name: f32[4] = add(%a_rather_long_name, %a_rather_long_name) [clone=true, path="\"quoted\"\n"]
  return y=%another_rather_long_name, %x
  update %m = %k
}
)");
}

TEST(Text, notes_of_wishes) {
  expect_golden(R"(graph wishes(%x: f32[4]) {
  %h: f32[4] = exp(%x)                               [keep, path="fc1"]
  %k: f32[4] = tanh(%h)                              [recompute, region=3]
  %y: f32[4] = add(%h, %k)                           [phase=backward, recompute]
  return %y
}
)");
}

TEST(Text, unnamed_values_print_their_number_and_unread_results_an_underscore) {
  expect_golden(R"(graph g(%x: f32[2], %"7": f32[2]) {
  %2: f32[2] = relu(%x)
  _: f32[2], %4: f32[3], _: u8[] = opaque(%2) {us=0.0}
  %named: f32[2] = add(%2, %"7")
  %7: f32[2] = add(%named, %2)
  opaque(%4) {us=1e-05}
  return %7, %"7"
}
)");
}

TEST(Text, attribute_literals) {
  expect_golden(R"(graph g(%x: f32[2,3,4]) {
  %a: f32[2,1,1] = sum(%x) {axes=[1,2], keepdims=true}
  %b: f32[] = sum(%x) {axes=[0,1,2], keepdims=false}
  %c: f64[2,3,4] = cast(%x) {dtype=f64}
  %d: f32[0] = full() {shape=[0], dtype=f32, value=-0.0}
  %e: f32[1] = full() {shape=[1], dtype=f32, value=inf}
  %f: f32[] = full() {shape=[], dtype=f32, value=nan}
  %g: f32[] = full() {shape=[], dtype=f32, value=-nan}
  %h: f32[] = full() {shape=[], dtype=f32, value=nan.7ff8000000000001}
  %i: f32[] = full() {shape=[], dtype=f32, value=0.1}
  %j: f32[] = full() {shape=[], dtype=f32, value=1e+300}
  return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j
}
)");
}

TEST(Text, constants_of_every_dtype) {
  expect_golden(R"(graph g() {
  %a: f32[2,2] = constant() {value=[1.0,0.1,-inf,nan]}
  %b: f64[1] = constant() {value=[0.1]}
  %c: f16[5] = constant() {value=[1.0,65504.0,5.9604645e-08,-0.0,nan.7e01]}
  %d: bf16[2] = constant() {value=[1.0,0.099609375]}
  %e: i32[2] = constant() {value=[-2147483648,2147483647]}
  %f: i64[2] = constant() {value=[-9223372036854775808,9223372036854775807]}
  %g: u8[2] = constant() {value=[0,255]}
  %h: bool[2] = constant() {value=[true,false]}
  %i: f32[] = constant() {value=[3.0]}
  %j: f32[0] = constant() {value=[]}
  %k: f32[1000] = constant() {tensor="big one"}
  %l: f32[1000] = constant() {abstract=true}
  return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j, %k, %l
}
)");
}

TEST(Text, long_lists_wrap) {
  std::string inputs;
  for (int i = 0; i < 12; ++i) inputs += (i ? ", " : "") + std::string("%input_number_") + std::to_string(i) + ": f32[64,64]";
  const std::string text = print(parse("graph g(" + inputs + ") { return }"));
  EXPECT_EQ(text, R"(graph g(%input_number_0: f32[64,64], %input_number_1: f32[64,64], %input_number_2: f32[64,64],
    %input_number_3: f32[64,64], %input_number_4: f32[64,64], %input_number_5: f32[64,64], %input_number_6: f32[64,64],
    %input_number_7: f32[64,64], %input_number_8: f32[64,64], %input_number_9: f32[64,64], %input_number_10: f32[64,64],
    %input_number_11: f32[64,64]) {
  return
}
)");
  expect_golden(text);
}

// ---- text that the parser accepts although the printer writes it differently ----

TEST(Text, free_form_is_accepted_and_prints_canonically) {
  const char* const loose = R"(// a comment
graph "g"(%0:f32[ 2 , 3 ],%"x y":f32[2,3])state(){//another
%out:f32[2]=sum(%0){keepdims=false,axes=[1]}[seg=0,at=2560,why="x",list=[1,[%nowhere,"a"],f32],flag]
%five: f32[2] = opaque(%out, %"x y") {us=5} [phase=forward, after=%out, of=%gone]
_: f32[] = constant() {value=2}
return result = %five , "update"=%out
} // the end)";
  EXPECT_EQ(print(parse(loose)), R"(graph g(%"0": f32[2,3], %"x y": f32[2,3]) {
  %out: f32[2] = sum(%"0") {axes=[1], keepdims=false}
  %five: f32[2] = opaque(%out, %"x y") {us=5.0}      [of=%gone, after=[%out]]
  _: f32[] = constant() {value=[2.0]}
  return result=%five, "update"=%out
}
)");
}

TEST(Text, numbers_in_hand_written_text_become_ids_in_values_and_notes) {
  EXPECT_EQ(print(parse("graph g(%x: f32[]) { %0: f32[] = relu(%x) %1: f32[] = relu(%x) [of=%0] return %0, %1 }")),
            R"(graph g(%x: f32[]) {
  %1: f32[] = relu(%x)
  %2: f32[] = relu(%x)                               [of=%1]
  return %1, %2
}
)");
}

TEST(Text, notes_can_be_left_out_and_added) {
  const Graph g = parse("graph g(%x: f32[]) { %y: f32[] = relu(%x) [path=\"a\"] return %y }");
  PrintOptions options;
  options.extra_notes = [](NodeId n) { return "seg=" + std::to_string(n) + ", at=2560"; };
  EXPECT_NE(print(g, options).find("[path=\"a\", seg=0, at=2560]"), std::string::npos);
  EXPECT_EQ(print(parse(print(g, options))), print(g));
  options.notes = false;
  EXPECT_EQ(print(g, options), "graph g(%x: f32[]) {\n  %y: f32[] = relu(%x)\n  return %y\n}\n");
}

TEST(Text, large_constants_go_by_name_and_come_from_the_lookup) {
  Graph g = parse("graph g() { %c: i32[3] = constant() {value=[1,2,3]} return %c }");
  PrintOptions options;
  options.max_inline_constant = 2;
  EXPECT_NE(print(g, options).find("{value=[1,2,3]}"), std::string::npos) << "without a name the data must stay in the text";
  g.constants[0].tensor = "const.0";
  const std::string text = print(g, options);
  EXPECT_NE(text.find("{tensor=\"const.0\"}"), std::string::npos);

  EXPECT_EQ(parse(text).constants[0].data, nullptr) << "without a lookup the constant is abstract";
  const Graph back = parse(text, "f", [&](const std::string& name, Literal* literal) {
    *literal = g.constants[0];
    return name == "const.0";
  });
  EXPECT_TRUE(same_attributes(g, g.nodes[0], back, back.nodes[0]));
  EXPECT_EQ(back.constants[0].tensor, Name("const.0"));
  const auto none = [](const std::string&, Literal*) { return false; };
  EXPECT_THROW(parse(text, "f", none), ParseError);
  const auto other = [](const std::string&, Literal* literal) {
    literal->type = Type{DType::f32, {}};
    return true;
  };
  EXPECT_THROW(parse(text, "f", other), ParseError);
}

// ---- f16 and bf16: every bit pattern is read back; decimals round to nearest, ties to even ----

TEST(Text, every_16_bit_float_reads_back_to_its_bits) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    auto all = std::make_shared<std::vector<std::uint16_t>>(65536);
    for (std::size_t i = 0; i < all->size(); ++i) (*all)[i] = static_cast<std::uint16_t>(i);
    Graph g;
    const Type type{dtype, {65536}};
    ConstantAttrs attrs;
    attrs.value.index = g.add_constant({type, std::shared_ptr<const void>(all, all->data()), {}});
    g.outputs = {0};
    g.add_node(*find_op("constant"), {}, &attrs, std::span(&type, 1));
    const Graph back = parse(print(g));
    EXPECT_TRUE(same_attributes(g, g.nodes[0], back, back.nodes[0])) << dtype_name(dtype);
  }
}

std::uint16_t half_bits(const std::string& number) {
  const Graph g = parse("graph g() { %c: f16[] = constant() {value=[" + number + "]} return %c }");
  std::uint16_t bits;
  std::memcpy(&bits, g.constants[0].data.get(), sizeof bits);
  return bits;
}

TEST(Text, decimals_round_to_16_bit_floats_with_ties_to_even) {
  EXPECT_EQ(half_bits("2049"), 0x6800);  // half way between 2048 and 2050
  EXPECT_EQ(half_bits("2051"), 0x6802);
  EXPECT_EQ(half_bits("65519"), 0x7bff);
  EXPECT_EQ(half_bits("2e-8"), 0);
  EXPECT_EQ(half_bits("-4e-8"), 0x8001);
  EXPECT_EQ(half_bits("6.1e-05"), 0x03ff);
  EXPECT_EQ(half_bits("0.00006103515625"), 0x0400);
  EXPECT_THROW(half_bits("65520"), ParseError);
}

// ---- large graphs ----

TEST(Text, a_graph_of_100000_nodes) {
  std::string text = "graph chain(%v0: f32[4,4]) {\n";
  for (int i = 1; i <= 100000; ++i) text += "  %v" + std::to_string(i) + ": f32[4,4] = relu(%v" + std::to_string(i - 1) + ")\n";
  text += "  return %v100000\n}\n";
  EXPECT_EQ(print(parse(text)), text);
}

}  // namespace
}  // namespace tapedeck
