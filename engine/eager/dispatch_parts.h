// The steps of a call of an op. dispatch.cpp and inplace.cpp share them.
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tensor_impl.h>

#include <vector>

namespace tapedeck {

struct Signature;
struct ThreadState;

// One call of an op and its operands. infer() fills in the output types.
struct Call {
  const Op& op;
  detail::TensorImpl* const* in;
  int n;
  const void* attrs;
  Site site;
  std::vector<Type> spilled;  // the output types, if the signature cache does not hold them
  const Type* out_types = nullptr;
  int n_out = 0;
  Signature* signature = nullptr;
};

// Finds the types of the results in the signature cache, or by inference. Throws TypeError with the site of the call.
void infer(Call& c, std::span<const Type> declared);
// Both functions run the kernel and write into results that have memory. run_kernel REQUIRES operands with strides that the
// kernel takes; run_with_layouts copies operands whose strides it does not take.
void run_kernel(const Op& op, detail::TensorImpl* const* in, int n, const void* attrs, detail::TensorImpl* const* out,
                int n_out, Site site);
void run_with_layouts(const Op& op, detail::TensorImpl* const* in, int n, const void* attrs, detail::TensorImpl* const* out,
                      int n_out, Site site);
// The view of an operand that the kernel gets; `out` is the shape of the first result, or null. For an elementwise op the
// operand is broadcast. For a matrix product its leading dimensions are broadcast.
void operand_view(const Op& op, const detail::TensorImpl& t, const Shape* out, View* view);
detail::TensorImpl* dense_copy(const detail::TensorImpl& t, Site site);
// A bit for each operand that needs a gradient. Bit 31 stands for operand 31 and all after it.
std::uint32_t need_of(const ThreadState& state, const Call& c, const Recorder& tape);
// Appends the node and keeps the values that its vjp reads. With `in_place`, no call of the vjp moves into the forward pass,
// because the operands may already be overwritten.
NodeId record_node(Call& c, std::uint32_t need, detail::TensorImpl* const* out, bool in_place = false);
// Throws the exception that is handled again. An error of the memory limit gets the op and the site of the call.
[[noreturn]] void rethrow_memory_limit(const Call& c);
// Checks results for NaN and lists the op, as far as the settings ask for it.
void watch_results(const Call& c, detail::TensorImpl* const* out);

}  // namespace tapedeck
