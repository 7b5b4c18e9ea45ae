// Tests generated kernels on the host: their results have the bits of the CPU kernels, op by op.
#include <tapedeck/tests/capture/codegen/host_kernels.h>
#include <tapedeck/tests/engine/all_ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tapedeck {
namespace {

using test::FusedCase;
using test::Placement;

ValueId append(Graph* g, const Op& op, const std::vector<ValueId>& inputs, const void* attrs = nullptr) {
  std::vector<Type> in, out;
  for (ValueId v : inputs) in.push_back(g->values[v].type);
  infer_types(op, in, attrs, out);
  return g->nodes[g->add_node(op, inputs, attrs, out)].first_output;
}

void give(Graph* g, ValueId v) {
  g->outputs.push_back(v);
  g->output_names.emplace_back();
}

// ---- every op ----

Graph region_of(const testing::Example& e, const std::vector<Tensor>& operands) {
  Graph g;
  std::vector<ValueId> inputs;
  for (const Tensor& t : operands) inputs.push_back(g.add_input(fmt::format("x{}", inputs.size()), t.type()));
  give(&g, append(&g, *e.op, inputs, e.attrs()));
  return g;
}

bool has_kernel(const Op& op) {
  return op.is(kElementwise) && !op.is(kEffect) && op.n_regions == 0 && std::string_view(op.name) != "fused";
}

// Adds the example for one floating type, unless a generated kernel cannot hold it: then its op reports faults.
void add_example(const testing::Example& e, DType real, std::vector<FusedCase>* cases) {
  const std::vector<Tensor> operands = testing::make_operands(e, real, 5);
  Graph region = region_of(e, operands);
  if (region.values[region.outputs[0]].type.numel() == 0) return;
  FusedCase made(std::move(region), fmt::format("case_{}", cases->size()), operands);
  try {
    codegen::fused_source(made.region, made.layout);
  } catch (const DeviceError&) {
    const std::set<std::string> refused = {"div", "pow", "remainder", "fmod", "floor_divide", "left_shift", "right_shift"};
    EXPECT_TRUE(refused.count(e.op->name)) << e.text;
    EXPECT_FALSE(is_floating(operands[0].dtype())) << e.text;
    return;
  }
  cases->push_back(std::move(made));
}

class FusedOps : public ::testing::TestWithParam<DType> {};

TEST_P(FusedOps, HaveTheBitsOfTheirCpuKernels) {
  std::vector<FusedCase> cases;
  for (const Op* op : testing::chosen_ops()) {
    if (!has_kernel(*op)) continue;
    for (const char* text : op->examples) {
      const testing::Example e = testing::parse_example(*op, text);
      if (testing::usable_real(e, GetParam()) != GetParam()) continue;
      testing::guarded(*op, text, [&] { add_example(e, GetParam(), &cases); });
    }
  }
  EXPECT_GT(cases.size(), 80u);
  test::check_on_host(cases);
}

INSTANTIATE_TEST_SUITE_P(Types, FusedOps, ::testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& info) { return dtype_name(info.param); });

// ---- random regions ----

class RandomRegion {
 public:
  explicit RandomRegion(std::uint64_t seed) : random_(seed) {}

  FusedCase make(const std::string& name) {
    const Shape shapes[] = {{257}, {6, 8}, {3, 5, 16}, {4, 3, 7}, {2, 3, 2, 8}, {1, 40}, {}, {5, 1, 12}};
    shape_ = shapes[pick(8)];
    for (const DType dtype : kTypes) add_input(dtype, shape_);
    for (int i = 0; i < 4; ++i) add_input(kTypes[pick(std::size(kTypes))], smaller());
    const int nodes = 1 + pick(14);
    for (int i = 0; i < nodes; ++i) add_any();
    std::vector<ValueId> made;
    for (const Node& node : g_.nodes) made.push_back(node.first_output);
    give(&g_, made.back());
    for (std::size_t k = 0; k + 1 < made.size(); ++k)
      if (pick(5) == 0) give(&g_, made[k]);
    std::vector<Tensor> operands;
    std::vector<Placement> places;
    for (ValueId v = 0; v < g_.n_inputs; ++v) operands.push_back(test::random_tensor(g_.values[v].type, random_));
    for (std::size_t k = 0; k < operands.size() + g_.outputs.size(); ++k)
      places.push_back(pick(3) > 0 ? Placement::dense : pick(2) == 0 ? Placement::columns : Placement::padded);
    return FusedCase(std::move(g_), name, operands, places);
  }

