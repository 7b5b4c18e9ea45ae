// A graph in which several passes find something to do: a copy, two equal nodes, a node that nobody reads, and an update.
#pragma once

namespace tapedeck::test {

inline constexpr const char* kGraphForPasses = R"(graph g(%x: f32[64]) state(%s: f32[64]) {
  %0: f32[64] = copy(%x)
  %y: f32[64] = exp(%0)
  %z: f32[64] = exp(%0)
  %dead: f32[64] = neg(%y)
  %w: f32[64] = add(%y, %z)
  return %w
  update %s = %y
})";

}  // namespace tapedeck::test
