// The steps of a call, shared by dispatch.cpp and inplace.cpp.
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tensor_impl.h>

#include <vector>

namespace tapedeck {

struct Signature;

// One run of an op: operands in, results out.
struct Call {
  const Op& op;
  detail::TensorImpl* const* in;
  int n;
  const void* attrs;
  Site site;
  std::vector<Type> spilled;  // output types where the signature cache does not serve
  const Type* out_types = nullptr;
  int n_out = 0;
  Signature* signature = nullptr;
};

// Types of the results, from the cache of signatures or by inference. Throws TypeError with the call's site.
void infer(Call& c, std::span<const Type> declared);
// Runs the kernel on operands of a layout it takes, or on any; into results that have memory.
void run_kernel(const Op& op, detail::TensorImpl* const* in, int n, const void* attrs, detail::TensorImpl* const* out,
                int n_out, Site site);
void run_with_layouts(const Op& op, detail::TensorImpl* const* in, int n, const void* attrs, detail::TensorImpl* const* out,
                      int n_out, Site site);
detail::TensorImpl* dense_copy(const detail::TensorImpl& t, Site site);
// Which operands need a gradient, as a bit set whose last bit stands for all the rest.
std::uint32_t need_of(const Call& c, const Recorder& tape);
// Appends the node, with what its vjp keeps. In place nothing moves into the forward pass: the operands may be gone.
NodeId record_node(Call& c, std::uint32_t need, detail::TensorImpl* const* out, bool in_place = false);
// NaN check and dumps, where the settings ask for them.
void watch_results(const Call& c, detail::TensorImpl* const* out);

}  // namespace tapedeck
