// Random graphs that use every feature of the representation must be the same after printing and parsing. Damaged text must
// give a ParseError at worst. Seeds are fixed; a failure prints its seed.
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {}

  Graph make(int n_nodes) {
    graph_ = Graph();
    names_.clear();
    graph_.name = chance(3) ? Name(odd_name()) : Name("g");
    for (int i = 0, n = pick(4); i < n; ++i) {
      graph_.add_input(fresh_name(false), type());
      if (chance(8)) graph_.values.back().role = static_cast<Role>(pick(7));
    }
    for (int i = 0, n = pick(4); i < n; ++i) graph_.add_state(fresh_name(false), type(), static_cast<Role>(pick(7)));
    for (int i = 0; i < n_nodes; ++i) add_node();
    finish();
    return std::move(graph_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int one_in) { return pick(one_in) == 0; }
  ValueId any_value() { return pick(graph_.value_count()); }

  std::string odd_name() {
    static const char* const names[] = {
        "12",       "0",   "_",    "a.b", "update", "return", "a b", "q\"uote", "back\\slash", "new\nline", "naïve", "\x01\x7f",
        "\xff\xfe", "f32", "true", "1e",  "1e5",    "-1",     "%",   "state",   "x=y",         "[",         "//"};
    return names[pick(static_cast<int>(std::size(names)))];
  }

  Name fresh_name(bool may_be_empty) {
    if (may_be_empty && chance(2)) return {};
    std::string name = chance(4) ? odd_name() : "v" + std::to_string(pick(1000));
    while (!names_.insert(name).second) name += std::to_string(pick(10));
    return Name(name);
  }

  Type type() {
    Type t;
    t.dtype = static_cast<DType>(pick(kDTypeCount));
    t.shape.rank = chance(20) ? kMaxRank : pick(4);
    for (int i = 0; i < t.shape.rank; ++i) t.shape[i] = chance(10) ? 0 : 1 + pick(3);
    return t;
  }

  Origin origin() {
    Origin o;
    o.phase = static_cast<Phase>(pick(3));
    if (chance(3)) o.of = Name(odd_name());
    o.clone = chance(8) ? chance(2) : !o.of.empty();
    if (chance(3)) o.twin = Name(odd_name());
    if (chance(3)) o.wish = static_cast<NodeWish>(pick(3));
    if (chance(3)) o.region = pick(2) ? pick(5) : std::numeric_limits<std::int32_t>::max();
    if (chance(3)) o.path = Name(odd_name());
    if (chance(3)) o.site = Name("train.cpp:" + std::to_string(pick(100)));
    return o;
  }

  void append(const char* op, std::vector<ValueId> inputs, const void* attrs, std::vector<Type> outputs) {
    std::vector<ValueId> after;
    if (graph_.value_count() > 0 && chance(4))
      for (int i = 0, n = 1 + pick(3); i < n; ++i) after.push_back(any_value());
    const NodeId id = graph_.add_node(*find_op(op), inputs, attrs, outputs, origin(), after);
    const Node& n = graph_.nodes[id];
    for (int i = 0; i < n.n_outputs; ++i) graph_.values[n.first_output + i].name = fresh_name(true);
  }

  void add_node() {
    switch (graph_.value_count() == 0 ? pick(3) : pick(7)) {
      case 0:
        return add_constant();
      case 1:
        return add_opaque();
      case 2:
        return add_full();
      case 3:
        return add_transpose();
      case 4:
        return add_cast();
      default: {
        const ValueId x = any_value();
        return append("stop_gradient", {x}, nullptr, {graph_.values[x].type});
      }
    }
  }

  double real() {
    static const double special[] = {0.0, -0.0, 1.0, 2.5, 1e-5, 1e300, -1e300, 5e-324, 0.1, 1.0 / 3, 1e16, 123456789.0};
    return chance(2) ? special[pick(static_cast<int>(std::size(special)))]
                     : std::ldexp(static_cast<double>(random_()), pick(200) - 100);
  }

  void add_full() {
    FullAttrs a;
    const Type t = type();
    for (int i = 0; i < t.shape.rank; ++i) a.shape.push_back(t.shape[i]);
    a.dtype = t.dtype;
    a.value = chance(8) ? std::numeric_limits<double>::infinity() : real();
    if (!is_floating(t.dtype)) {
      a.value = pick(2);  // every dtype holds 0 and 1
    } else if (chance(10)) {
      const std::uint64_t bits = 0xfff8000000000000u | random_();
      std::memcpy(&a.value, &bits, sizeof bits);
    }
    append("full", {}, &a, {t});
  }

  void add_opaque() {
    OpaqueAttrs a;
    a.us = std::fabs(real());
    std::vector<ValueId> inputs;
    if (graph_.value_count() > 0)
      for (int i = 0, n = pick(4); i < n; ++i) inputs.push_back(any_value());
    std::vector<Type> outputs;
    for (int i = 0, n = pick(4); i < n; ++i) outputs.push_back(type());
    append("opaque", inputs, &a, outputs);
  }

  void add_transpose() {
    const ValueId x = any_value();
    PermuteAttrs a;
    Type t = graph_.values[x].type;
    for (int i = t.shape.rank - 1; i >= 0; --i) {
      a.axes.push_back(i);
      t.shape[t.shape.rank - 1 - i] = graph_.values[x].type.shape[i];
    }
    append("transpose", {x}, &a, {t});
  }

  void add_cast() {
    const ValueId x = any_value();
    CastAttrs a;
    a.dtype = static_cast<DType>(pick(kDTypeCount));
    append("cast", {x}, &a, {{a.dtype, graph_.values[x].type.shape}});
  }

  void add_constant() {
    Literal literal;
    literal.type = type();
    if (!chance(4)) {
      const auto n = static_cast<std::size_t>(literal.type.bytes());
      auto* data = static_cast<unsigned char*>(std::malloc(n + 1));
      for (std::size_t i = 0; i < n; ++i)
        data[i] = static_cast<unsigned char>(literal.type.dtype == DType::boolean ? pick(2) : pick(256));
      literal.data = std::shared_ptr<const void>(data, [](void* p) { std::free(p); });
    } else if (chance(2)) {
      literal.tensor = Name(odd_name());
    }
    const Type t = literal.type;
    ConstantAttrs a;
    a.value.index = graph_.add_constant(std::move(literal));
    append("constant", {}, &a, {t});
  }

  void finish() {
    if (graph_.value_count() == 0) return;
    for (int i = 0, n = pick(4); i < n; ++i) {
      graph_.outputs.push_back(any_value());
      graph_.output_names.push_back(chance(2) ? graph_.values[graph_.outputs.back()].name : Name(odd_name()));
    }
    for (ValueId s = graph_.n_inputs; s < graph_.n_inputs + graph_.n_state; ++s) {
      std::vector<ValueId> fitting;
      for (ValueId v = 0; v < graph_.value_count(); ++v)
        if (graph_.values[v].type == graph_.values[s].type) fitting.push_back(v);
      if (chance(2)) graph_.updates.push_back({s, fitting[pick(static_cast<int>(fitting.size()))]});
    }
  }

  std::mt19937 random_;
  Graph graph_;
  std::set<std::string> names_;
};

