// Random members of one pool run in random order. The oracles are a table of state values and run_eagerly().
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/replay/pool/replay_pool_graphs.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/seeds.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

struct Dice {
  std::uint64_t state;
  std::int64_t below(std::int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(n));
  }
};

// A random program that uses some entries of a table of state. It combines values of equal types, updates some state,
// returns some values, and may divide by an input.
class RandomMember {
 public:
  explicit RandomMember(Dice* dice) : dice_(*dice) {}

  Graph make(const std::string& name) {
    g_.name = name;
    rows_ = 1 + dice_.below(30);
    g_.add_input("x", f32({rows_, 6}));
    g_.add_input("q", {DType::i32, {5}});
    const std::pair<const char*, Type> table[] = {
        {"a", f32({4, 6})}, {"b", f32({6, 4})}, {"c", f32({6, 6})}, {"d", f32({6})}, {"n", {DType::i32, {5}}}};
    for (const auto& [state, type] : table)
      if (dice_.below(3) > 0) g_.add_state(state, type, Role::parameter);
    if (g_.n_state == 0) g_.add_state("a", f32({4, 6}), Role::parameter);
    rng_ = g_.add_state("rng", {DType::i64, {2}}, Role::rng);
    const std::int64_t nodes = 4 + dice_.below(20);
    for (std::int64_t i = 0; i < nodes; ++i) add_any();
    finish();
    return std::move(g_);
  }

 private:
  ValueId add(const char* op_name, std::initializer_list<ValueId> inputs, const void* attrs = nullptr) {
    const Op& op = *find_op(op_name);
    std::vector<Type> in, out;
    for (ValueId v : inputs) in.push_back(type(v));
    infer_types(op, in, attrs, out);
    return g_.nodes[g_.add_node(op, std::vector<ValueId>(inputs), attrs, out)].first_output;
  }
  const Type& type(ValueId v) const { return g_.values[v].type; }
  ValueId any(DType dtype) {
    for (;;) {
      const auto v = static_cast<ValueId>(dice_.below(g_.value_count()));
      if (type(v).dtype == dtype) return v;
    }
  }

  void add_any() {
    const ValueId v = any(DType::f32), o = any(DType::f32);
    Shape both;
    switch (dice_.below(7)) {
      case 0:
        add(dice_.below(2) ? "tanh" : "neg", {v});
        return;
      case 1:
      case 2:
        if (broadcast_shapes(type(v).shape, type(o).shape, &both)) add(dice_.below(2) ? "add" : "mul", {v, o});
        return;
      case 3:
        if (type(v).shape.rank == 2 && type(o).shape.rank == 2 && type(v).shape[1] == type(o).shape[0])
          add("tanh", {add("matmul", {v, o})});
        return;
      case 4:
        if (type(v).shape.rank > 0) {
          ReduceAttrs attrs;
          attrs.axes = {0};
          add("sum", {v}, &attrs);
        }
        return;
      case 5: {
        DropoutAttrs attrs;
        attrs.path = "drop." + std::to_string(g_.node_count());
        add("dropout", {v, rng_}, &attrs);
        return;
      }
      default:
        if (dice_.below(3))
          add("add", {any(DType::i32), any(DType::i32)});
        else
          g_.outputs.push_back(
              add("div", {any(DType::i32), any(DType::i32)}));  // an output, so that no pass removes the division and its fault
    }
  }

  void finish() {
    for (ValueId s = g_.n_inputs; s < g_.n_inputs + g_.n_state; ++s) {
      if (s == rng_) continue;
      if (dice_.below(2)) continue;
      ValueId next = kNone;
      for (ValueId v = g_.value_count() - 1; v >= 0 && next == kNone; --v)
        if (type(v) == type(s) && g_.values[v].node != kNone) next = v;
      if (next == kNone) next = add("neg", {s});
      const bool bounded = type(s).dtype == DType::f32;
      g_.updates.push_back({s, bounded ? add("tanh", {next}) : next});
    }
    if (dice_.below(2)) g_.updates.push_back({rng_, add("rng_next", {rng_})});
    for (int i = 0; i < 4; ++i) g_.outputs.push_back(static_cast<ValueId>(dice_.below(g_.value_count())));
    g_.output_names.resize(g_.outputs.size());
  }

