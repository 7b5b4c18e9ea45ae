// Measures one op after the other. For each example of an op it chooses larger operands that type inference accepts, builds a
// graph of this one node, replays the graph on one thread, and keeps the time of the kernel. fit_rates() turns the points of
// an op into its rates.
#include <tapedeck/capture/measure/calibrate.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/example.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

namespace tapedeck {

namespace {

using Clock = std::chrono::steady_clock;

struct Effort {
  double seconds;                // of one op, about
  double most_us;                // of one run, by the built-in estimate
  double sample_us;              // of runs per point
  std::vector<double> elements;  // operands and results together
};
constexpr double kMiddle = 8'000;

Effort effort_of(const CalibrateOptions& options) {
  Effort e = options.quick ? Effort{0.02, 1000, 200, {20e3, 400e3}} : Effort{0.15, 8000, 1000, {2e3, 30e3, 300e3, 2e6}};
  if (options.op_seconds > 0) e.seconds = options.op_seconds;
  return e;
}

// ---- sizes ----

// An op on operands of these types.
struct Case {
  ParsedExample example;
  std::vector<Type> outputs;
};

std::optional<Case> inferred(const ParsedExample& e) {
  try {
    Case c{e, {}};
    infer_types(*e.op, e.types(), e.attrs(), c.outputs);
    return c;
  } catch (const Error&) {
    return std::nullopt;
  }
}

double element_count(const std::vector<Type>& types) {
  double n = 0;  // in floating point: a product of sizes may not fit
  for (const Type& t : types) {
    double product = 1;
    for (const std::int64_t size : t.shape) product *= static_cast<double>(size);
    n += product;
  }
  return n;
}

// Every axis of that size (0: every axis) times the largest power of two within the bounds that inference accepts.
std::optional<Case> enlarged(const ParsedExample& e, std::int64_t size, double most_elements, double most_us) {
  for (std::int64_t factor = std::int64_t{1} << 20; factor > 1; factor /= 2) {
    ParsedExample larger = e;
    for (ExampleOperand& o : larger.operands)
      for (int d = 0; d < o.type.shape.rank; ++d)
        if (size == 0 || o.type.shape[d] == size) o.type.shape[d] *= factor;
    if (element_count(larger.types()) > most_elements) continue;
    const std::optional<Case> c = inferred(larger);
    if (!c || element_count(larger.types()) + element_count(c->outputs) > most_elements) continue;
    if (cost_us(*e.op, larger.types(), c->outputs, e.attrs()) <= most_us) return c;
  }
  return std::nullopt;
}

std::set<std::int64_t> sizes_of(const ParsedExample& e) {
  std::set<std::int64_t> sizes;
  for (const ExampleOperand& o : e.operands)
    for (const std::int64_t size : o.type.shape)
      if (size > 1) sizes.insert(size);
  return sizes;
}

// The example as it stands; for each bound all sizes together; then each size alone, from an example that is a little larger
// already and from the example itself: so the rates see square and long, and what is small in one direction.
std::vector<Case> cases_of(const ParsedExample& e, const Effort& effort) {
  std::vector<Case> cases;
  const auto add = [&](std::optional<Case> c) {
    if (c) cases.push_back(std::move(*c));
  };
  add(inferred(e));
  if (std::any_of(e.operands.begin(), e.operands.end(), [](const ExampleOperand& o) { return o.type.numel() == 0; }))
    return cases;
  for (const double elements : effort.elements) add(enlarged(e, 0, elements, effort.most_us));
  const std::optional<Case> middle = enlarged(e, 0, kMiddle, effort.most_us);
  for (const ParsedExample* base : {middle ? &middle->example : nullptr, &e}) {
    if (!base || sizes_of(*base).size() < 2) continue;
    for (const double elements : effort.elements)
      for (const std::int64_t size : sizes_of(*base)) add(enlarged(*base, size, elements, effort.most_us));
  }
  return cases;
}

// ---- measuring ----

// Elements in the operand's range; a short pattern again and again, because drawing millions of them would take longer than the
// kernels.
Tensor operand_of(const ExampleOperand& o, std::uint64_t seed) {
  constexpr std::int64_t kPattern = 4093;  // prime, so that rows differ
  const bool whole = !is_floating(o.type.dtype);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  std::vector<double> pattern;
  for (std::int64_t i = 0; i < std::min(kPattern, o.type.numel()); ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double x = o.low + (o.high - o.low) * (static_cast<double>(state >> 11) * 0x1p-53);
    pattern.push_back(whole ? std::floor(x) : x);
  }
  const auto fill = [&]<class T>(T, const Type& type) {
    std::vector<T> values(static_cast<std::size_t>(type.numel()) + 1);
    for (std::size_t i = 0; i + 1 < values.size(); ++i) values[i] = static_cast<T>(pattern[i % pattern.size()]);
    return from_bytes(type, values.data());
  };
  switch (o.type.dtype) {
    case DType::f32:
      return fill(float{}, o.type);
    case DType::f64:
      return fill(double{}, o.type);
    case DType::i32:
      return fill(std::int32_t{}, o.type);
    case DType::i64:
      return fill(std::int64_t{}, o.type);
    case DType::u8:
    case DType::boolean:
      return fill(std::uint8_t{}, o.type);
    case DType::f16:
    case DType::bf16:
      break;
  }
  return cast(fill(float{}, {DType::f32, o.type.shape}), o.type.dtype);
}

// A graph of nothing but the op.
Graph graph_of(const Case& c) {
  Graph g;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < c.example.operands.size(); ++i)
    inputs.push_back(g.add_input(fmt::format("x{}", i), c.example.operands[i].type));
  const NodeId n = g.add_node(*c.example.op, inputs, c.example.attrs(), c.outputs);
  for (std::int32_t i = 0; i < g.nodes[n].n_outputs; ++i) {
    g.outputs.push_back(g.nodes[n].first_output + i);
    g.output_names.emplace_back();
  }
  return g;
}

// Nanoseconds of the op's own kernel calls in one run; negative if it had none (a pass saw through it).
double kernel_ns(const Timeline& timeline, const Plan& plan, const Op& op) {
  std::int64_t ns = -1;
  for (const Slice& s : timeline.slices)
    if (s.node != kNone && plan.graph.nodes[s.node].op == &op)
      ns = std::max<std::int64_t>(ns, 0) + s.end_ns - s.start_ns - clock_read_ns();
  return static_cast<double>(ns);
}

// In a step, other nodes have run since this one's operands were last used: between runs the near caches fill with something
// else. Without that, small updates of parameters looked eight times cheaper than they are.
class CacheSweep {
 public:
  void operator()() {
    for (std::size_t i = 0; i < bytes_.size(); i += 64) bytes_[i] = static_cast<unsigned char>(bytes_[i] + 1);
  }

