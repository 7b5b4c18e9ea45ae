// Draws a random program line by line and runs each line at once. A line that throws, or whose results are too large or not
// sensible, is dropped and another is drawn. The examples in an op's block say which operands, ranges and attributes the op
// takes.
#include <tapedeck/tests/agree/random_program.h>
#include <tapedeck/tests/agree/subject.h>
#include <tapedeck/tests/engine/all_ops.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/example.h>
#include <tapedeck/kernels/attrs/functions.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

namespace tapedeck::agree {

namespace {

constexpr std::int64_t kMostElements = 600;  // most elements of one value
constexpr double kMostMagnitude = 50;

// For each op, the examples that can stand in a program: the results depend on the operands alone, and all types are small.
const std::vector<std::vector<ParsedExample>>& usable_examples() {
  static const std::vector<std::vector<ParsedExample>> all = [] {
    std::vector<std::vector<ParsedExample>> found;
    for (const Op* op : all_ops()) {
      if (op->is(kEffect) || op->is(kPlanOnly) || op->is(kDeclaredTypes) || op->n_regions || testing::of_a_test(*op)) continue;
      std::vector<ParsedExample> examples;
      for (const char* text : op->examples) {
        ParsedExample e = parse_example(*op, text);
        const bool small = std::all_of(e.operands.begin(), e.operands.end(),
                                       [](const ExampleOperand& o) { return o.type.numel() <= kMostElements; });
        if (small) examples.push_back(std::move(e));
      }
      if (!examples.empty()) found.push_back(std::move(examples));
    }
    return found;
  }();
  return all;
}

bool has_default_range(const ExampleOperand& o) {
  if (is_floating(o.type.dtype)) return o.low == -2 && o.high == 2;
  return o.low == 0 && o.high == (o.type.dtype == DType::boolean ? 2 : 4);
}

struct Variable {
  int id = -1;
  Type type;
  bool writable = false;          // the variable owns its bytes, or it is a view of such a variable
  std::optional<Range> integers;  // a leaf of integers has elements in this range
  bool gradient = false;          // the variable depends on a parameter
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15u + 11) { program_.seed = seed; }

  RandomProgram make() {
    const NoGrad no_grad;
    manual_seed(program_.seed);
    for (std::int64_t i = 2 + below(3); i > 0; --i) add_leaf(any_leaf(), {DType::f32, any_shape()}, {-1, 1});
    add_leaf(LeafKind::parameter, {DType::f32, any_shape()}, {-1, 1});
    const std::int64_t wanted = 4 + below(30);
    for (std::int64_t tries = 0; line_count(program_) < wanted && tries < 200; ++tries) add_any();
    finish();
    return std::move(program_);
  }

 private:
  // ---- random choices ----
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[below(static_cast<std::int64_t>(items.size()))];
  }

  Shape any_shape() {
    static const std::vector<Shape> shapes = {{},     {1},       {5},       {3, 5}, {3, 5}, {3, 1}, {1, 5},
                                              {4, 4}, {2, 3, 4}, {2, 1, 4}, {1, 1}, {6},    {4, 6}};
    return pick(shapes);
  }
  LeafKind any_leaf() {
    return pick(std::vector<LeafKind>{LeafKind::input, LeafKind::input, LeafKind::parameter, LeafKind::parameter,
                                      LeafKind::buffer, LeafKind::constant});
  }

  // ---- choosing variables ----
  Operand operand(const Variable& v) const { return {v.id, v.type, 0.5}; }

  Tensor elements_of(const Leaf& leaf) const {
    return drawn(leaf.type, leaf.range, program_.seed * 31 + static_cast<std::uint64_t>(leaf.var));
  }

  const Variable& add_leaf(LeafKind kind, const Type& type, Range range) {
    if (kind == LeafKind::parameter && !is_floating(type.dtype)) kind = LeafKind::input;
    const int id = program_.variables++;
    program_.leaves.push_back({kind, type, range, id});
    values_.resize(static_cast<std::size_t>(program_.variables));
    values_.back() = elements_of(program_.leaves.back());
    Variable v{id, type, false, {}, kind == LeafKind::parameter};
    if (!is_floating(type.dtype)) v.integers = range;
    pool_.push_back(v);
    return pool_.back();
  }

