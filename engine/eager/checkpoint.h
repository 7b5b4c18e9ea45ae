// Checkpoint regions with several results, and with a name, stretches inside of a region that stay out of it, and marks for
// single values. checkpoint() in tape.h says what a region is.
#pragma once

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Runs fn as a checkpoint region, and returns its results; all of them stay in memory. Backward computes the other values again
// once, whichever results it comes from. If it comes from some of them only, the values that the region read stay until the
// loss and all results are gone. If the name is not empty, the module path of the nodes inside ends in it, as in a
// PathScope: so graphs, plans and traces show the region, and draws inside have streams of their own.
//     const std::vector<Tensor> qkv = checkpoint([&] { return std::vector<Tensor>{wq(x), wk(x), wv(x)}; }, "projections");
std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>()>& fn, const std::string& name = {});
Tensor checkpoint(const std::function<Tensor()>& fn, const std::string& name);

// Runs fn, and returns its results. Inside a checkpoint region, the ops of fn do not belong to the region: backward does not
// compute them again. What their gradients read, and their results that the region or later code reads, stays in memory as it
// does outside of regions. A region that opens inside fn is one of its own. In a capture, strategy `regions` keeps them too;
// other strategies may choose otherwise, and keep() below holds for all of them. Outside of a region this only runs fn. Values
// and gradients are the same bits as without regions.
//     Tensor y = checkpoint([&] {
//       const Tensor scores = keep_here([&] { return costly(x); });   // runs once
//       return gelu(norm(scores));                                    // runs again in backward
//     });
Tensor keep_here(const std::function<Tensor()>& fn);
std::vector<Tensor> keep_here(const std::function<std::vector<Tensor>()>& fn);

// Mark the op that made the tensor, inside or outside of a checkpoint region, and return the same tensor: plans of a capture
// keep what the op made and never compute it again, or do not keep it between its readers and compute it again where that is
// possible. The graph of the capture has the mark as the note `[keep]` or `[recompute]`; a later mark replaces an earlier one.
// Marks change no values, and nothing of how eager code runs. A tensor that no op of the open tape made (an input, a parameter,
// an undefined tensor) is returned without a mark.
//     Tensor h = keep(matmul(x, w));
//     Tensor y = neg(recompute(exp(h)));
Tensor keep(const Tensor& x);
Tensor recompute(const Tensor& x);

}  // namespace TAPEDECK_API