 private:
  std::vector<unsigned char> bytes_ = std::vector<unsigned char>(3 << 19);
};

// The lower quartile over some runs: other programs on the machine can only add time.
std::optional<CostPoint> measure(const Case& c, const Effort& effort, CacheSweep* sweep) {
  constexpr std::size_t kLeastRuns = 5, kMostRuns = 25;
  PlanOptions how;
  how.strategy = Strategy::none;
  how.find_floor = false;
  Executor executor(make_plan(graph_of(c), how));
  for (std::size_t i = 0; i < c.example.operands.size(); ++i)
    executor.set_input(static_cast<int>(i), operand_of(c.example.operands[i], i + 1));
  const Op& op = *c.example.op;
  Timeline timeline;
  for (int i = 0; i < 2; ++i) executor.run(&timeline);
  if (kernel_ns(timeline, executor.plan(), op) < 0) return std::nullopt;
  std::vector<double> ns;
  double total = 0;
  while (ns.size() < kLeastRuns || (ns.size() < kMostRuns && total < effort.sample_us * 1000)) {
    (*sweep)();
    executor.run(&timeline);
    ns.push_back(std::max(kernel_ns(timeline, executor.plan(), op), 0.0));
    total += ns.back();
    if (total > 20 * effort.most_us * 1000) break;  // far slower than estimated
  }
  std::nth_element(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 4), ns.end());
  const Cost cost = counted_cost(op, c.example.types(), c.outputs, c.example.attrs());
  return CostPoint{cost.flops, cost.bytes, ns[ns.size() / 4] / 1000};
}

