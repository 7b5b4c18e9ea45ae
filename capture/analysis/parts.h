// Values that are written straight into their place in the value that joins them, so that the join copies nothing.
//
//     %a: f32[1,8,7,7] = relu(%x)                  a and b lie side by side in the bytes of c from the start,
//     %b: f32[1,4,7,7] = conv2d(%a, %w)            and the concat has nothing to do
//     %c: f32[1,12,7,7] = concat(%a, %b) {axis=1}
//
// The value c may be a part of another join, so a chain of joins lies in one buffer. Ops declare joins (Op::part); no pass and
// no analysis names them. A part is a window on a later value. The bytes live from the node that makes the first part to the
// last reader of any part.
#pragma once

#include <tapedeck/capture/analysis/alias.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck {

// By value: the result of the join in which the value lies; kNone: the value has bytes of its own.
using PartChoice = std::vector<ValueId>;

// A value that could lie in the result of a join.
struct PartPlace {
  ValueId part = kNone, whole = kNone;
  friend bool operator==(const PartPlace&, const PartPlace&) = default;
};

// Where the own bytes of a value belong: elsewhere (an input, a state, a constant), in the arena, or in an output slot of the
// caller. An output slot can hold the parts of a join, but its value cannot be a part.
enum class Room : std::uint8_t { elsewhere, arena, slot };

// The facts about the graph without parts.
struct JoinFacts {
  const Graph& graph;
  const Readers& readers;
  const std::vector<Window>& windows;
  const std::vector<Room>& rooms;  // by value
};

// Every operand that could be a part of a join, the first join first. A value has one entry for each join that reads it.
std::vector<PartPlace> find_part_places(const JoinFacts& facts);

// Joins every value that can be joined, each in the first join that could have it.
PartChoice join_all(const JoinFacts& facts);

// Joins the values that these windows place in a join.
PartChoice choice_of(const std::vector<Window>& windows);

// By value: where the chosen parts lie; root == kNone for a value that is no part. A value may be a part under these
// conditions:
//   - a node makes it that is no clone and in no checkpoint region (recomputed values have bytes of their own), and it is no
//   window;
//   - its maker can write the strides: every maker can if they are dense; elementwise and joining kernels always can;
//   - all its readers take the strides, and no view of it would have to become a copy;
//   - the same join does not have it already by an earlier operand.
// O(values, operands and their readers).
std::vector<Window> find_parts(const JoinFacts& facts, const PartChoice& choice);

// By operand of a joining node: its offset in the result, in elements, if the result has these strides. O(operands).
std::vector<std::int64_t> part_offsets(const Graph& graph, const Node& joiner, const std::int64_t* strides);

// The place of operand `input` of a joining node in the result, which lies as `whole` says. `offset` is the one that
// part_offsets() gives for the operand. The place is a window for `part`, the value that the operand shows whole. False if no
// strides of `part` express the place. O(1).
bool place_part(const Graph& graph, const Node& joiner, int input, std::int64_t offset, const Window& whole, ValueId part,
                Window* place);

// The number of elements of the result that a joining node finds in place. If it is all of them, the node has nothing to do. 0
// for ops that join nothing. Of a window only root (any number that tells buffers apart), offset and strides are read.
std::int64_t joined_already(const Graph& graph, const Node& node, const std::function<Window(ValueId)>& window_of);

}  // namespace tapedeck