  std::vector<Variable> those(const std::function<bool(const Variable&)>& fit) const {
    std::vector<Variable> found;
    std::copy_if(pool_.begin(), pool_.end(), std::back_inserter(found), fit);
    return found;
  }
  // Chooses a variable that fits. Newer variables are likelier, so that programs become deep and not only wide.
  std::optional<Variable> choose(const std::function<bool(const Variable&)>& fit) {
    const std::vector<Variable> found = those(fit);
    if (found.empty()) return {};
    const auto n = static_cast<std::int64_t>(found.size());
    return found[chance(70) ? n - 1 - below(std::min<std::int64_t>(n, 4)) : below(n)];
  }
  std::optional<Variable> any_float() {
    return choose([](const Variable& v) { return is_floating(v.type.dtype); });
  }

  // ---- adding a line ----

  static bool sensible(const Tensor& t) {
    if (t.numel() > kMostElements) return false;
    if (!is_floating(t.dtype())) return true;
    for (double x : testing::elements(t))
      if (!(std::fabs(x) <= kMostMagnitude)) return false;
    return true;
  }

  // Runs the line. If that succeeds, the line becomes part of the program and its results become variables.
  bool add(Line line, bool writable) {
    if (line.first_result < 0) line.first_result = program_.variables;
    const Tensors before = values_;
    try {
      if (line.results.empty() && line.kind == LineKind::op) line.results = inferred(line);
      values_.resize(static_cast<std::size_t>(line.first_result) + line.results.size());
      run_line(line, values_);
      for (std::size_t i = 0; i < line.results.size(); ++i)
        if (!sensible(values_[static_cast<std::size_t>(line.first_result) + i])) throw UsageError("too large");
      for (const Operand& o : line.operands)
        if (line.results.empty() && !sensible(values_[o.var])) throw UsageError("too large");
    } catch (const Error&) {
      values_ = before;
      return false;
    }
    program_.variables = std::max<int>(program_.variables, line.first_result + static_cast<int>(line.results.size()));
    bool gradient = !line.body.empty();
    for (const Operand& o : line.operands) gradient = gradient || has_gradient(o.var);
    gradient = gradient && line.kind != LineKind::detach && !(line.op && line.op->is(kNoGradient));
    for (std::size_t i = 0; i < line.results.size(); ++i)
      pool_.push_back({line.first_result + static_cast<int>(i),
                       line.results[i],
                       writable && i == 0,
                       {},
                       gradient && is_floating(line.results[i].dtype)});
    (body_ ? *body_ : program_.lines).push_back(std::move(line));
    return true;
  }

  bool has_gradient(int var) const {
    return std::any_of(pool_.begin(), pool_.end(), [&](const Variable& v) { return v.id == var && v.gradient; });
  }

  std::vector<Type> inferred(const Line& line) const {
    std::vector<Type> types, results;
    for (const Operand& o : line.operands) types.push_back(o.type);
    infer_types(*line.op, types, line.attrs(), results);
    return results;
  }

  template <class Attrs>
  static std::vector<unsigned char> bytes_of(const Attrs& attrs) {
    std::vector<unsigned char> bytes(sizeof attrs);
    std::memcpy(bytes.data(), static_cast<const void*>(&attrs), sizeof attrs);
    return bytes;
  }

  bool add_op(const Op& op, const std::vector<Variable>& operands, std::vector<unsigned char> attributes) {
    Line line;
    line.op = &op;
    line.attributes = std::move(attributes);
    for (const Variable& v : operands) line.operands.push_back(operand(v));
    // A view that has no gradient is never written: eager gradients ignore such a write, but the graph's gradients do not.
    const bool own = operands.empty() || (operands[0].writable && (!body_ || operands[0].id >= body_begins_));
    return add(std::move(line), (!op.is(kView) || own) && &op != &ops::stop_gradient);
  }
  template <class Attrs>
  bool add_op(const Op& op, const std::vector<Variable>& operands, const Attrs& attrs) {
    return add_op(op, operands, bytes_of(attrs));
  }

  void add_any() {
    const std::int64_t what = below(100);
    if (what < 18)
      add_view();
    else if (what < 30)
      add_write();
    else if (what < 35)
      add_draw();
    else if (what < 38)
      add_region();
    else if (what < 42)
      add_control();
    else if (what < 45)
      add_cast();
    else if (what < 48)
      add_keep();
    else if (what < 50)
      add_detached();
    else if (what < 70)
      add_elementwise();
    else
      add_example();
  }