bool measurable(const Op& op) {
  return op.kernels[static_cast<int>(DeviceType::cpu)] && op.n_regions == 0 && !op.examples.empty() && !op.is(kEffect) &&
         !op.is(kPlanOnly) && !op.is(kView) && !op.is(kZeroCost);
}

std::string types_text(const ParsedExample& e) {
  std::string text;
  for (const Type& t : e.types()) text += (text.empty() ? "" : ", ") + to_string(t);
  return text;
}

class Calibrator {
 public:
  Calibrator(const CalibrateOptions& options, std::vector<CalibrationPoint>* points)
      : options_(options), effort_(effort_of(options)), points_(points) {}

  Calibration run() {
    const std::vector<const Op*> ops = chosen();
    Calibration c;
    c.machine = machine_name();
    c.program = TAPEDECK_VERSION;
    c.quick = options_.quick;
    std::vector<double> ratios[kOpKinCount];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::vector<CostPoint> points = measure_op(*ops[i], &ratios[static_cast<int>(kin_of(*ops[i]))]);
      if (std::optional<OpRates> rates = fit_rates(points)) {
        rates->version = ops[i]->version;
        c.ops.emplace(ops[i]->name, *rates);
      }
      if (options_.progress) options_.progress(static_cast<double>(i + 1) / static_cast<double>(ops.size()));
    }
    for (int k = 0; k < kOpKinCount; ++k)
      if (!ratios[k].empty()) c.kin_ratio[k] = median(ratios[k]);
    return c;
  }

 private:
  std::vector<const Op*> chosen() const {
    std::vector<const Op*> ops;
    if (options_.ops.empty()) {
      for (const Op* op : all_ops())
        if (measurable(*op)) ops.push_back(op);
      return ops;
    }
    for (const std::string& name : options_.ops) {
      const Op* op = find_op(name);
      if (!op) throw UsageError(fmt::format("there is no op '{}'", name));
      if (!measurable(*op)) throw UsageError(fmt::format("nothing can be measured of the op '{}'", name));
      ops.push_back(op);
    }
    return ops;
  }

  // Takes the examples in turns: when the time runs out, the last proportions of each are missing, and no whole example.
  std::vector<CostPoint> measure_op(const Op& op, std::vector<double>* ratios) {
    const auto end = Clock::now() + std::chrono::duration<double>(effort_.seconds);
    std::vector<std::vector<Case>> cases;
    std::size_t longest = 0;
    for (const char* text : op.examples) {
      cases.push_back(cases_of(parse_example(op, text), effort_));
      longest = std::max(longest, cases.back().size());
    }
    std::vector<CostPoint> points;
    std::set<std::string> seen;
    for (std::size_t k = 0; k < longest; ++k) {
      for (const std::vector<Case>& of_example : cases) {
        if (k >= of_example.size()) continue;
        if (options_.cancel && *options_.cancel) throw Cancelled("interrupted");
        if (can_carry_rates(points) && Clock::now() > end) return points;
        const Case& c = of_example[k];
        if (seen.insert(types_text(c.example)).second) add(c, &points, ratios);
      }
    }
    return points;
  }

  void add(const Case& c, std::vector<CostPoint>* points, std::vector<double>* ratios) {
    try {
      const std::optional<CostPoint> point = measure(c, effort_, &sweep_);
      if (!point) return;
      points->push_back(*point);
      const double estimate = cost_us(*c.example.op, c.example.types(), c.outputs, c.example.attrs());
      if (estimate > 0 && point->us > 0) ratios->push_back(point->us / estimate);
      if (points_) points_->push_back({c.example.op->name, types_text(c.example), *point});
    } catch (const Error&) {
      // random operands of larger sizes are not always ones that the op takes
    }
  }

  const CalibrateOptions& options_;
  const Effort effort_;
  std::vector<CalibrationPoint>* points_;
  CacheSweep sweep_;
};

}  // namespace

Calibration calibrate(const CalibrateOptions& options, std::vector<CalibrationPoint>* points) {
  const NoGrad no_grad;
  return Calibrator(options, points).run();
}

}  // namespace tapedeck