std::vector<bool> read_values(const Graph& g) {
  std::vector<bool> read(g.values.size());
  for (const Node& n : g.nodes) {
    for (ValueId v : g.inputs(n)) read[v] = true;
    for (ValueId v : g.after(n)) read[v] = true;
  }
  for (ValueId v : g.outputs) read[v] = true;
  for (const Update& u : g.updates) read[u.value] = true;
  return read;
}

bool same_literal_text(const Literal* a, const Literal* b) {
  if ((a == nullptr) != (b == nullptr)) return false;
  if (!a) return true;
  if (a->type != b->type || (a->data == nullptr) != (b->data == nullptr)) return false;
  if (!a->data) return a->tensor == b->tensor;
  return std::memcmp(a->data.get(), b->data.get(), static_cast<std::size_t>(a->type.bytes())) == 0;
}

// The oracle: describes the first difference of two graphs; empty if they are equal. Names of unread results do not count,
// because the text does not show them.
std::string difference(const Graph& a, const Graph& b) {
  if (a.name != b.name) return "name";
  if (a.n_inputs != b.n_inputs || a.n_state != b.n_state) return "number of inputs or state values";
  if (a.values.size() != b.values.size()) return "number of values";
  const std::vector<bool> read = read_values(a);
  for (ValueId v = 0; v < a.value_count(); ++v) {
    const Value &x = a.values[v], &y = b.values[v];
    const bool named = x.node == kNone || read[v];
    if (x.type != y.type || x.node != y.node || x.role != y.role || (named && x.name != y.name))
      return "value " + a.value_name(v);
  }
  if (a.nodes.size() != b.nodes.size()) return "number of nodes";
  for (NodeId n = 0; n < a.node_count(); ++n) {
    const Node &x = a.nodes[n], &y = b.nodes[n];
    const auto list = [](std::span<const ValueId> s) { return std::vector<ValueId>(s.begin(), s.end()); };
    const Origin &o = x.origin, &p = y.origin;
    const bool same_origin = o.phase == p.phase && o.clone == p.clone && o.region == p.region && o.twin == p.twin &&
                             o.of == p.of && o.path == p.path && o.site == p.site;
    const bool abstract = a.literal(x) && !a.literal(x)->data;  // two constants without data never count as equal
    if (x.op != y.op || list(a.inputs(x)) != list(b.inputs(y)) || list(a.after(x)) != list(b.after(y)) ||
        x.first_output != y.first_output || x.n_outputs != y.n_outputs || !same_origin ||
        !same_literal_text(a.literal(x), b.literal(y)) || (!abstract && !same_attributes(a, x, b, y)))
      return "node " + a.node_text(n) + " is now " + b.node_text(n);
  }
  if (a.outputs != b.outputs || a.output_names != b.output_names) return "outputs";
  if (a.updates.size() != b.updates.size()) return "number of updates";
  for (std::size_t i = 0; i < a.updates.size(); ++i)
    if (a.updates[i].state != b.updates[i].state || a.updates[i].value != b.updates[i].value)
      return "update " + std::to_string(i);
  return {};
}