  Dice& dice_;
  Graph g_;
  std::int64_t rows_ = 0;
  ValueId rng_ = kNone;
};

using Table = std::map<std::string, Tensor>;

// Members of random number, size and order in one pool. Members come and go, results are read late, any member may set
// state, and divisions by zero occur. All is compared with one table of state and run_eagerly().
class Interleaving {
 public:
  explicit Interleaving(std::uint64_t seed) : seed_(seed), dice_{seed * 0x9E3779B97F4A7C15u + 3} {}

  void run() {
    join();
    join();
    for (int step = 0; step < 30 && !::testing::Test::HasFatalFailure(); ++step) {
      switch (dice_.below(10)) {
        case 0:
          join();
          break;
        case 1:
          leave();
          break;
        case 2:
          set_some_state();
          break;
        case 3:
          check_results();
          break;
        default:
          run_one(members_[dice_.below(static_cast<std::int64_t>(members_.size()))]);
      }
    }
    for (const auto& m : members_) run_one(m);
    check_results();
    for (const auto& m : members_)
      for (const std::string& s : m->executor->state_names())
        EXPECT_TRUE(bit_equal(m->executor->state(s), table_.at(s))) << where() << ", state " << s;
    EXPECT_LE(pool_->planned_peak_bytes(), pool_->observed_peak_bytes()) << where();
  }

  int faults = 0, torn = 0;

 private:
  struct Member {
    Graph graph;
    std::unique_ptr<Executor> executor;
    std::vector<Tensor> inputs, results;
  };
  std::string where() const { return "seed " + std::to_string(seed_); }
  Tensor draw(const std::string& name, const Type& type) {
    if (type.dtype == DType::f32) return default_value(type, static_cast<std::uint64_t>(dice_.below(1000)), name);
    if (type.dtype == DType::i64) {
      const std::int64_t seed_and_step[] = {dice_.below(99), 0};
      return from_bytes(type, seed_and_step);
    }
    std::vector<std::int32_t> values(5);
    for (auto& v : values) v = static_cast<std::int32_t>(dice_.below(name == "q" ? 12 : 50));  // sometimes a zero
    return from_vector(values, {5});
  }

  void join() {
    auto m = std::make_shared<Member>();
    m->graph = RandomMember(&dice_).make("m" + std::to_string(++made_));
    PlanOptions options;
    if (dice_.below(3) == 0) options.segment_us = 0;
    if (dice_.below(3) == 0) options.budget_percent = 90;
    Plan plan = make_plan(m->graph, options);
    if (!plan.feasible) plan = make_plan(m->graph);
    m->executor = std::make_unique<Executor>(std::move(plan),
                                             ExecutorOptions{.threads = 1 + static_cast<int>(dice_.below(2)), .pool = pool_});
    members_.push_back(m);
    for (const std::string& s : m->executor->state_names())
      if (!table_.count(s)) set(*m, s);
    give_inputs(*m);
  }

  void leave() {
    if (members_.size() < 2) return;
    members_.erase(members_.begin() + dice_.below(static_cast<std::int64_t>(members_.size())));
    std::set<std::string> held;
    for (const auto& m : members_)
      for (const std::string& s : m->executor->state_names()) held.insert(s);
    std::erase_if(table_, [&](const auto& entry) { return !held.count(entry.first); });
  }

  void give_inputs(Member& m) {
    m.inputs.clear();
    for (ValueId v = 0; v < m.graph.n_inputs; ++v) {
      m.inputs.push_back(draw(m.graph.value_name(v), m.graph.values[v].type));
      m.executor->set_input(v, m.inputs.back());
    }
  }

