// What backward must keep of a node, derived from the op's vjp: it is traced once per signature on abstract tensors.
//
// Where a part of the traced fragment reads only forward values and makes something smaller that carries no gradient (a mask,
// an index), that part moves into the forward pass and its small result is kept instead of the operands (MegEngine's optimized
// backward graph does this per op, by a list of cheap ops; here the bytes decide).
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

// Bit i = operand i, bit 32 + i = result i; bits 31 and 63 stand for operand or result 31 and all after it.
using SaveMask = std::uint64_t;
constexpr SaveMask operand_bit(std::size_t i) { return SaveMask{1} << (i < 31 ? i : 31); }
constexpr SaveMask result_bit(std::size_t k) { return SaveMask{1} << (k < 31 ? 32 + k : 63); }

// Where a call of the vjp runs.
enum class CallPart : std::uint8_t {
  backward,
  forward,  // in the forward pass, and only other such calls read it
  kept,     // in the forward pass; its results are kept for backward
  both,     // reads no value at all, and both parts want it
};

struct Derived {
  SaveMask saves = 0;            // operands and results that backward reads as they are
  std::vector<const Op*> calls;  // the vjp's calls in order; empty if all of it runs in backward
  std::vector<CallPart> parts;   // parallel to calls
  bool two_parts() const { return !calls.empty(); }
};

// Cached per op, types, attributes and need; the answer lives for the whole process. `need` marks operands that need a
// gradient; its last bit stands for operand 31 and all after it. `two_parts`: whether a part may move into the forward pass.
// Thread safe.
const Derived& derive(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs,
                      std::uint32_t need, bool two_parts = true);

// The answer that keeps these operands and results, whatever the op.
const Derived& saving(SaveMask saves);

// A vjp that runs in two parts, counted call by call: dispatch asks what to do with each.
struct VjpCalls {
  const Derived& derived;
  std::vector<Tensor>& kept;  // filled by the forward part, read by the backward part
  bool forward = false;
  bool inside = false;  // a call is being made
  std::size_t next = 0, taken = 0;
};

// Runs the forward part of a node's vjp and returns what it keeps. Operands and results must have data (or all be abstract).
std::vector<Tensor> run_forward_part(const Op& op, const Derived& derived, std::span<detail::TensorImpl* const> in,
                                     std::span<detail::TensorImpl* const> out, const void* attrs, std::uint32_t need,
                                     Site site);

}  // namespace tapedeck
