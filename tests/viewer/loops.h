// Steps with loops, as text: a loop of 100 passes, a `while` and a branch; the gradient of a loop.
#pragma once

#include <string>

namespace tapedeck::viewer {

// The body of the scan has 3 nodes, the condition of the `while` none and its body 2, the branches have 1 and 2.
inline std::string graph_with_loops() {
  return R"(graph loops(%x: f32[64,256], %w: f32[256,256], %p: bool[]) {
  %a: f32[64,256] = relu(%x) [path="stem"]
  %y: f32[64,256] = scan(%a, %w) {carried=1, trips=100} [path="rnn"] (%i: i64[], %c: f32[64,256], %v: f32[256,256]) {
    %m: f32[64,256] = matmul(%c, %v)
    %t: f32[64,256] = tanh(%m)
    %s: f32[64,256] = add(%t, %c)
    return %s
  }
  %n: i64[], %z: f32[64,256] = while(%y, %p) {carried=1, trips=7} [path="search"] (%i: i64[], %c: f32[64,256], %g: bool[]) {
    return %g
  } (%i: i64[], %c: f32[64,256], %g: bool[]) {
    %e: f32[64,256] = exp(%c)
    %f: f32[64,256] = sigmoid(%e)
    return %f
  }
  %b: f32[64,256] = cond(%p, %z) [path="head"] (%c: f32[64,256]) {
    %r: f32[64,256] = relu(%c)
    return %r
  } (%c: f32[64,256]) {
    %r: f32[64,256] = exp(%c)
    %q: f32[64,256] = sqrt(%r)
    return %q
  }
  return %b
}
)";
}

// The gradient of a loop of 9 passes whose carried value has 256 bytes. Every third pass has a checkpoint.
inline std::string graph_with_a_loop_gradient() {
  return R"(graph gradient(%n: i64[], %c: f32[64], %dc: f32[64]) {
  %gc: f32[64] = loop_grad(%n, %c, %dc) {carried=1, trips=9, checkpoint=3, needs="1"} (%i: i64[], %a: f32[64]) {
    %s: f32[64] = sin(%a)
    return %s
  } (%i: i64[], %a: f32[64], %da: f32[64]) {
    %e: f32[64] = cos(%a)
    %f: f32[64] = mul(%e, %da)
    return %f
  }
  return %gc
}
)";
}

}  // namespace tapedeck::viewer
