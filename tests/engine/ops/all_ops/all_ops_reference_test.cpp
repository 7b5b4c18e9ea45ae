// Tests the types and values of every op against its slow reference (tests/engine/reference), on the examples of the blocks
// and on larger examples made from them.
#include <tapedeck/tests/engine/all_ops.h>
#include <tapedeck/tests/engine/seeds.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

// An op with regions has no reference, because it computes the results of its regions.
// tests/capture/replay/control_flow_test.cpp compares such ops with ordinary loops and branches.
bool computes(const Op& op) { return !op.is(kDeclaredTypes) && !op.is(kPlanOnly) && op.n_regions == 0; }

// Integers wrap around: brings the reference's value into the range of the dtype.
double wrapped(double v, DType d) {
  if (is_floating(d) || d == DType::i64 || d == DType::boolean) return v;
  const double span = std::ldexp(1, 8 * static_cast<int>(dtype_size(d)));
  const double low = d == DType::u8 ? 0 : -span / 2;
  return v - span * std::floor((v - low) / span);
}

double tolerance_of(DType d, const ReferenceEntry& entry) {
  switch (d) {
    case DType::f64:
      return 1e-11;
    case DType::f16:
      return std::max(0x1p-9, entry.tolerance);
    case DType::bf16:
      return std::max(0x1p-6, entry.tolerance);
    default:
      return entry.tolerance;
  }
}

// A double that is out of the dtype's range becomes infinite.
double within_range(double v, DType d) {
  const double largest = d == DType::f32 ? 3.4028235e38 : d == DType::f16 ? 65504 : d == DType::bf16 ? 3.38953139e38 : INFINITY;
  return std::fabs(v) > largest ? std::copysign(INFINITY, v) : v;
}

bool close(double got, double expected, DType d, double tolerance) {
  if (!is_floating(d)) return got == wrapped(expected, d);
  if (std::isnan(expected)) return std::isnan(got);
  const double limit = tolerance * std::max(1.0, std::fabs(expected));
  if (std::isinf(got)) return got == within_range(expected + std::copysign(limit, expected), d);
  return std::fabs(got - expected) <= limit;  // false if only `expected` is infinite
}

void expect_close(const Tensor& got, const Array& expected, double tolerance, std::size_t result) {
  ASSERT_EQ(got.type(), expected.type) << "result " << result << ": the reference has another type";
  const std::vector<double> values = elements(got);
  ASSERT_EQ(values.size(), expected.v.size()) << "result " << result;
  int wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (close(values[i], expected.v[i], got.dtype(), tolerance) || ++wrong > 3) continue;
    ADD_FAILURE() << "result " << result << ", element " << i << " of " << to_string(got.type()) << ": " << values[i]
                  << ", the reference says " << expected.v[i];
  }
  if (wrong > 3) ADD_FAILURE() << "result " << result << ": " << wrong << " elements differ";
}

// The floating dtype with the fewest digits among operands and result. It limits the accuracy of the result.
DType coarsest(const std::vector<Tensor>& operands, DType result) {
  auto digits = [](DType d) {
    return d == DType::f64 ? 53 : d == DType::f32 ? 24 : d == DType::f16 ? 11 : d == DType::bf16 ? 8 : 64;
  };
  DType worst = result;
  for (const Tensor& t : operands)
    if (digits(t.dtype()) < digits(worst)) worst = t.dtype();
  return worst;
}

void expect_reference(const Example& e, DType real, std::uint64_t seed, double slack = 1) {
  const auto entry = references().find(e.op->name);
  if (entry == references().end()) return;  // the test EveryOpThatComputesHasAReference reports this
  SCOPED_TRACE(std::string(dtype_name(real)) + ", seed " + std::to_string(seed) + ": " + e.text);
  const NoGrad no_grad;
  const std::vector<Tensor> operands = make_operands(e, real, seed), results = run(e, operands);
  const std::vector<Type> types = inferred(e, real).value();
  const std::vector<Array> expected = entry->second.run(e, arrays(operands), types);
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t k = 0; k < results.size(); ++k)
    expect_close(results[k], expected[k], slack * tolerance_of(coarsest(operands, results[k].dtype()), entry->second), k);
}

TEST(AllOpsReference, EveryOpThatComputesHasAReference) {
  for_every_op([](const Op& op) {
    const bool has = references().count(op.name) > 0;
    if (computes(op)) {
      EXPECT_TRUE(has) << "add one to tests/engine/reference";
    }
  });
}

TEST(AllOpsReference, EveryReferenceIsOfAnOp) {
  for (const auto& [name, entry] : references()) EXPECT_NE(find_op(name), nullptr) << name;
}

