#include <tapedeck/tests/gpu/harness/check_op.h>

#include <tapedeck/tests/engine/layouts.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace tapedeck::gpu {

using testing::Example;

void Findings::add(const Findings& other) {
  wrong.insert(wrong.end(), other.wrong.begin(), other.wrong.end());
  notes.insert(other.notes.begin(), other.notes.end());
  calls += other.calls;
}

std::string Findings::text() const {
  constexpr std::size_t kShown = 5;
  std::string all;
  for (std::size_t i = 0; i < std::min(kShown, wrong.size()); ++i) all += "  " + wrong[i] + "\n";
  if (wrong.size() > kShown) all += fmt::format("  and {} more\n", wrong.size() - kShown);
  return all;
}

namespace {

constexpr std::uint64_t kIntegerSeed = 5;
constexpr std::int64_t kManyElements = 5'000'000;  // in examples with more, only f32 is tried
constexpr DType kReals[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

constexpr Arrangement kDense = {};
constexpr Arrangement kArrangements[] = {
    {.name = "in place", .in_place = true},
    {.name = "transposed", .reversed = true, .strided_results = true},
    {.name = "columns", .columns = true},
    {.name = "columns, sliced", .columns = true, .offset = 3, .strided_results = true},
    {.name = "sliced", .offset = 3, .strided_results = true},
    {.name = "every second element", .gap = 2, .offset = 1, .strided_results = true},
    {.name = "transposed, sliced with a step", .reversed = true, .gap = 3, .offset = 5, .strided_results = true},
    {.name = "rows apart", .rows_apart = true, .strided_results = true},
    {.name = "rows repeated", .repeated = 1},
    {.name = "columns repeated", .repeated = 2},
    {.name = "all repeated", .repeated = ~0u},
};

// Ops that only move numbers, and have no trait that says so.
constexpr const char* kMoves[] = {"concat", "pad",     "full",         "arange",    "gather",     "scatter",
                                  "where",  "unstack", "stack",        "embedding", "max_pool2d", "max_pool2d_at_index",
                                  "max",    "min",     "index_select", "reshape",   "transpose",  "slice",
                                  "flip",   "roll",    "tile",         "one_hot",   "sort",       "topk"};

bool is_move(const Op& op) {
  return op.part || op.is(kRandom) || op.is(kCopy) || op.is(kView) || op.is(kBroadcast) ||
         std::any_of(std::begin(kMoves), std::end(kMoves), [&](const char* name) { return std::strcmp(name, op.name) == 0; });
}

// Elementwise ops that call the math library, whose last bits differ from device to device. In f64 all functions do.
bool calls_library(const Op& op, DType d) {
  const std::string_view name = op.name;
  return d == DType::f64 || name == "pow" || name == "sin" || name == "cos";
}

int digits(DType d) { return d == DType::f64 ? 53 : d == DType::f32 ? 24 : d == DType::f16 ? 11 : d == DType::bf16 ? 8 : 64; }

double tolerance_of(DType coarsest, Rule rule) {
  if (rule == Rule::near_cpu)  // the last bits
    return coarsest == DType::f64 ? 1e-14 : coarsest == DType::f16 ? 0x1p-10 : coarsest == DType::bf16 ? 0x1p-7 : 2e-6;
  return coarsest == DType::f64 ? 1e-11 : coarsest == DType::f16 ? 3e-3 : coarsest == DType::bf16 ? 2e-2 : 1e-4;
}

template <class T>
T read_as(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double value_at(DType d, const unsigned char* from) {
  switch (d) {
    case DType::f32:
      return read_as<float>(from);
    case DType::f64:
      return read_as<double>(from);
    case DType::i32:
      return read_as<std::int32_t>(from);
    case DType::i64:
      return static_cast<double>(read_as<std::int64_t>(from));
    case DType::f16:
    case DType::bf16:
      return testing::half_value(d, read_as<std::uint16_t>(from));
    default:
      return *from;
  }
}

// The results of the CPU.
struct Expected {
  std::vector<Tensor> same;  // computed in the types of the operands, dense
  std::vector<Tensor> wide;  // computed in f64 where the rule asks for it, otherwise as `same`
};

std::vector<Tensor> dense_results(const Example& e, const std::vector<Tensor>& operands) {
  std::vector<Tensor> results;
  for (const Tensor& t : testing::run(e, operands)) results.push_back(testing::dense_image(t));
  return results;
}

Expected expected_of(const Example& e, const std::vector<Tensor>& operands) {
  const NoGrad no_grad;
  Expected expected;
  expected.same = dense_results(e, operands);
  expected.wide = expected.same;
  if (rule_of(*e.op) != Rule::near_f64) return expected;
  std::vector<Tensor> wide;
  for (const Tensor& t : operands) wide.push_back(is_floating(t.dtype()) ? cast(t, DType::f64) : t);
  try {
    expected.wide = dense_results(e, wide);
  } catch (const TypeError&) {  // the op does not take f64
  }
  return expected;
}

struct Comparison {
  const Type& type;
  const std::vector<unsigned char>& got;
  const Tensor& same;
  const Tensor& wide;
  Rule rule;
  double tolerance;
  bool may_differ;  // near_cpu: the last bits may differ
};

bool same_number(DType d, const unsigned char* a, const unsigned char* b) {
  if (std::memcmp(a, b, dtype_size(d)) == 0) return true;
  return is_floating(d) && std::isnan(value_at(d, a)) && std::isnan(value_at(d, b));
}

// The largest magnitude of the expected result, and at least 0.05: sums that cancel have an error all the same.
double scale_of(const Tensor& t) {
  double scale = 0.05;
  const auto* bytes = static_cast<const unsigned char*>(t.data());
  const std::size_t size = dtype_size(t.dtype());
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const double v = std::fabs(value_at(t.dtype(), bytes + static_cast<std::size_t>(i) * size));
    if (std::isfinite(v)) scale = std::max(scale, v);
  }
  return scale;
}

// Counts the elements that are wrong, and describes the first. `noted` is set if bits differ that may differ.
std::string compare(const Comparison& c, bool* noted) {
  const DType d = c.type.dtype, wide = c.wide.dtype();
  const std::size_t size = dtype_size(d);
  const auto* same = static_cast<const unsigned char*>(c.same.data());
  const auto* exact = static_cast<const unsigned char*>(c.wide.data());
  const bool bits = c.rule == Rule::bits || !is_floating(d);
  const double scale = bits ? 0 : scale_of(c.wide);
  std::int64_t wrong = 0;
  std::string first;
  for (std::int64_t i = 0; i < c.type.numel(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    if (same_number(d, c.got.data() + at, same + at)) continue;
    const double got = value_at(d, c.got.data() + at);
    const double want = value_at(wide, exact + static_cast<std::size_t>(i) * dtype_size(wide));
    const double limit = c.tolerance * (c.rule == Rule::near_cpu ? std::max(std::fabs(want), 1.0) : scale);
    if (!bits && (got == want || std::fabs(got - want) <= limit)) {
      if (c.rule != Rule::near_cpu) continue;
      *noted = true;
      if (c.may_differ) continue;
    }
    if (++wrong == 1) first = fmt::format("element {} of {} is {:.9g}, not {:.9g}", i, to_string(c.type), got, want);
  }
  return wrong == 0 ? "" : fmt::format("{} ({} of {} wrong)", first, wrong, c.type.numel());
}

// Everything about one set of operands.
class Case {
 public:
  Case(Device& device, const Example& e, std::vector<Tensor> operands, bool twice, Findings* findings)
      : device_(device), e_(e), operands_(std::move(operands)), twice_(twice), findings_(*findings) {
    expected_ = expected_of(e_, operands_);
    for (const Tensor& t : expected_.same) types_.push_back(t.type());
  }

  // False if the kernel does not take these types.
  bool check(const Arrangement& arrangement) {
    const OpCall call(*e_.op, e_.attrs(), operands_, types_, arrangement);
    if (&arrangement != &kDense && !call.differs_from_dense()) return true;
    findings_.calls += twice_ ? 2 : 1;
    const Outcome once = call.run(device_);
    if (once.error.find("element type not supported") != std::string::npos) return false;
    if (!once.error.empty()) {
      complain(arrangement, once.error);
      return true;
    }
    for (std::size_t k = 0; k < types_.size(); ++k) check_result(arrangement, k, once.results[k]);
    if (!twice_) return true;
    const Outcome again = call.run(device_);
    if (again.error != once.error || again.results != once.results) complain(arrangement, "a second run gives other bits");
    return true;
  }

 private:
  void check_result(const Arrangement& arrangement, std::size_t k, const std::vector<unsigned char>& got) {
    const Rule rule = rule_of(*e_.op);
    DType coarsest = types_[k].dtype;
    for (const Tensor& t : operands_)
      if (digits(t.dtype()) < digits(coarsest)) coarsest = t.dtype();
    bool noted = false;
    const std::string text = compare({types_[k], got, expected_.same[k], expected_.wide[k], rule, tolerance_of(coarsest, rule),
                                      calls_library(*e_.op, coarsest)},
                                     &noted);
    if (!text.empty()) complain(arrangement, fmt::format("result {}: {}", k, text));
    if (noted) findings_.notes.insert(fmt::format("{} {}: last bits differ from the CPU's", e_.op->name, dtype_name(coarsest)));
  }
  void complain(const Arrangement& arrangement, const std::string& what) {
    std::string types;
    for (const Tensor& t : operands_) types += " " + to_string(t.type());
    findings_.wrong.push_back(fmt::format("{}, {},{}: {}", e_.text, arrangement.name, types, what));
  }

  Device& device_;
  const Example& e_;
  std::vector<Tensor> operands_;
  bool twice_;
  Findings& findings_;
  Expected expected_;
  std::vector<Type> types_;
};

std::vector<Tensor> repeated_operands(const Example& e, const std::vector<Tensor>& operands, unsigned dims) {
  std::vector<Tensor> all;
  for (const Tensor& t : operands) {
    const bool state = e.op->is(kRandom) && t.dtype() == DType::i64;
    all.push_back(state || dims == 0 ? t : testing::dense_image(testing::repeated(t, dims)));
  }
  return all;
}

bool any_half(const std::vector<Tensor>& operands) {
  return std::any_of(operands.begin(), operands.end(), [](const Tensor& t) { return digits(t.dtype()) < 24; });
}

// Runs f, and takes down what it throws, unless the device is lost.
void guarded(const Example& e, Findings* findings, const std::function<void()>& f) {
  try {
    f();
  } catch (const DeviceLost& lost) {
    throw DeviceLost(e.text + ": " + lost.what());
  } catch (const std::exception& error) {
    findings->wrong.push_back(e.text + ": throws " + error.what());
  }
}

void check_operands(Device& device, const Example& e, const std::vector<Tensor>& operands, const Effort& effort,
                    Findings* findings) {
  if (any_half(operands) && !device.takes_halves(*e.op)) return;
  if (!Case(device, e, operands, effort.twice, findings).check(kDense)) {
    const std::string text =
        fmt::format("{}: no kernel for {}", e.op->name, operands.empty() ? "" : dtype_name(operands[0].dtype()));
    findings->notes.insert(text);
    if (!operands.empty() && operands[0].dtype() == DType::f32) findings->wrong.push_back(e.text + ": " + text);
    return;
  }
  for (const Arrangement& a : kArrangements)
    if (effort.strides) Case(device, e, repeated_operands(e, operands, a.repeated), effort.twice, findings).check(a);
}

// The example with all floating operands replaced by integers from `low` to 4; false if the op does not take them.
bool with_integers(const Example& e, DType d, double low, Example* other) {
  *other = e;
  bool changed = false;
  for (ExampleOperand& o : other->operands) {
    if (!is_floating(o.type.dtype)) continue;
    changed = true;
    o.type.dtype = d;
    o.low = low, o.high = 5;
  }
  if (!changed || !testing::inferred(*other)) return false;
  try {
    const NoGrad no_grad;
    testing::run(*other, testing::make_operands(*other, DType::f32, kIntegerSeed));
    return true;
  } catch (const ExecutionError&) {  // a division by zero
    return false;
  }
}

void check_types(Device& device, const Example& e, const Effort& effort, Findings* findings) {
  for (DType real : kReals) {
    if (real != DType::f32 && (!effort.types || testing::usable_real(e, real) != real)) continue;
    check_operands(device, e, testing::make_operands(e, real, 3), effort, findings);
  }
  for (DType d : {DType::i32, DType::i64, DType::u8}) {
    Example other;
    if (!effort.types || (!with_integers(e, d, d == DType::u8 ? 0 : -4, &other) && !with_integers(e, d, 1, &other))) continue;
    Effort for_integers = effort;
    for_integers.strides = effort.strides && d == DType::i32;
    check_operands(device, other, testing::make_operands(other, DType::f32, kIntegerSeed), for_integers, findings);
  }
}

std::int64_t elements_of(const Example& e) {
  std::int64_t n = 0;
  for (const ExampleOperand& o : e.operands) n += o.type.numel();
  return n;
}

}  // namespace

Rule rule_of(const Op& op) {
  if (is_move(op)) return Rule::bits;
  return op.is(kElementwise) || op.is(kConversion) ? Rule::near_cpu : Rule::near_f64;
}

Findings check_op(Device& device, const Op& op, const Effort& effort) {
  Findings findings;
  int left = effort.examples;
  for (const char* text : op.examples) {
    if (left-- <= 0) break;
    const Example e = parse_example(op, text);
    guarded(e, &findings, [&] { check_types(device, e, effort, &findings); });
    if (!effort.larger) continue;
    guarded(e, &findings, [&] {
      const Example larger = testing::enlarged(e, 40000, 200);
      check_types(device, larger, {.strides = effort.strides, .types = false, .larger = false, .twice = effort.twice},
                  &findings);
    });
  }
  return findings;
}

Findings check_example(Device& device, const std::string& text, std::span<const DType> reals) {
  Findings findings;
  const std::string name = text.substr(0, text.find('('));
  const Op* op = find_op(name);
  if (!op) throw UsageError("no op '" + name + "'");
  const Example e = parse_example(*op, text);
  for (DType real : reals) {
    if (real != DType::f32 && elements_of(e) > kManyElements) continue;
    guarded(e, &findings,
            [&] { check_operands(device, e, testing::make_operands(e, real, 7), {.strides = false}, &findings); });
  }
  return findings;
}

}  // namespace tapedeck::gpu
