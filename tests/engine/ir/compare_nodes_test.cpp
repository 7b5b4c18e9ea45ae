// Tests the comparison of nodes with regions, which does not print them. The oracle is equality of the printed text.
#include <tapedeck/engine/ir/compare_nodes.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

struct Body {
  std::string text;
  float element = 0;  // the element of large constants, which the text does not show
};

// A graph whose first node holds the body in its first region, or, if `nested`, in a region of that region.
Graph holding(const Body& body, bool nested) {
  std::string text = "cond(%p, %a) (%x: f32[2]) {\n" + body.text + "\n} (%x: f32[2]) { return %x }\n";
  if (nested) {
    text = "cond(%p, %p, %a) (%p: bool[], %a: f32[2]) {\n%r: f32[2] = " + text +
           "return %r } (%p: bool[], %x: f32[2]) { return %x }\n";
  }
  const TensorLookup lookup = [&](const std::string&, Literal* literal) {
    auto data = std::make_shared<std::vector<float>>(static_cast<std::size_t>(literal->type.numel()), body.element);
    literal->data = std::shared_ptr<const void>(data, data->data());
    return true;
  };
  text = "graph g(%p: bool[], %a: f32[2]) { %r: f32[2] = " + text + "return %r }";
  return parse(text, "t", body.element == 0 ? TensorLookup() : lookup);
}

const Graph& region_of(const Graph& g) { return *g.regions_of(g.nodes[0])[0]; }

TEST(CompareRegions, the_answer_is_that_of_their_text) {
  const std::string exp = ": f32[2] = exp(%x)", neg = "%y: f32[2] = neg(%x)", end = "\nreturn %y";
  const std::vector<Body> bodies = {
      {neg + end},
      {"%z: f32[2] = neg(%x)\nreturn %z"},
      {"%1: f32[2] = neg(%x)\nreturn %1"},
      {"%y" + exp + end},
      {neg + " [phase=backward]" + end},
      {neg + " [region=3]" + end},
      {neg + " [path=\"fc\"]" + end},
      {neg + " [site=\"a.cpp:1\"]" + end},
      {neg + " [site=\"a.cpp:2\"]" + end},
      {neg + " [twin=%x]" + end},
      {neg + " [twin=%x, clone=true]" + end},
      {neg + "\nreturn result=%y"},
      {neg + "\nreturn y=%y"},
      {"%u" + exp + "\n" + neg + end},
      {"%v" + exp + "\n" + neg + end},
      {"_" + exp + "\n" + neg + end},
      {"%u" + exp + "\n" + neg + " [after=[%u]]" + end},
      {"%v" + exp + "\n" + neg + " [after=[%v]]" + end},
      {"%u" + exp + "\n%y" + exp + " [of=%u]" + end},
      {"%v" + exp + "\n%y" + exp + " [of=%u]" + end},
      {"%u" + exp + "\n%y" + exp + " [of=%u, clone=false]" + end},
      {"%s: f32[1] = sum(%x) {axes=[0], keepdims=true}\n" + neg + end},
      {"%s: f32[] = sum(%x) {axes=[0], keepdims=false}\n" + neg + end},
      {"%y: f32[2] = constant() {value=[1.0,0.0]}" + end},
      {"%y: f32[2] = constant() {value=[1.0,-0.0]}" + end},
      {"%y: f32[2] = constant() {value=[1.0,nan]}" + end},
      {"%y: f32[2] = constant() {value=[1.0,nan.7fc00001]}" + end},
      {"%y: f32[2] = constant() {abstract=true}" + end},
      {"%y: f32[2] = constant() {tensor=\"a\"}" + end},
      {"%y: f32[2] = constant() {tensor=\"b\"}" + end},
      {"%y: f32[2] = constant() {tensor=\"a\"}" + end, 1},
      {"%y: f32[2] = constant() {tensor=\"b\"}" + end, 1},
      {"%y: f32[2] = constant() {tensor=\"b\"}" + end, 2},
      {"%k: f32[17] = constant() {tensor=\"a\"}\n" + neg + end},
      {"%k: f32[17] = constant() {tensor=\"a\"}\n" + neg + end, 1},
      {"%k: f32[17] = constant() {tensor=\"a\"}\n" + neg + end, 2},
      {"%k: f32[17] = constant() {tensor=\"b\"}\n" + neg + end, 2},
  };
  int same = 0;
  for (const bool nested : {false, true})
    for (std::size_t i = 0; i < bodies.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        const Graph a = holding(bodies[i], nested), b = holding(bodies[j], nested);
        const bool expected = print(region_of(a)) == print(region_of(b));
        same += expected && i != j;
        EXPECT_EQ(same_attributes(a, a.nodes[0], b, b.nodes[0]), expected) << bodies[i].text << "\n--\n" << bodies[j].text;
        EXPECT_EQ(same_attributes(b, b.nodes[0], a, a.nodes[0]), expected) << bodies[i].text << "\n--\n" << bodies[j].text;
        EXPECT_EQ(hash_region(region_of(a)) == hash_region(region_of(b)), expected) << bodies[i].text << "\n--\n"
                                                                                    << bodies[j].text;
      }
  EXPECT_GT(same, 10) << "different bodies of the same text";
}

// Nothing reads %u and %v. But `follows` has the name %u, so it matters which of the two nodes makes %u.
TEST(CompareRegions, names_that_an_attribute_mentions_count) {
  const auto text = [](const char* first, const char* second) {
    return std::string(
               "graph g(%x: f32[4], %e: f32[4]) {\n  %y: f32[4] = dynamic(%x, %e) {follows=\"u.shape.0=e@0\"}"
               " (%x: f32[4], %e: f32[4]) {\n    ") +
           first + ": f32[4] = full() {shape=[4], dtype=f32, value=1.0}\n    " + second +
           ": f32[4] = full() {shape=[4], dtype=f32, value=2.0}\n    %z: f32[4] = neg(%x)\n    return %z\n  }\n  return %y\n}";
  };
  const Graph a = parse(text("%u", "%v")), b = parse(text("%v", "%u"));
  EXPECT_NE(print(a), print(b));
  EXPECT_EQ(print(parse(print(a))), print(a));
  EXPECT_FALSE(same_attributes(a, a.nodes[0], b, b.nodes[0]));
  const Graph c = parse(text("%u", "%w"));
  EXPECT_TRUE(same_attributes(a, a.nodes[0], c, c.nodes[0])) << "nothing mentions %v or %w";
}

TEST(CompareRegions, the_name_of_a_nested_region_does_not_count) {
  const Graph a = holding({"%y: f32[2] = neg(%x)\nreturn %y"}, true);
  for (const bool outer : {false, true}) {
    Graph changed = region_of(a);
    if (outer) {
      changed.name = "another";
    } else {
      Graph inner = *changed.regions_of(changed.nodes[0])[0];
      inner.name = "another";
      changed.regions[0] = std::make_shared<const Graph>(inner);
    }
    Graph b = a;
    b.regions[0] = std::make_shared<const Graph>(changed);
    EXPECT_EQ(print(changed) == print(region_of(a)), !outer);
    EXPECT_EQ(same_attributes(a, a.nodes[0], b, b.nodes[0]), !outer);
  }
}

}  // namespace
}  // namespace tapedeck
