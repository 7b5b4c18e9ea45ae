// Derives which operands and results of a node backward must keep. The op's vjp is traced once per signature, on abstract
// tensors, to see which values it reads.
//
// Some calls of a vjp read only operands and results, and make a smaller value that has no gradient (a mask, an index). Such
// calls move into the forward pass, and their small result is kept in place of the operands:
//
//       maximum(a, b)     backward reads less(a, b)     keep the bool mask, not a and b
//
// MegEngine's optimized backward graph does this for each op with a list of cheap ops. Here the number of bytes decides.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

// Bit i stands for operand i, and bit 32 + i for result i. Bit 31 stands for operand 31 and all after it, and bit 63 for
// result 31 and all after it.
using SaveMask = std::uint64_t;
constexpr SaveMask operand_bit(std::size_t i) { return SaveMask{1} << (i < 31 ? i : 31); }
constexpr SaveMask result_bit(std::size_t k) { return SaveMask{1} << (k < 31 ? 32 + k : 63); }

// In which pass a call of a vjp runs.
enum class CallPart : std::uint8_t {
  backward,
  forward,  // in the forward pass; only other calls of the forward pass read its results
  kept,     // in the forward pass; its results are kept for backward
  both,     // in both passes: it reads no value, and calls of both passes read its results
};

struct Derived {
  SaveMask saves = 0;            // operands and results that backward reads
  std::vector<const Op*> calls;  // the calls of the vjp in order; empty if all of them run in backward
  std::vector<CallPart> parts;   // where each call runs; parallel to calls
  bool two_parts() const { return !calls.empty(); }
};

// Derives what a node keeps. Answers are cached by op, types, attributes and `need`, and live as long as the process. `need`
// has a bit for each operand that needs a gradient; bit 31 stands for operand 31 and all after it. `two_parts` allows calls
// to move into the forward pass. Thread safe.
const Derived& derive(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs,
                      std::uint32_t need, bool two_parts = true);

// An answer that keeps the operands and results in `saves`, for any op.
const Derived& saving(SaveMask saves);

// A vjp that runs in two parts. Dispatch looks up the part of each call by its number.
struct VjpCalls {
  const Derived& derived;
  std::vector<Tensor>& kept;  // results that the forward part keeps and the backward part reads
  // Whether the forward part is running.
  bool forward = false;
  bool inside = false;  // a call is running
  std::size_t next = 0, taken = 0;
};

// Runs the forward part of a node's vjp and returns the values that it keeps. REQUIRES: all operands and results have data,
// or all are abstract.
std::vector<Tensor> run_forward_part(const Op& op, const Derived& derived, std::span<detail::TensorImpl* const> in,
                                     std::span<detail::TensorImpl* const> out, const void* attrs, std::uint32_t need,
                                     Site site);

}  // namespace tapedeck