 private:
  static constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                     DType::i32, DType::i64, DType::u8,  DType::boolean};

  int pick(std::size_t n) { return static_cast<int>(random_() % n); }
  const char* one_of(std::initializer_list<const char*> names) { return *(names.begin() + pick(names.size())); }
  const Type& type(ValueId v) const { return g_.values[v].type; }

  void add_input(DType dtype, const Shape& shape) { g_.add_input(fmt::format("x{}", g_.n_inputs), {dtype, shape}); }

  // A shape that broadcasts to that of the region.
  Shape smaller() {
    const int kept = pick(static_cast<std::size_t>(shape_.rank) + 1);
    Shape s;
    s.rank = kept;
    for (int d = 0; d < kept; ++d) s[d] = pick(2) == 0 ? 1 : shape_[shape_.rank - kept + d];
    return s;
  }

  // A value of the type; `full`: of the shape of the region. Each type has an input of the full shape.
  ValueId any_of(DType dtype, bool full) {
    for (;;) {
      const ValueId v =
          pick(2) == 0 ? g_.value_count() - 1 - pick(std::min<std::size_t>(g_.values.size(), 5)) : pick(g_.values.size());
      if (type(v).dtype == dtype && (!full || type(v).shape == shape_)) return v;
    }
  }

  void add(const char* name, const std::vector<ValueId>& inputs, const void* attrs = nullptr) {
    append(&g_, *find_op(name), inputs, attrs);
  }

  void add_any() {
    const DType dtype = kTypes[pick(std::size(kTypes))];
    const ValueId x = any_of(dtype, true), y = any_of(dtype, false);
    switch (pick(6)) {
      case 0: {
        const CastAttrs attrs{kTypes[pick(std::size(kTypes))]};
        return add("cast", {x}, &attrs);
      }
      case 1:
        return add("where", {any_of(DType::boolean, false), x, y});
      case 2:
        if (dtype == DType::boolean) return add(one_of({"logical_and", "logical_or", "logical_xor"}), {x, y});
        return add(one_of({"less", "equal", "greater_equal"}), {x, y});
      default:
        if (dtype == DType::boolean) return add("logical_not", {x});
        if (is_floating(dtype) && pick(2) == 0) return add_function(x, y);
        return add(one_of({"add", "sub", "mul", "maximum", "minimum"}), {x, y});
    }
  }

  void add_function(ValueId x, ValueId y) {
    if (pick(4) == 0) {
      const ClampAttrs attrs{-1.25, 2.5};
      return add("clamp", {x}, &attrs);
    }
    if (pick(3) == 0) return add("add_n", {x, x, x});
    if (pick(3) == 0) return add("div", {x, y});
    add(one_of({"exp", "tanh", "sigmoid", "silu", "neg", "sqrt", "erf", "sin"}), {x});
  }

  std::mt19937_64 random_;
  Graph g_;
  Shape shape_;
};

TEST(FusedSource, RandomRegionsHaveTheBitsOfTheirOpsOneByOne) {
  std::vector<FusedCase> cases;
  for (std::uint64_t seed = 0; seed < 120; ++seed) cases.push_back(RandomRegion(seed).make(fmt::format("region_{}", seed)));
  const auto wide = std::count_if(cases.begin(), cases.end(), [](const FusedCase& c) { return c.layout.lanes > 1; });
  EXPECT_GT(wide, 20);
  EXPECT_LT(wide, 110);
  test::check_on_host(cases);
}

// A conversion to f32 and back would change the bits of such a NaN; these ops move bytes only.
TEST(FusedSource, MovesHalvesWithTheirBits) {
  std::vector<FusedCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<std::uint16_t> bits = {0x7c01, 0xfe01, 0x7f81, 0xffc3, 0x0001, 0x8000, 0x7fff, 0x3c00};
    const Tensor x = from_bytes({dtype, {8}}, bits.data());
    const Tensor mask = greater(cast(arange(0, 8, 1, DType::f32), DType::f32), 3);
    Graph g;
    const ValueId m = g.add_input("m", mask.type()), a = g.add_input("a", x.type());
    const ValueId copied = append(&g, ops::copy, {a});
    give(&g, append(&g, ops::where, {m, copied, a}));
    cases.emplace_back(std::move(g), dtype_name(dtype), std::vector<Tensor>{mask, x});
  }
  test::check_on_host(cases);
  if (IsSkipped()) return;
  for (FusedCase& c : cases)
    c.outputs[0].for_elements([&](std::int64_t i, const unsigned char* got) {
      EXPECT_EQ(std::memcmp(got, static_cast<const unsigned char*>(c.operands[1].data()) + 2 * i, 2), 0) << c.name << ", " << i;
    });
}

}  // namespace
}  // namespace tapedeck
