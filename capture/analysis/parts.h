// Values that are written straight into their place in what joins them: zero-copy concat.
//
//     %a: f32[1,8,7,7] = relu(%x)                  a and b lie side by side in the bytes of c from the start,
//     %b: f32[1,4,7,7] = conv2d(%a, %w)            and the concat has nothing to do
//     %c: f32[1,12,7,7] = concat(%a, %b) {axis=1}
//
// What c joins may be joined itself, so a chain of joins lies in one buffer. Declared by ops (Op::part), no pass or analysis
// names them. A part is a window on a later value; its bytes live from the first part's maker to the last reader of any of
// them.
#pragma once

#include <tapedeck/capture/analysis/alias.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck {

// By value: the result of the join that it is to lie in; kNone: it has bytes of its own.
using PartChoice = std::vector<ValueId>;

// A value that could lie in what joins it.
struct PartPlace {
  ValueId part = kNone, whole = kNone;
  friend bool operator==(const PartPlace&, const PartPlace&) = default;
};

// Where a value's own bytes belong: elsewhere (an input, a state, a constant), in the arena, or in a slot of the caller's for
// outputs, which can hold what is joined but gives no part away.
enum class Room : std::uint8_t { elsewhere, arena, slot };

// What is known of the graph without parts.
struct JoinFacts {
  const Graph& graph;
  const Readers& readers;
  const std::vector<Window>& windows;
  const std::vector<Room>& rooms;  // by value
};

// Every operand that could be a part of a join, the first join first. A value may stand there once for each join that has it.
std::vector<PartPlace> find_part_places(const JoinFacts& facts);

// All that can be joined is, each value by the first join that could have it.
PartChoice join_all(const JoinFacts& facts);

// What these windows say.
PartChoice choice_of(const std::vector<Window>& windows);

// By value: where the chosen parts lie; root == kNone for what is no part. A value may be a part if
//   - a node makes it, no clone and in no checkpoint region (what is made again has bytes of its own), and it is no window;
//   - its maker can write the strides: all can where they are dense, elementwise and joining kernels anyhow;
//   - all its readers take the strides, and no view of it would have to become a copy;
//   - the same join does not have it by an earlier operand.
// O(values, operands and their readers).
std::vector<Window> find_parts(const JoinFacts& facts, const PartChoice& choice);

// The place of operand `input` of a joining node in its result, which lies as `whole` says, as a window of `part`: the value
// that the operand shows, all of it. False if no strides of `part` express it.
bool place_part(const Graph& graph, const Node& joiner, int input, const Window& whole, ValueId part, Window* place);

// Of the result's elements, how many a joining node finds in place; all of them: it has nothing to do. 0 for ops that join
// nothing. Of a window only root (whatever tells bytes from others), offset and strides are looked at.
std::int64_t joined_already(const Graph& graph, const Node& node, const std::function<Window(ValueId)>& window_of);

}  // namespace tapedeck
