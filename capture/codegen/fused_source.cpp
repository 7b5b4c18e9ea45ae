// Writes a kernel line by line:
//
//     struct Args { n, sizes, data, strides };
//     compute<kLanes>(args, first)     reads the operands of kLanes neighbours, computes them in registers, writes the results
//     fused_plain                      element by element
//     fused_wide                       16 bytes at a time, then the elements that are left over
#include <tapedeck/capture/codegen/fused_source.h>

#include <tapedeck/capture/codegen/source_texts.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <iterator>
#include <vector>

namespace tapedeck::codegen {

namespace {

class Writer {
 public:
  Writer(const Graph& g, const FusedLayout& l, const std::string& name) : g_(g), l_(l), source_{name, {}, 0} {}

  FusedSource write() {
    line("namespace tapedeck::kernels::{} {{", source_.name);
    line("using Index = std::uint{}_t;", l_.long_index ? 64 : 32);
    write_arguments();
    write_compute();
    write_plain_kernel();
    if (l_.lanes > 1) write_wide_kernel();
    line("}}  // namespace tapedeck::kernels::{}", source_.name);
    return std::move(source_);
  }

 private:
  template <class... A>
  void line(fmt::format_string<A...> format, A&&... args) {
    fmt::format_to(std::back_inserter(source_.body), format, std::forward<A>(args)...);
    source_.body += '\n';
  }

  const char* type_of(int view) const { return register_type(l_.views[view].dtype); }

  void write_arguments() {
    const ArgumentPlaces p = argument_places(l_);
    line("struct Args {{");
    line("  std::int64_t n, sizes[{}];", l_.rank);
    line("  void* data[{}];", l_.views.size());
    if (p.words > p.strides) line("  std::int64_t strides[{}];", p.words - p.strides);
    line("}};");
  }

  // ---- where the elements are ----

  bool needs_indices() const {
    for (const auto& v : l_.views)
      if (v.access != Access::linear) return true;
    return false;
  }

  // Writes i0, i1, ..., the indices of element `first` in the dimensions of the walk.
  void write_indices() {
    if (l_.rank > 1) line("  Index rest = first;");
    for (int d = l_.rank - 1; d > 0; --d) {
      line("  const Index i{} = rest % static_cast<Index>(args.sizes[{}]);", d, d);
      line("  rest /= static_cast<Index>(args.sizes[{}]);", d);
    }
    line("  const Index i0 = {};", l_.rank > 1 ? "rest" : "first");
  }

  // Writes at<view>, the offset of the first lane. `stride` is the place of the view's first stride.
  void write_offset(int view, int stride) {
    const Access access = l_.views[view].access;
    std::string sum;
    for (int d = 0; d < l_.rank; ++d) {
      const bool innermost = d == l_.rank - 1;
      if (innermost && access == Access::repeated) continue;
      sum += sum.empty() ? "" : " + ";
      sum += innermost && access == Access::row ? fmt::format("i{}", d) : fmt::format("i{} * args.strides[{}]", d, stride + d);
    }
    line("  const std::int64_t at{} = {};", view, sum.empty() ? "0" : sum);
  }

  void write_offsets() {
    if (!needs_indices()) return;
    write_indices();
    int stride = 0;
    for (int k = 0; k < static_cast<int>(l_.views.size()); ++k) {
      if (l_.views[k].access == Access::linear) continue;
      write_offset(k, stride);
      inner_stride_.resize(l_.views.size());
      inner_stride_[k] = stride + l_.rank - 1;
      stride += l_.rank;
    }
  }

  // ---- the elements ----

  void write_load(int k) {
    const std::string target = fmt::format("  const Lanes<{}, kLanes> x{} = ", type_of(k), k);
    switch (l_.views[k].access) {
      case Access::linear:
        return line("{}load_lanes<{}, kLanes>(args.data[{}], first);", target, type_of(k), k);
      case Access::row:
        return line("{}load_lanes<{}, kLanes>(args.data[{}], at{});", target, type_of(k), k, k);
      case Access::repeated:
        return line("{}repeat_lanes<{}, kLanes>(args.data[{}], at{});", target, type_of(k), k, k);
      case Access::gathered:
        return line("{}gather_lanes<{}, kLanes>(args.data[{}], at{}, args.strides[{}]);", target, type_of(k), k, k,
                    inner_stride_[k]);
    }
  }

