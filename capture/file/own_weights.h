// Weights in files that this library wrote: they have the names of the net, and lie as the net has them.
//
//     file                                   written by                          name of fc.weight     known by
//     .tape                                  record, save_tape(), replay --save  state/fc.weight       its tensor `graph`
//     the state of a training                save_state()                        net/fc.weight         tapedeck.state
//     weights alone                          replay --save, or an author who     fc.weight             tapedeck.weights
//                                            gives save_safetensors() this key
#pragma once

#include <tapedeck/capture/file/pytorch_weights.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/eager/tensor.h>

#include <map>
#include <optional>
#include <string>

namespace tapedeck {

// Returns the prefix that all names of weights have in the file; nullopt if another program wrote the file.
std::optional<std::string> own_weights_prefix(const TensorFile& file);

// The names of the net's parameters and buffers, with the tensors.
std::map<std::string, Tensor> own_tensors_of(const Module& net);

// The names of a file with this prefix. Tensors without the prefix are left out, and so are moments, counters and the random
// state, which stand beside the weights. REQUIRES: the arguments outlive the result.
WeightNames own_names(const TensorFile& file, const std::string& prefix, const std::map<std::string, Tensor>& net);

}  // namespace tapedeck
