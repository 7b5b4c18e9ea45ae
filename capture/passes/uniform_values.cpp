#include <tapedeck/capture/passes/uniform_values.h>

#include <tapedeck/kernels/half.h>

#include <cmath>
#include <cstring>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostElements = 64;

template <class T>
T load(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Element 0 as a number. Integers beyond 2^53 give no number, because a double would round them.
std::optional<double> first_element(DType dtype, const void* bytes) {
  switch (dtype) {
    case DType::f32:
      return load<float>(bytes);
    case DType::f64:
      return load<double>(bytes);
    case DType::f16:
      return kernels::to_f32(load<kernels::F16>(bytes));
    case DType::bf16:
      return kernels::to_f32(load<kernels::Bf16>(bytes));
    case DType::i32:
      return load<std::int32_t>(bytes);
    case DType::u8:
      return load<std::uint8_t>(bytes);
    case DType::boolean:
      return load<std::uint8_t>(bytes) != 0;
    case DType::i64: {
      const std::int64_t whole = load<std::int64_t>(bytes);
      if (std::abs(whole) > (std::int64_t{1} << 53)) return std::nullopt;
      return static_cast<double>(whole);
    }
  }
  return std::nullopt;
}

std::optional<double> uniform_literal(const Literal& literal) {
  const std::int64_t n = literal.type.numel();
  if (!literal.data || n == 0 || n > kMostElements) return std::nullopt;
  const auto* bytes = static_cast<const unsigned char*>(literal.data.get());
  const std::size_t step = dtype_size(literal.type.dtype);
  for (std::int64_t i = 1; i < n; ++i)
    if (std::memcmp(bytes, bytes + static_cast<std::size_t>(i) * step, step) != 0) return std::nullopt;
  return first_element(literal.type.dtype, bytes);
}

}  // namespace

std::optional<double> UniformValues::of(ValueId v) {
  if (known_.size() < graph_.values.size()) known_.resize(graph_.values.size());
  if (!known_[v].asked) {
    // Walks down a chain of views first, so that a long chain needs no deep recursion.
    std::vector<ValueId> chain = {v};
    for (NodeId n;
         (n = graph_.values[chain.back()].node) != kNone && graph_.nodes[n].op->is(kView) && graph_.nodes[n].n_inputs == 1;) {
      const ValueId next = graph_.inputs(graph_.nodes[n])[0];
      if (known_[next].asked) break;
      chain.push_back(next);
    }
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) known_[*at] = {true, find(*at)};
  }
  return known_[v].number;
}

std::optional<double> UniformValues::find(ValueId v) {
  const NodeId n = graph_.values[v].node;
  if (n == kNone) return std::nullopt;
  const Node& node = graph_.nodes[n];
  if (node.op->is(kView) && node.n_inputs == 1) return known_[graph_.inputs(node)[0]].number;
  if (const Literal* literal = graph_.literal(node)) {
    const std::optional<double> number = uniform_literal(*literal);
    return number && !std::isnan(*number) ? number : std::nullopt;
  }
  if (!node.op->uniform || node.origin.clone) return std::nullopt;
  const double value = node.op->uniform(graph_.attributes(node));
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

}  // namespace tapedeck
