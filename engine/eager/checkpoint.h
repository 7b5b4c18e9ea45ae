// Checkpoint regions with several results, and with a name. checkpoint() in tape.h says what a region is.
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

}  // namespace TAPEDECK_API