// ---- printing and parsing again ----

TEST(TextFuzz, random_graphs_round_trip) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const Graph g = RandomGraph(seed).make(static_cast<int>(seed % 40));
    ASSERT_NO_THROW(verify(g)) << "seed " << seed;
    const std::string text = print(g);
    Graph back;
    ASSERT_NO_THROW(back = parse(text)) << "seed " << seed << "\n" << text;
    ASSERT_EQ(difference(g, back), "") << "seed " << seed << "\n" << text;
    ASSERT_EQ(print(back), text) << "seed " << seed;
  }
}

TEST(TextFuzz, a_rewriter_that_copies_everything_changes_nothing) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const Graph g = RandomGraph(seed).make(30);
    Rewriter rewriter(g);
    for (NodeId n = 0; n < g.node_count(); ++n) rewriter.copy(n);
    const Graph copy = rewriter.finish();
    ASSERT_NO_THROW(verify(copy)) << "seed " << seed;
    ASSERT_EQ(print(copy), print(g)) << "seed " << seed;
  }
}

// ---- damaged text ----

// Makes one to four edits: changes, inserts or drops a byte, cuts the end off, or repeats a piece of the text somewhere
// else.
std::string mangled(std::string text, std::mt19937& random) {
  static const std::string interesting = "%\"\\()[]{},:=_0123456789.-+eE/ \n\tabfinx\x00\x80\xff";
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (std::size_t edit = 0, n = 1 + below(4); edit < n && !text.empty(); ++edit) {
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text[at] = interesting[below(interesting.size())];
        break;
      case 2:
        text.insert(at, 1, interesting[below(interesting.size())]);
        break;
      case 3:
        text.erase(at, 1 + below(8));
        break;
      case 4:
        text.insert(at, text.substr(below(text.size()), below(40)));
        break;
      default:
        if (below(10) == 0)
          text.resize(at);
        else
          text.insert(at, "9999999999999999999");
        break;
    }
  }
  return text;
}