  void add_view() {
    const auto x = any_float();
    if (!x) return;
    const Shape& s = x->type.shape;
    switch (below(5)) {
      case 0: {
        PermuteAttrs attrs;
        for (int i = s.rank - 1; i >= 0; --i) attrs.axes.push_back(i);
        add_op(ops::transpose, {*x}, attrs);
        return;
      }
      case 1: {
        SliceAttrs attrs;
        for (int i = 0; i < s.rank; ++i) {
          const std::int64_t start = below(std::max<std::int64_t>(s[i], 1)), step = 1 + below(2);
          attrs.starts.push_back(start);
          attrs.stops.push_back(std::min(s[i], start + 1 + below(4)));
          attrs.steps.push_back(step);
        }
        add_op(ops::slice, {*x}, attrs);
        return;
      }
      case 2: {
        ShapeAttrs attrs;
        const std::int64_t n = s.numel();
        if (n % 2 == 0 && n > 0 && chance(50))
          attrs.shape = {2, n / 2};
        else if (chance(50))
          attrs.shape = {n};
        else
          attrs.shape = {1, n, 1};
        add_op(ops::reshape, {*x}, attrs);
        return;
      }
      case 3: {
        ShapeAttrs attrs;
        if (chance(40)) attrs.shape.push_back(2);
        for (int i = 0; i < s.rank; ++i) attrs.shape.push_back(s[i] == 1 ? 1 + below(4) : s[i]);
        add_op(ops::broadcast_to, {*x}, attrs);
        return;
      }
      default:
        add_op(chance(70) ? ops::alias : ops::stop_gradient, {*x}, {});
    }
  }

  void add_write() {
    // A body writes only to values that it has made itself.
    const auto x = choose(
        [&](const Variable& v) { return v.writable && is_floating(v.type.dtype) && v.id >= (body_ ? body_begins_ : 0); });
    if (!x) return;
    const auto y = choose([&](const Variable& v) {
      Shape both;
      return v.type.dtype == x->type.dtype && broadcast_shapes(x->type.shape, v.type.shape, &both) && both == x->type.shape;
    });
    Line line;
    line.operands = {operand(*x)};
    line.kind = LineKind::write;
    const std::int64_t what = below(10);
    if (what < 5 && y) {
      line.op = pick(std::vector<const Op*>{&ops::add, &ops::sub, &ops::mul, &ops::maximum});
      line.operands.push_back(operand(*y));
    } else if (what < 7 && y) {
      line.kind = LineKind::copy_in;
      line.operands.push_back(operand(*y));
    } else if (what < 9) {
      line.op = pick(std::vector<const Op*>{&ops::sin, &ops::tanh, &ops::relu, &ops::neg, &ops::sigmoid});
    } else {
      line.kind = LineKind::fill;
      line.number = static_cast<double>(below(9)) / 4 - 1;
    }
    if (!add(line, false)) run_again();
  }

  // A refused write may have changed some elements already. So all values are computed again.
  void run_again() {
    std::fill(values_.begin(), values_.end(), Tensor());
    for (const Leaf& leaf : program_.leaves) values_[leaf.var] = elements_of(leaf);
    run_lines(program_.lines, values_);
    if (carried_ >= 0) values_[carried_] = values_[carried_from_];
    if (body_) run_lines(*body_, values_);
  }

  void add_draw() {
    Line line;
    if (chance(75)) {
      const auto x = any_float();
      if (!x) return;
      line.kind = LineKind::dropout;
      line.operands = {operand(*x)};
      line.number = 0.1 + 0.2 * static_cast<double>(below(4));
      line.results = {x->type};
    } else {
      line.kind = LineKind::uniform;
      line.results = {{chance(80) ? DType::f32 : DType::f64, any_shape()}};
    }
    add(std::move(line), true);
  }

  void add_cast() {
    const auto x = any_float();
    if (x)
      add_op(ops::cast, {*x}, CastAttrs{pick(std::vector<DType>{DType::f32, DType::f32, DType::f16, DType::bf16, DType::f64})});
  }

  void add_keep() {
    if (body_) return;
    std::vector<Variable> buffers;
    for (const Leaf& leaf : program_.leaves)
      if (leaf.kind == LeafKind::buffer && is_floating(leaf.type.dtype)) buffers.push_back({leaf.var, leaf.type, false, {}});
    const auto value = any_float();
    if (buffers.empty() || !value) return;
    Line line;
    line.kind = LineKind::keep;
    line.operands = {operand(pick(buffers)), operand(*value)};
    add(std::move(line), false);
  }

  void add_detached() {
    const auto x = any_float();
    if (!x) return;
    Line line;
    line.kind = LineKind::detach;
    line.operands = {operand(*x)};
    line.results = {x->type};
    add(std::move(line), false);
  }

