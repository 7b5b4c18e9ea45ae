// Helpers of the all-ops tests. Each property is one test over every example of every op, so that a run starts tens of
// processes and not tens of thousands. If an example fails or throws, the test continues with the next.
// TAPEDECK_TEST_OP=name restricts all these tests to one op.
#pragma once

#include <tapedeck/tests/engine/reference.h>

#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::testing {

// The tests of the registry register ops of their own, which have no examples.
inline bool of_a_test(const Op& op) { return std::string(op.name).rfind("test.", 0) == 0; }

inline std::vector<const Op*> chosen_ops() {
  const char* only = std::getenv("TAPEDECK_TEST_OP");
  std::vector<const Op*> chosen;
  for (const Op* op : all_ops())
    if (!of_a_test(*op) && (!only || std::string(only) == op->name)) chosen.push_back(op);
  EXPECT_FALSE(chosen.empty()) << "TAPEDECK_TEST_OP=" << only << " names no op";
  return chosen;
}

inline std::string hint(const Op& op) { return std::string("rerun with TAPEDECK_TEST_OP=") + op.name; }

template <class F>
void guarded(const Op& op, const std::string& what, F&& check) {
  SCOPED_TRACE(what + "   " + hint(op));
  try {
    check();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "throws " << error.what();
  }
}

// Calls check(op) for each op, or check(example) for each example. An exception counts as a failure of this op or example
// alone.
template <class F>
void for_every_op(F&& check) {
  for (const Op* op : chosen_ops()) guarded(*op, op->name, [&] { check(*op); });
}
template <class F>
void for_every_example(F&& check) {
  for (const Op* op : chosen_ops())
    for (const char* text : op->examples) guarded(*op, text, [&] { check(parse_example(*op, text)); });
}

// ---- types and examples derived from an example ----

inline std::vector<Type> operand_types(const Example& e, DType real = DType::f32) {
  real = usable_real(e, real);
  std::vector<Type> types;
  for (const Operand& o : e.operands) types.push_back({is_floating(o.type.dtype) ? real : o.type.dtype, o.type.shape});
  return types;
}

// The result types that inference gives for operands of these types; nothing if it refuses them.
inline std::optional<std::vector<Type>> inferred(const Example& e, DType real = DType::f32) {
  try {
    std::vector<Type> outputs;
    infer_types(*e.op, operand_types(e, real), e.attrs(), outputs);
    return outputs;
  } catch (const TypeError&) {
    return {};
  }
}

inline std::int64_t total_elements(const Example& e, const std::vector<Type>& outputs) {
  std::int64_t n = 0;
  for (const Operand& o : e.operands) n += o.type.numel();
  for (const Type& t : outputs) n += t.numel();
  return n;
}

// True if the op accepts random operands. Some ops refuse them because of their elements, such as an index out of range.
inline bool runs(const Example& e) {
  try {
    const NoGrad no_grad;
    run(e, make_operands(e, DType::f32, 4));
    return true;
  } catch (const ExecutionError&) {
    return false;
  }
}

// The example with every size multiplied by the largest power of two that inference and these limits accept. If there is
// none, the example itself.
inline Example enlarged(const Example& e, std::int64_t max_elements, double max_us) {
  for (const Operand& o : e.operands)
    if (o.type.numel() == 0) return e;
  for (std::int64_t factor = 1024; factor > 1; factor /= 2) {
    Example larger = e;
    for (Operand& o : larger.operands)
      for (int d = 0; d < o.type.shape.rank; ++d) o.type.shape[d] *= factor;
    double elements = 0;  // a double, because the product of sizes may overflow
    for (const Operand& o : larger.operands) {
      double n = 1;
      for (std::int64_t s : o.type.shape) n *= static_cast<double>(s);
      elements += n;
    }
    if (elements > static_cast<double>(max_elements)) continue;
    const auto outputs = inferred(larger);
    if (!outputs || total_elements(larger, *outputs) > max_elements) continue;
    if (cost_us(*e.op, operand_types(larger), *outputs, e.attrs()) > max_us) continue;
    if (!runs(larger)) return e;
    larger.text += ", every size times " + std::to_string(factor);
    return larger;
  }
  return e;
}

// ---- elements as doubles ----

template <class T>
std::vector<double> doubles_of(const Tensor& t) {
  const std::vector<T> v = t.to_vector<T>();
  return std::vector<double>(v.begin(), v.end());
}

inline std::vector<double> elements(const Tensor& t) {
  switch (t.dtype()) {
    case DType::f32:
      return doubles_of<float>(t);
    case DType::f64:
      return doubles_of<double>(t);
    case DType::i32:
      return doubles_of<std::int32_t>(t);
    case DType::i64:
      return doubles_of<std::int64_t>(t);
    case DType::u8:
    case DType::boolean:
      return doubles_of<std::uint8_t>(t);
    case DType::f16:
    case DType::bf16:
      break;
  }
  std::vector<double> all;
  for (std::uint16_t bits : t.to_vector<std::uint16_t>()) all.push_back(half_value(t.dtype(), bits));
  return all;
}

inline std::vector<Array> arrays(const std::vector<Tensor>& tensors) {
  std::vector<Array> all;
  for (const Tensor& t : tensors) all.push_back({t.type(), elements(t)});
  return all;
}

inline Tensor f64_tensor(const std::vector<double>& values, const Shape& shape) {
  std::vector<double> filled = values;
  filled.push_back(0);  // so that data() is not null
  return from_bytes({DType::f64, shape}, filled.data());
}

inline std::vector<double> random_numbers(std::int64_t n, std::mt19937_64& random) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  return values;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

inline void expect_equal_bits(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(bit_equal(got[k], expected[k])) << what << ", result " << k;
}

}  // namespace tapedeck::testing