// Parsing may throw only a ParseError with a position. Text that still parses must print and parse to the same graph.
void check_mangled(const std::string& text, const std::string& where) {
  try {
    const std::string printed = print(parse(text, "f"));
    ASSERT_EQ(print(parse(printed)), printed) << where << "\n" << text;
  } catch (const ParseError& error) {
    int line = 0, column = 0;
    ASSERT_EQ(std::sscanf(error.what(), "f:%d:%d: error: ", &line, &column), 2) << where << ": " << error.what();
    ASSERT_GE(line, 1);
    ASSERT_GE(column, 1);
  } catch (const std::exception& error) {
    FAIL() << where << ": " << error.what() << "\n" << text;
  }
}

TEST(TextFuzz, mangled_text_gives_parse_errors_only) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const std::string text = print(RandomGraph(seed).make(static_cast<int>(seed % 12)));
    for (int i = 0; i < 100; ++i) {
      check_mangled(mangled(text, random), "seed " + std::to_string(seed) + ", mutation " + std::to_string(i));
      if (HasFatalFailure()) return;
    }
  }
}

// One line for every op, so that the inference rules also meet damaged attributes.
const char kManyOps[] =
    R"(graph ops(%x: f32[2,3,8,8], %w: f32[4,3,3,3], %a: f32[5,6], %b: f32[6,7], %y: i32[5]) state(%rng: i64[2] [role=rng]) {
  %c: f32[2,4,8,8] = conv2d(%x, %w) {stride=[1,1], padding=[1,1]}
  %p: f32[2,4,4,4] = max_pool2d(%c) {window=[2,2], stride=[2,2]}
  %r: f32[2,64] = reshape(%p) {shape=[2,64]}
  %m: f32[5,7] = matmul(%a, %b)
  %s: f32[2,4] = slice(%r) {starts=[0,3], stops=[2,7]}
  %t: f32[4,2] = transpose(%s) {axes=[1,0]}
  %q: f32[3,4,2] = broadcast_to(%t) {shape=[3,4,2]}
  %k: f32[6,4,2] = concat(%q, %q) {axis=0}
  %e: f32[8,4,2] = pad(%k) {before=[1,0,0], after=[1,0,0]}
  %l: f32[5,7] = log_softmax(%m) {axis=1}
  %o: f32[5,7] = one_hot(%y) {classes=7, dtype=f32}
  %g: f32[5,7] = mul(%l, %o)
  %n: f32[] = mean(%g) {axes=[0,1], keepdims=false}
  %u: f32[5,7] = uniform(%rng) {shape=[5,7], dtype=f32, low=0.0, high=1.0, path="u"}
  %h: bool[5,7] = less(%u, %g)
  %i: f32[5,7] = where(%h, %u, %g)
  %z: f32[2] = full() {shape=[2], dtype=f32, value=1.0}
  %j: f32[2] = constant() {value=[1.0,2.0]}
  return %n, %i, %e, %z, %j
  update %rng = %rng
}
)";

TEST(TextFuzz, mangled_attributes_give_parse_errors_only) {
  ASSERT_EQ(print(parse(kManyOps)).substr(0, 10), "graph ops(");
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    check_mangled(mangled(kManyOps, random), "seed 7, mutation " + std::to_string(i));
    if (HasFatalFailure()) return;
  }
}

TEST(TextFuzz, deep_and_long_notes_neither_hang_nor_overflow) {
  const std::string deep(1000000, '[');
  EXPECT_THROW(parse("graph g(%x: f32[]) { %y: f32[] = relu(%x) [n=" + deep), ParseError);
  EXPECT_NO_THROW(parse("graph g(%x: f32[]) { %y: f32[] = relu(%x) [n=" + deep + std::string(1000000, ']') + "] return %y }"));
  std::string many;
  for (int i = 0; i < 100000; ++i) many += "n" + std::to_string(i) + "=1, ";
  EXPECT_NO_THROW(parse("graph g(%x: f32[]) { %y: f32[] = relu(%x) [" + many + "last] return %y }"));
}

}  // namespace
}  // namespace tapedeck