  // Draws a few lines for a body. They may read all variables. No line outside the body reads the variables that the body
  // makes.
  std::vector<Line> draw_body(std::vector<Variable>* made) {
    std::vector<Line> body;
    const std::size_t before = pool_.size();
    body_ = &body;
    body_begins_ = program_.variables;
    for (int tries = 0; tries < 12 && body.size() < 5; ++tries) {
      const std::int64_t what = below(100);
      what < 55 ? add_elementwise() : what < 70 ? add_write() : what < 85 ? add_draw() : add_view();
    }
    body_ = nullptr;
    made->assign(pool_.begin() + static_cast<std::ptrdiff_t>(before), pool_.end());
    pool_.resize(before);
    return body;
  }

  void add_region() {
    if (body_) return;
    std::vector<Variable> made;
    std::vector<Line> body = draw_body(&made);
    while (!body.empty() && (body.back().results.size() != 1 || !is_floating(body.back().results[0].dtype))) body.pop_back();
    if (body.empty()) return;
    bool writable = false;
    for (const Variable& v : made)
      if (v.id == body.back().first_result) writable = v.writable;
    Line line;
    line.kind = LineKind::region;
    line.results = body.back().results;
    line.outcome = {body.back().first_result, line.results[0], 0.5};
    line.body = std::move(body);
    add(std::move(line), writable);
  }

  void add_control() {
    const auto x = any_float(), y = any_float();
    if (body_ || !x || !y || x->type.numel() == 0) return;
    Line line;
    line.kind = pick(std::vector<LineKind>{LineKind::scan, LineKind::loop, LineKind::branch});
    line.operands = {operand(*x)};
    if (line.kind == LineKind::branch)
      line.operands.push_back(operand(*y));
    else
      line.checkpoint = pick(std::vector<std::int64_t>{0, 0, 2, kCheckpointSqrt, kCheckpointLog});
    line.number = line.kind == LineKind::scan ? static_cast<double>(below(4)) : 0.1 * static_cast<double>(1 + below(9));
    line.results = {x->type};
    // The body reads x through a variable of its own, the carried one.
    line.carried = program_.variables++;
    values_.resize(static_cast<std::size_t>(program_.variables));
    values_.back() = values_[x->id];
    pool_.push_back({line.carried, x->type, false, {}, x->gradient});
    const Variable carried = pool_.back();
    std::vector<Variable> made;
    carried_ = line.carried, carried_from_ = x->id;
    line.body = draw_body(&made);
    carried_ = -1;
    pool_.pop_back();
    line.outcome = operand(carried);
    for (const Variable& v : made)
      if (v.type == x->type) line.outcome = operand(v);
    add(std::move(line), true);
  }

  // Uses an op to bring the elements of v into the range that another op wants.
  Variable in_range(const Variable& v, const ExampleOperand& o) {
    if (has_default_range(o)) return v;
    const double margin = (o.high - o.low) * 0.01;
    if (!add_op(ops::clamp, {v}, ClampAttrs{o.low + margin, o.high - margin})) return v;
    return pool_.back();
  }

  // Adds an elementwise op on operands whose shapes broadcast.
  void add_elementwise() {
    const std::vector<ParsedExample>& examples = pick(elementwise_examples());
    const ParsedExample& e = pick(examples);
    std::vector<Variable> operands;
    Shape all;
    DType real = DType::f32;
    for (const ExampleOperand& o : e.operands) {
      const bool floats = is_floating(o.type.dtype);
      auto v = choose([&](const Variable& c) {
        if (floats != is_floating(c.type.dtype) || (!floats && c.type.dtype != o.type.dtype)) return false;
        if (!floats && !has_default_range(o)) return false;
        if (floats && !operands.empty() && c.type.dtype != real) return false;
        Shape both;
        return operands.empty() || broadcast_shapes(all, c.type.shape, &both);
      });
      if (!v) return;
      if (floats) {
        real = v->type.dtype;
        v = in_range(*v, o);
      }
      Shape both = v->type.shape;
      if (!operands.empty()) broadcast_shapes(all, v->type.shape, &both);
      all = both;
      operands.push_back(*v);
    }
    add_op(*e.op, operands, e.attributes);
  }

  static const std::vector<std::vector<ParsedExample>>& elementwise_examples() {
    static const std::vector<std::vector<ParsedExample>> found = [] {
      std::vector<std::vector<ParsedExample>> some;
      for (const auto& examples : usable_examples())
        if (examples[0].op->is(kElementwise) && !examples[0].operands.empty()) some.push_back(examples);
      return some;
    }();
    return found;
  }