  const Type& state_type(const Member& m, const std::string& name) const {
    for (ValueId v = m.graph.n_inputs;; ++v)
      if (m.graph.value_name(v) == name) return m.graph.values[v].type;
  }
  void set(Member& m, const std::string& name) {
    const Tensor value = draw(name, state_type(m, name));
    table_[name] = copied(value);
    if (dice_.below(4) == 0)
      m.executor->bind_state(name, copied(value));
    else
      m.executor->set_state(name, value);
  }
  void set_some_state() {
    Member& m = *members_[dice_.below(static_cast<std::int64_t>(members_.size()))];
    const std::vector<std::string> names = m.executor->state_names();
    set(m, names[dice_.below(static_cast<std::int64_t>(names.size()))]);
  }

  std::vector<Tensor> state_of(const Member& m) const {
    std::vector<Tensor> state;
    for (ValueId v = m.graph.n_inputs; v < m.graph.n_inputs + m.graph.n_state; ++v)
      state.push_back(copied(table_.at(m.graph.value_name(v))));
    return state;
  }

  void run_one(const std::shared_ptr<Member>& m) {
    if (dice_.below(2)) give_inputs(*m);
    std::optional<EagerResult> eager;
    try {
      eager = run_eagerly(m->graph, m->inputs, state_of(*m));
    } catch (const ExecutionError&) {
    }
    if (!eager) return fail_one(*m);
    m->executor->run();
    m->results = eager->outputs;
    for (std::size_t s = 0; s < eager->state.size(); ++s)
      table_[m->graph.value_name(m->graph.n_inputs + static_cast<ValueId>(s))] = eager->state[s];
    if (dice_.below(2)) check_results_of(*m);
  }

  void fail_one(Member& m) {
    ++faults;
    m.results.clear();
    const std::string text = message_of<ExecutionError>([&] { m.executor->run(); });
    if (!mentions(text, "state had been written already")) {
      for (const std::string& s : m.executor->state_names())
        EXPECT_TRUE(bit_equal(m.executor->state(s), table_.at(s))) << where() << ", whole state " << s;
      return;
    }
    ++torn;
    std::set<std::string> updated;
    for (const Update& u : m.graph.updates) updated.insert(m.graph.value_name(u.state));
    for (const auto& other : members_) {
      const std::vector<std::string> has = other->executor->state_names();
      const bool refused = std::any_of(has.begin(), has.end(), [&](const std::string& s) { return updated.count(s) > 0; });
      if (refused)
        EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { other->executor->run(); }), "still missing")) << where();
      else
        run_one(other);
    }
    for (const std::string& s : updated) set(m, s);
  }

  void check_results_of(const Member& m) {
    if (m.results.empty()) return;
    const std::vector<Tensor> got = m.executor->outputs();
    ASSERT_EQ(got.size(), m.results.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(bit_equal(got[i], m.results[i])) << where() << ", " << m.graph.name.view() << ", output " << i;
  }
  void check_results() {
    for (const auto& m : members_) check_results_of(*m);
  }

  std::uint64_t seed_;
  Dice dice_;
  int made_ = 0;
  std::shared_ptr<ReplayPool> pool_ = new_pool();
  Table table_;
  std::vector<std::shared_ptr<Member>> members_;
};

TEST(ReplayPoolRandom, InterleavedMembersEqualEager) {
  int faults = 0, torn = 0;
  constexpr std::uint64_t seeds = test::seeds(200);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Interleaving run(seed);
    run.run();
    faults += run.faults;
    torn += run.torn;
    if (HasFailure()) return;
  }
  EXPECT_GT(faults, test::seeds(20)) << "the faults are meant to happen";
  EXPECT_GT(torn, test::seeds(5));
}

}  // namespace
}  // namespace tapedeck
