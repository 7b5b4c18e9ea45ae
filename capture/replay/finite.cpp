#include <tapedeck/capture/replay/finite.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>

namespace tapedeck::replay {

namespace {

double number_at(const View& v, std::int64_t place) {
  switch (v.dtype) {
    case DType::f32:
      return v.as<float>()[place];
    case DType::f64:
      return v.as<double>()[place];
    case DType::f16:
      return kernels::to_f32(v.as<kernels::F16>()[place]);
    case DType::bf16:
      return kernels::to_f32(v.as<kernels::Bf16>()[place]);
    default:
      return 0;
  }
}

struct Element {
  std::int64_t index;  // in row-major order
  double number;
};

std::optional<Element> first_not_finite(const View& v, bool nan, bool infinite) {
  std::int64_t at[kMaxRank] = {}, place = 0;
  for (std::int64_t i = 0, n = v.numel(); i < n; ++i) {
    const double number = number_at(v, place);
    if (!std::isfinite(number) && (std::isnan(number) ? nan : infinite)) return Element{i, number};
    for (int d = v.rank - 1; d >= 0; --d) {
      place += v.strides[d];
      if (++at[d] < v.sizes[d]) break;
      place -= at[d] * v.strides[d];
      at[d] = 0;
    }
  }
  return {};
}

std::string operand_types(const Graph& g, const Node& node) {
  std::string text;
  for (const ValueId v : g.inputs(node)) text += (text.empty() ? "" : ", ") + to_string(g.values[v].type);
  return text;
}

}  // namespace

std::optional<NotFinite> find_not_finite(const KernelCall& call, bool nan, bool infinite) {
  for (std::int32_t k = 0; k < call.n_outputs; ++k) {
    if (!is_floating(call.outputs[k].dtype)) continue;
    if (const auto bad = first_not_finite(call.outputs[k], nan, infinite)) return NotFinite{k, bad->index, bad->number};
  }
  return {};
}

void require_finite(const Graph& g, NodeId n, const KernelCall& call) {
  const auto bad = find_not_finite(call, true, true);
  if (!bad) return;
  const ValueId v = g.nodes[n].first_output + bad->output;
  throw ExecutionError(fmt::format("made {} at element {} of %{}: {} from ({})",
                                   std::isnan(bad->number) ? "NaN" : "an infinity", bad->element, g.value_name(v),
                                   to_string(g.values[v].type), operand_types(g, g.nodes[n])));
}

}  // namespace tapedeck::replay
