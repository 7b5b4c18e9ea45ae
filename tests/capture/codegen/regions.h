// Regions of fused nodes as texts, with the layout of dense operands.
#pragma once

#include <tapedeck/capture/codegen/layout.h>
#include <tapedeck/engine/text/text.h>

#include <string>
#include <vector>

namespace tapedeck::test {

struct NamedRegion {
  const char* name;
  const char* graph;  // of one fused node
};

inline const NamedRegion kRegions[] = {
    {"bias_gelu", R"(graph g(%x: bf16[8,64], %b: bf16[64]) {
  %y: bf16[8,64] = fused(%x, %b) (%p: bf16[8,64], %q: bf16[64]) {
    %t: bf16[8,64] = add(%p, %q)
    %u: bf16[8,64] = gelu(%t) {}
    return %u
  }
  return %y
})"},
    {"clamp_and_mask", R"(graph g(%x: f32[1000], %s: f32[], %k: i32[1000]) {
  %y: f32[1000], %m: bool[1000] = fused(%x, %s, %k) (%p: f32[1000], %q: f32[], %i: i32[1000]) {
    %t: f32[1000] = mul(%p, %q)
    %c: f32[1000] = clamp(%t) {min=-1.0, max=6.0}
    %f: f32[1000] = cast(%i) {dtype=f32}
    %l: bool[1000] = less(%c, %f)
    return %c, %l
  }
  return %y, %m
})"},
    {"columns", R"(graph g(%x: f64[3,5,7], %c: f64[5,1]) {
  %y: f64[3,5,7] = fused(%x, %c) (%p: f64[3,5,7], %q: f64[5,1]) {
    %t: f64[3,5,7] = sub(%p, %q)
    %u: f64[3,5,7] = tanh(%t)
    %v: f64[3,5,7] = tanh_grad(%u, %p)
    return %v
  }
  return %y
})"},
};

// The region of the first node of a graph, with views of dense operands that are broadcast to the shape of the results.
class ParsedRegion {
 public:
  explicit ParsedRegion(const std::string& text) : graph_(parse(text)) {
    const Graph& g = region();
    const Shape& shape = g.values[g.outputs[0]].type.shape;
    for (ValueId v = 0; v < g.n_inputs; ++v) inputs_.push_back(dense_view(g.values[v].type, shape));
    for (ValueId v : g.outputs) outputs_.push_back(dense_view(g.values[v].type, shape));
  }

  const Graph& region() const { return *graph_.regions[0]; }
  const std::vector<View>& inputs() const { return inputs_; }
  const std::vector<View>& outputs() const { return outputs_; }
  codegen::FusedLayout layout() const { return codegen::fused_layout(inputs_, outputs_); }

 private:
  static View dense_view(const Type& type, const Shape& shape) {
    View v;
    v.dtype = type.dtype;
    v.rank = shape.rank;
    std::int64_t step = 1;
    for (int d = shape.rank - 1; d >= 0; --d) {
      const int own = d - (shape.rank - type.shape.rank);
      const std::int64_t size = own < 0 ? 1 : type.shape[own];
      v.sizes[d] = shape[d];
      v.strides[d] = size == 1 ? 0 : step;
      step *= size;
    }
    return v;
  }

  Graph graph_;
  std::vector<View> inputs_, outputs_;
};

}  // namespace tapedeck::test