// usable_real() replaces a type that inference refuses by f32. No op here should need that.
TEST(AllOpsReference, EveryOpTakesEveryFloatingType) {
  for_every_example([](const Example& e) {
    for (DType real : {DType::f32, DType::f64, DType::f16, DType::bf16})
      EXPECT_EQ(usable_real(e, real), real) << dtype_name(real);
  });
}

// Abstract execution relies on inference alone, so real results must have the inferred types.
TEST(AllOpsReference, ResultsHaveTheInferredTypes) {
  for_every_example([](const Example& e) {
    for (DType real : {DType::f32, DType::f64}) {
      const std::vector<Type> types = inferred(e, real).value();
      const std::vector<Tensor> operands = make_operands(e, real, 1), results = run(e, operands);
      std::vector<Tensor> abstract;
      for (const Tensor& t : operands) abstract.push_back(abstract_tensor(t.type()));
      const AbstractMode mode;
      const std::vector<Tensor> known = run(e, abstract);
      ASSERT_EQ(results.size(), types.size());
      ASSERT_EQ(known.size(), types.size());
      for (std::size_t k = 0; k < types.size(); ++k) {
        EXPECT_EQ(to_string(results[k].type()), to_string(types[k])) << "result " << k;
        EXPECT_EQ(to_string(known[k].type()), to_string(types[k])) << "abstract result " << k;
        EXPECT_TRUE(known[k].abstract());
        EXPECT_FALSE(results[k].abstract());
      }
    }
  });
}

TEST(AllOpsReference, ExamplesAgree) {
  for_every_example([](const Example& e) {
    for (std::uint64_t seed : {1, 2}) {
      expect_reference(e, DType::f32, seed);
      expect_reference(e, DType::f64, seed);
    }
  });
}

// Ops for which larger examples test nothing more, with the reasons.
struct OnlySmall {
  const char* op;
  const char* reason;
};
constexpr OnlySmall kOnlySmall[] = {
    {"searchsorted", "a longer sequence of random elements is not sorted"},
    {"ctc_loss", "the reference goes through every path, and their number grows exponentially"},
    {"ctc_loss_grad", "as ctc_loss"},
};

bool only_small(const Op& op) {
  for (const OnlySmall& s : kOnlySmall)
    if (std::string(s.op) == op.name) return true;
  return false;
}

// Blocked, vectorised and threaded code in kernels needs operands that are larger than the examples.
TEST(AllOpsReference, LargerExamplesAgree) {
  for_every_example([](const Example& e) {
    if (only_small(*e.op)) return;
    const Example larger = enlarged(e, test::seeds(8000), test::seeds(20));
    for (DType real : {DType::f32, DType::f64}) expect_reference(larger, real, 3, 4);
  });
}

bool names_a_dtype(const Op& op) {
  for (int i = 0; op.attrs && i < op.attrs->n_fields; ++i)
    if (op.attrs->fields[i].kind == FieldKind::dtype) return true;
  return false;
}

bool any_float(const Example& e) {
  for (const Operand& o : e.operands)
    if (is_floating(o.type.dtype)) return true;
  return false;
}

TEST(AllOpsReference, HalfPrecisionExamplesAgree) {
  for_every_example([](const Example& e) {
    if (!any_float(e)) return;
    for (DType real : {DType::f16, DType::bf16}) expect_reference(e, real, 1);
  });
}

// Results that are at least f32 for all operands, as their blocks declare.
struct SingleResult {
  const char* op;
  std::size_t result;
  const char* reason;
};
constexpr SingleResult kSingleResults[] = {
    {"scaled_dot_product_attention", 1, "backward takes exponentials of differences from it"},
    {"global_norm", 0, "a sum of squares over all parameters, which 16 bits cannot hold"},
};

bool single_result(const Op& op, std::size_t k) {
  for (const SingleResult& s : kSingleResults)
    if (std::string(s.op) == op.name && s.result == k) return true;
  return false;
}

TEST(AllOpsReference, HalfPrecisionStaysHalf) {
  for_every_example([](const Example& e) {
    if (!any_float(e) || names_a_dtype(*e.op)) return;
    const std::vector<Type> single = inferred(e, DType::f32).value();
    for (DType real : {DType::f16, DType::bf16}) {
      const std::vector<Tensor> results = run(e, make_operands(e, real, 1));
      ASSERT_EQ(results.size(), single.size());
      for (std::size_t k = 0; k < single.size(); ++k) {
        const bool half = is_floating(single[k].dtype) && !single_result(*e.op, k);
        EXPECT_EQ(to_string(results[k].type()), to_string(Type{half ? real : single[k].dtype, single[k].shape}))
            << "result " << k;
      }
    }
  });
}

}  // namespace
}  // namespace tapedeck::testing