  // Adds any op, on operands of the types of one of its examples.
  void add_example() {
    const ParsedExample& e = pick(pick(usable_examples()));
    std::vector<Variable> operands;
    for (const ExampleOperand& o : e.operands) {
      const auto v = operand_like(o);
      if (!v) return;
      operands.push_back(*v);
    }
    add_op(*e.op, operands, e.attributes);
  }

  std::optional<Variable> operand_like(const ExampleOperand& o) {
    const bool floats = is_floating(o.type.dtype);
    const auto same = choose([&](const Variable& v) {
      if (v.type != o.type) return false;
      return floats || (v.integers && v.integers->low >= o.low && v.integers->high <= o.high);
    });
    if (same && chance(80)) return floats ? in_range(*same, o) : *same;
    if (floats && chance(60))
      if (const auto made = reshaped_to(o)) return made;
    if (body_) return {};
    return add_leaf(floats ? any_leaf() : chance(70) ? LeafKind::input : LeafKind::constant, o.type, {o.low, o.high});
  }

  // The first elements of a variable that has at least as many, in another shape. A reshape, a slice and a reshape make it.
  // A clamp follows if the operand asks for a range of its own.
  std::optional<Variable> reshaped_to(const ExampleOperand& o) {
    const std::int64_t n = o.type.numel();
    const auto larger = choose([&](const Variable& v) { return v.type.dtype == o.type.dtype && v.type.numel() >= n && n > 0; });
    if (!larger) return {};
    ShapeAttrs flat, wanted;
    flat.shape = {larger->type.numel()};
    for (std::int64_t size : o.type.shape) wanted.shape.push_back(size);
    SliceAttrs first;
    first.starts = {0};
    first.stops = {n};
    if (!add_op(ops::reshape, {*larger}, flat) || !add_op(ops::slice, {pool_.back()}, first) ||
        !add_op(ops::reshape, {pool_.back()}, wanted))
      return {};
    return in_range(pool_.back(), o);
  }

  // ---- the end of the step ----

  void finish() {
    for (std::int64_t i = 1 + below(3); i > 0; --i)
      if (const auto v = choose([](const Variable& c) { return c.gradient && c.type.numel() > 0; }))
        program_.losses.push_back(operand(*v));
    for (const Leaf& leaf : program_.leaves)  // the step needs at least one parameter to train
      if (leaf.kind == LeafKind::parameter && leaf.type.numel() > 0) {
        program_.losses.push_back({leaf.var, leaf.type, 0.5});
        break;
      }
    for (std::int64_t i = below(4); i > 0; --i) program_.outputs.push_back(operand(pick(pool_)));
    program_.trainer = pick(std::vector<Trainer>{Trainer::none, Trainer::sgd, Trainer::adamw});
  }

  std::mt19937_64 random_;
  RandomProgram program_;
  Tensors values_;
  std::vector<Variable> pool_;
  std::vector<Line>* body_ = nullptr;     // the body that is being drawn
  int body_begins_ = 0;                   // the first variable of the body
  int carried_ = -1, carried_from_ = -1;  // the carried variable and the variable that it starts from
};

bool legal(const RandomProgram& program) {
  try {
    run_eager_twin(builder_of(program), program.seed);
  } catch (const Error&) {
    return false;
  }
  // In a capture, a loop or branch keeps its operands for backward. Other ops keep only the operands that their gradients
  // read. So a later write to such an operand may be refused in a capture although eager code accepts the write.
  if (std::none_of(program.lines.begin(), program.lines.end(), is_control)) return true;
  try {
    captured_subject(builder_of(program), program.seed);
  } catch (const GradientError& e) {
    return std::string(e.what()).find("was modified in place") == std::string::npos;
  } catch (const Error&) {
  }
  return true;
}

bool writes(const Line& line) {
  return line.kind == LineKind::write || line.kind == LineKind::copy_in || line.kind == LineKind::fill;
}

}  // namespace

// A write may make a saved tensor stale, and the other elements of a later step may cause an error. Then the last write is
// dropped, or the last line if the program has no write, until the program is legal.
RandomProgram random_program(std::uint64_t seed) {
  RandomProgram program = Generator(seed).make();
  while (!program.lines.empty() && !legal(program)) {
    auto last = std::find_if(program.lines.rbegin(), program.lines.rend(), writes);
    program.lines.erase(last == program.lines.rend() ? program.lines.end() - 1 : std::prev(last.base()));
  }
  return program;
}

}  // namespace tapedeck::agree
