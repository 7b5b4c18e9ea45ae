// Calls of the author's own C++ code inside a step, in a capture and in every replay of it.
#if !defined(TAPEDECK_ENGINE_OPS_HOST_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_HOST_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/host.h>

#include <functional>
#include <vector>

#ifdef TAPEDECK_DEFINE_OPS
// The kernel stands in host.cpp, because it works with tensors, which kernels/ does not know.
#undef OP
#define OP(op_name, ...) TAPEDECK_OP_DEFINE(op_name, &run_##op_name, nullptr, __VA_ARGS__)
#endif

namespace tapedeck TAPEDECK_API {

// Every call reads the token that the call before it returned. So the order of calls follows from the order of data.
OP(on_host, {
                .doc = "calls a function of this process with its operands; results: a token that the next call reads, then "
                       "what the function returns",
                .traits = kEffect | kDeclaredTypes | kNativeHalf | kHostCall,
                .min_inputs = 0,
                .max_inputs = -1,
                .min_outputs = 1,
                .max_outputs = -1,
                .attrs = &attr_schema<HostAttrs>(),
                .infer = infer_on_host,
                .no_gradient = "it calls back into the host; exclude_from_capture() takes gradients along",
                .examples = {},
            })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Calls fn with x: now, and inside a capture also in every replay. All such calls keep their order. fn gets its own dense
// copy of x and may read it (item()); nothing that fn does is recorded. A replay calls fn on the thread that runs the node.
// An exception of fn becomes an ExecutionError with the same text and with the exception nested in it. A capture keeps fn, so
// fn must hold copies of objects that may not live as long. Returns x. A graph with such a node cannot be saved to a file.
// Abstract execution does not call fn.
using HostFunction = std::function<void(const Tensor& x)>;
const Tensor& on_host(const Tensor& x, HostFunction fn, const char* name = "",
                      Site site = {__builtin_FILE(), __builtin_LINE()});

// Runs a part of a step eagerly: fn(xs) runs as ordinary code, in a capture and in every replay, between the captured parts.
// fn may do things that a capture refuses (a branch on item()), but must return results of the same types each time.
// Gradients flow to xs; for them, backward runs fn a second time. Outside a capture this function is fn(xs). In a capture it
// throws CaptureError if a result is undefined, if a result depends on a tensor that needs a gradient and is not in xs, if the
// second run of fn returns another number of floating results, and inside a checkpoint region.
// The rules of on_host for threads, exceptions and lifetimes hold here too.
using HostStretch = std::function<std::vector<Tensor>(const std::vector<Tensor>& xs)>;
std::vector<Tensor> exclude_from_capture(const std::vector<Tensor>& xs, HostStretch fn, const char* name = "",
                                         Site site = {__builtin_FILE(), __builtin_LINE()});
#endif

}  // namespace TAPEDECK_API
#endif