  void write_store(int result) {
    const int k = l_.n_inputs + result;
    if (l_.views[k].access == Access::gathered)
      return line("  scatter_lanes<{}, kLanes>(args.data[{}], at{}, args.strides[{}], y{});", type_of(k), k, k,
                  inner_stride_[k], result);
    line("  store_lanes<{}, kLanes>(args.data[{}], {}, y{});", type_of(k), k,
         l_.views[k].access == Access::linear ? "first" : fmt::format("at{}", k), result);
  }

  void write_node(const Node& node) {
    std::vector<std::string> operands;
    for (ValueId v : g_.inputs(node)) operands.push_back(fmt::format("v{}", v));
    const ScalarCall call = scalar_call(g_, node, operands);
    source_.headers |= call.headers;
    line("    const {} v{} = {};", register_type(g_.values[node.first_output].type.dtype), node.first_output, call.text);
  }

  void write_compute() {
    line("");
    line("template <int kLanes>");
    line("__device__ inline void compute(const Args& args, Index first) {{");
    write_offsets();
    for (int k = 0; k < l_.n_inputs; ++k) write_load(k);
    for (int r = 0; r < l_.n_outputs(); ++r) line("  Lanes<{}, kLanes> y{};", type_of(l_.n_inputs + r), r);
    line("  TAPEDECK_UNROLL");
    line("  for (int k = 0; k < kLanes; ++k) {{");
    for (int k = 0; k < l_.n_inputs; ++k) line("    const {} v{} = x{}.at[k];", type_of(k), k, k);
    for (const Node& node : g_.nodes) write_node(node);
    for (int r = 0; r < l_.n_outputs(); ++r) line("    y{}.at[k] = v{};", r, g_.outputs[r]);
    line("  }}");
    for (int r = 0; r < l_.n_outputs(); ++r) write_store(r);
    line("}}");
  }

  // ---- the kernels ----

  void begin_kernel(const char* kind) {
    line("");
    line("extern \"C\" __global__ void __launch_bounds__({}) {}_{}(const Args args) {{", kFusedThreads, source_.name, kind);
    line("  const Index n = static_cast<Index>(args.n), step = thread_count<Index>();");
  }

  void end_kernel(const char* kind) {
    line("}}");
    line("TAPEDECK_ON_HOST({}_{})", source_.name, kind);
  }

  void write_plain_kernel() {
    begin_kernel("plain");
    line("  for (Index i = thread_index<Index>(); i < n; i += step) compute<1>(args, i);");
    end_kernel("plain");
  }

  // A layout of several dimensions has lanes only if every group of lanes lies within a row, so nothing is left over there.
  void write_wide_kernel() {
    begin_kernel("wide");
    line("  const Index groups = n / {};", l_.lanes);
    line("  for (Index i = thread_index<Index>(); i < groups; i += step) compute<{}>(args, i * {});", l_.lanes, l_.lanes);
    if (l_.rank == 1) {
      line("  const Index left = groups * {} + thread_index<Index>();", l_.lanes);
      line("  if (left < n) compute<1>(args, left);");
    }
    end_kernel("wide");
  }

  const Graph& g_;
  const FusedLayout& l_;
  FusedSource source_;
  std::vector<int> inner_stride_;  // by view: the place of its stride in the innermost dimension
};

}  // namespace

FusedSource fused_source(const Graph& region, const FusedLayout& layout, const std::string& name) {
  if (argument_places(layout).words > kMostWords)
    throw DeviceError(error_text("fused", fmt::format("a generated kernel cannot take {} views", layout.views.size()), {}));
  return Writer(region, layout, name).write();
}

std::string complete_text(std::span<const FusedSource> sources) {
  Headers headers = 0;
  for (const FusedSource& source : sources) headers |= source.headers;
  std::string text = fmt::format("{}\n{}\n{}", k_prelude, k_scalar, k_half);
  if (headers & (kFunctions | kActivations)) text += k_functions;
  if (headers & kActivations) text += k_activations;
  if (headers & kLosses) text += k_losses;
  text += k_lanes;
  for (const FusedSource& source : sources) text += "\n" + source.body;
  return text;
}

}  // namespace tapedeck::codegen
