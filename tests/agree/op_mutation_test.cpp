// Changes one thing at a time in the examples of every op: the dtype, the rank or an extent of an operand, the number of
// operands, or one element of an attribute. Inference must refuse the call with a TypeError, or the op must do what it says:
// sizes are computed without overflow (the sanitizers watch this), a view stays inside its operand, and where the result is
// small, an eager run and a replay give the same bits.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ir/strides.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/all_ops.h>

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace tapedeck::testing::op_mutation_test {
namespace {

#ifdef TAPEDECK_SANITIZED
constexpr std::uint64_t kReplayEvery = 8;  // this build is twenty times as slow
#else
constexpr std::uint64_t kReplayEvery = 1;
#endif

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max(),
                       kSmallest = std::numeric_limits<std::int64_t>::min();

// An example whose operand types or attributes were changed.
struct Mutant : Example {
  std::string change;

  unsigned char* field(const Field& f) { return attributes.data() + f.offset; }
  std::string name() const {
    std::string all = op->name;
    for (const Operand& o : operands) all += " " + to_string(o.type);
    return all + ": " + change;
  }
};

bool legal(const Type& t) { return checked_bytes(t.dtype, {t.shape.sizes, static_cast<std::size_t>(t.shape.rank)}) >= 0; }

// ---- the changes ----

std::vector<std::int64_t> other_numbers(std::int64_t v) {
  std::vector<std::int64_t> all{0,         1,         -1,       v + (v < kLargest), v - (v > kSmallest), std::int64_t{1} << 31,
                                1LL << 32, 1LL << 46, kLargest, kSmallest,          (1LL << 31) - 1};
  std::erase(all, v);
  return all;
}

using Take = std::function<void(Mutant)>;

void change_operands(const Mutant& from, const Take& take) {
  const auto changed = [&](std::size_t i, const Type& type, const std::string& what) {
    Mutant m = from;
    Operand& o = m.operands[i];
    if (type.dtype != o.type.dtype) o.low = 0, o.high = 2;  // a range that every dtype has
    o.type = type;
    m.change = fmt::format("operand {} {}", i, what);
    if (legal(type)) take(std::move(m));
  };
  for (std::size_t i = 0; i < from.operands.size(); ++i) {
    const Type type = from.operands[i].type;
    for (int d = 0; d < kDTypeCount; ++d)
      if (static_cast<DType>(d) != type.dtype) changed(i, {static_cast<DType>(d), type.shape}, "has another dtype");
    for (int d = 0; d < type.shape.rank; ++d)
      for (const std::int64_t size : other_numbers(type.shape[d])) {
        Type t = type;
        t.shape[d] = size;
        changed(i, t, fmt::format("has the extent {} in dimension {}", size, d));
      }
    if (type.shape.rank < kMaxRank)
      for (const std::int64_t size : {1, 2}) {
        Type t = type;
        t.shape.sizes[t.shape.rank++] = size;
        changed(i, t, "has one more dimension");
      }
    if (type.shape.rank > 0) {
      Type t = type;
      --t.shape.rank;
      changed(i, t, "has one dimension less");
    }
    Mutant less = from;
    less.operands.erase(less.operands.begin() + static_cast<std::ptrdiff_t>(i));
    less.change = fmt::format("operand {} is missing", i);
    take(std::move(less));
  }
  if (from.operands.empty()) return;
  Mutant more = from;
  more.operands.push_back(more.operands.back());
  more.change = "the last operand stands there twice";
  take(std::move(more));
}

template <class T, class Values>
void change_field(const Mutant& from, const Field& field, const Values& values, const Take& take) {
  for (const T& value : values) {
    Mutant m = from;
    std::memcpy(m.field(field), &value, sizeof value);
    m.change = fmt::format("the attribute {} is changed", field.name);
    if constexpr (std::is_arithmetic_v<T>) m.change = fmt::format("{}={}", field.name, value);
    take(std::move(m));
  }
}

void change_list(const Mutant& from, const Field& field, const Take& take) {
  Ints list;
  std::memcpy(&list, from.attributes.data() + field.offset, sizeof list);
  std::vector<Ints> all;
  for (int i = 0; i < list.size; ++i)
    for (const std::int64_t v : other_numbers(list.items[i])) {
      all.push_back(list);
      all.back().items[i] = v;
    }
  if (list.size > 0) {
    all.push_back(list);
    --all.back().size;
  }
  if (list.size < kMaxRank) {
    all.push_back(list);
    all.back().items[all.back().size++] = 1;
  }
  for (const Ints& other : all) {
    Mutant m = from;
    std::memcpy(m.field(field), &other, sizeof other);
    m.change = fmt::format("{}=[{}]", field.name, fmt::join(other.begin(), other.end(), ","));
    take(std::move(m));
  }
}

void change_attributes(const Mutant& from, const Take& take) {
  for (const Field& field : fields_of(*from.op)) {
    std::int64_t number = 0;
    switch (field.kind) {
      case FieldKind::integer:
        std::memcpy(&number, from.attributes.data() + field.offset, sizeof number);
        change_field<std::int64_t>(from, field, other_numbers(number), take);
        break;
      case FieldKind::real:
        change_field<double>(from, field,
                             std::vector<double>{0, -1, 0.5, 1e300, -1e300, std::numeric_limits<double>::infinity(),
                                                 std::numeric_limits<double>::quiet_NaN()},
                             take);
        break;
      case FieldKind::boolean:
        change_field<unsigned char>(from, field, std::vector<unsigned char>{0, 1}, take);
        break;
      case FieldKind::dtype:
        for (int d = 0; d < kDTypeCount; ++d) change_field<DType>(from, field, std::vector<DType>{static_cast<DType>(d)}, take);
        break;
      case FieldKind::string:
        change_field<Name>(from, field, std::vector<Name>{Name(""), Name("no such name")}, take);
        break;
      case FieldKind::ints:
        change_list(from, field, take);
        break;
      case FieldKind::tensor:
        break;
    }
  }
}

// ---- the checks ----

// Every element of a view of a dense operand must be an element of the operand.
void check_view(const Mutant& m, const Type& out) {
  const Type in = m.operands[0].type;
  std::int64_t strides[kMaxRank], offset = 0, out_strides[kMaxRank];
  dense_strides(in.shape, strides);
  if (!m.op->view(in, strides, m.attrs(), out, &offset, out_strides) || out.numel() == 0) return;
  __int128 low = offset, high = offset;
  for (int d = 0; d < out.shape.rank; ++d)
    (out_strides[d] < 0 ? low : high) += static_cast<__int128>(out.shape[d] - 1) * out_strides[d];
  EXPECT_GE(low, 0) << m.name();
  EXPECT_LT(high, static_cast<__int128>(in.numel())) << m.name();
}

constexpr std::int64_t kSmallBytes = 1 << 16;

bool small(const Mutant& m, const std::vector<Type>& outputs) {
  std::int64_t bytes = 0;
  for (const auto& types : {m.types(), outputs})
    for (const Type& t : types) {
      if (t.bytes() > kSmallBytes) return false;
      bytes += t.bytes();
    }
  return bytes <= kSmallBytes && workspace_bytes(*m.op, m.types(), outputs, m.attrs()) <= kSmallBytes * 16 &&
         cost_us(*m.op, m.types(), outputs, m.attrs()) <= 1000;
}

std::vector<Tensor> operands_of(const Mutant& m) {
  std::mt19937_64 random(5);
  std::vector<Tensor> all;
  for (const Operand& o : m.operands) all.push_back(drawn_operand(o.type, o, random));
  return all;
}

Graph graph_of(const Mutant& m, const std::vector<Type>& outputs) {
  Graph g;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < m.operands.size(); ++i)
    inputs.push_back(g.add_input(Name(fmt::format("x{}", i)), m.operands[i].type));
  const NodeId n = g.add_node(*m.op, inputs, m.attrs(), outputs);
  for (std::int32_t k = 0; k < g.nodes[n].n_outputs; ++k) g.outputs.push_back(g.nodes[n].first_output + k);
  g.output_names.resize(g.outputs.size());
  verify(g);
  return g;
}

// The results of one way to run the call, or the text of its ExecutionError.
struct Outcome {
  std::vector<Tensor> results;
  std::string error;
};
template <class F>
Outcome outcome(F&& f) {
  try {
    return {f(), ""};
  } catch (const ExecutionError& error) {
    return {{}, error.what()};
  }
}

void check_runs(const Mutant& m, const std::vector<Type>& outputs, bool replay) {
  const NoGrad no_grad;
  const std::vector<Tensor> operands = operands_of(m);
  const Outcome eager = outcome([&] { return apply_all(*m.op, operands, m.attrs(), {__FILE__, __LINE__}); });
  for (std::size_t k = 0; k < eager.results.size(); ++k) EXPECT_EQ(eager.results[k].type(), outputs[k]) << m.name();
  if (!replay || m.op->is(kDeclaredTypes | kPlanOnly)) return;
  const Outcome replayed = outcome([&] {
    Executor executor(make_plan(graph_of(m, outputs)), {.threads = 1});
    for (std::size_t i = 0; i < operands.size(); ++i) executor.set_input(static_cast<int>(i), operands[i]);
    return executor.run_and_outputs();
  });
  ASSERT_EQ(eager.error.empty(), replayed.error.empty()) << m.name() << "\n" << eager.error << "\n" << replayed.error;
  expect_equal_bits(replayed.results, eager.results, m.name());
}

struct Counts {
  std::uint64_t refused = 0, large = 0, run = 0, replayed = 0;
};

void check(const Mutant& m, Counts* counts) {
  std::vector<Type> outputs;
  try {
    infer_types(*m.op, m.types(), m.attrs(), outputs);
  } catch (const TypeError&) {
    ++counts->refused;
    return;
  }
  EXPECT_TRUE(cost_us(*m.op, m.types(), outputs, m.attrs()) >= 0) << m.name();
  EXPECT_GE(workspace_bytes(*m.op, m.types(), outputs, m.attrs()), 0) << m.name();
  if (m.op->view && m.operands.size() == 1) check_view(m, outputs[0]);
  if (!small(m, outputs)) {
    ++counts->large;
    return;
  }
  const bool replay = counts->run++ % kReplayEvery == 0;
  counts->replayed += replay;
  check_runs(m, outputs, replay);
}

class OpMutation : public ::testing::TestWithParam<int> {};
constexpr int kShards = 8;

TEST_P(OpMutation, IsRefusedOrRunsAsItSays) {
  Settings poisoned = settings();
  poisoned.poison = 1;
  const ScopedSettings scope(poisoned);
  Counts counts;
  int turn = 0;
  for (const Op* op : chosen_ops()) {
    if (turn++ % kShards != GetParam()) continue;
    for (const char* text : op->examples) {
      const Mutant from{parse_example(*op, text), ""};
      const Take take = [&](const Mutant& m) { guarded(*op, m.name(), [&] { check(m, &counts); }); };
      change_operands(from, take);
      change_attributes(from, take);
    }
  }
  fmt::print("{} refused, {} large, {} run, {} of them replayed\n", counts.refused, counts.large, counts.run, counts.replayed);
  EXPECT_GT(counts.refused, 0u);
  EXPECT_GT(counts.replayed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Shards, OpMutation, ::testing::Range(0, kShards));

}  // namespace
}  // namespace tapedeck::testing::op_mutation_test
