// Calling the author's own code from inside a step, in a capture and in every replay of it.
#if !defined(TAPEDECK_ENGINE_OPS_HOST_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_HOST_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/host.h>

#include <functional>
#include <vector>

#ifdef TAPEDECK_DEFINE_OPS
// The kernel stands in host.cpp: it deals in tensors, which kernels/ does not know.
#undef OP
#define OP(op_name, ...) TAPEDECK_OP_DEFINE(op_name, &run_##op_name, nullptr, __VA_ARGS__)
#endif

namespace tapedeck TAPEDECK_API {

// The token makes the order of calls an order of data: every later call reads the token of the one before.
OP(on_host, {
                .doc = "calls a function of this process with its operands; results: a token that the next call reads, then "
                       "what the function returns",
                .traits = kEffect | kDeclaredTypes | kNativeHalf,
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
// ---- what authors call ----

// Shows x to fn: at once, and in a capture also in every replay, in the order of all such calls. fn gets a dense copy of its
// own and may read it freely (item()); nothing it does is recorded. In a replay it runs on whatever thread runs the node, and
// an exception becomes an ExecutionError that carries its text and nests it. A capture keeps fn: capture by value what may not
// outlive the call. Returns x. A graph with such a node cannot be saved to a file. Abstract execution does not call fn.
using HostFunction = std::function<void(const Tensor& x)>;
const Tensor& on_host(const Tensor& x, HostFunction fn, const char* name = "",
                      Site site = {__builtin_FILE(), __builtin_LINE()});

// A stretch of a step that stays eager: fn(xs) runs as ordinary code, in a capture and in every replay, between captured
// stretches. It may do what a capture refuses (item() that decides a branch), must return results of the same types every time,
// and gradients flow through it to xs: backward runs fn a second time. Throws CaptureError in a capture if a result depends on
// another tensor that needs a gradient (pass that too), or inside a checkpoint region. Outside a capture it is fn(xs). What is
// said of on_host holds here too.
using HostStretch = std::function<std::vector<Tensor>(const std::vector<Tensor>& xs)>;
std::vector<Tensor> exclude_from_capture(const std::vector<Tensor>& xs, HostStretch fn, const char* name = "",
                                         Site site = {__builtin_FILE(), __builtin_LINE()});
#endif

}  // namespace TAPEDECK_API
#endif
