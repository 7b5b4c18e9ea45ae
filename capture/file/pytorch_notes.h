// Sentences about tensors that PyTorch's files have and a net has not, or the other way round: what the tensor is, why it has
// no place, and what to do. A name alone does not tell this to the owner of the weights.
#pragma once

#include <tapedeck/engine/nn/module.h>

#include <string>

namespace tapedeck {

// About a tensor of the file that the net has no place for. `name` is the net's path of the module and PyTorch's name of the
// parameter. Empty if nothing is known about the name.
std::string note_on_unexpected(const Module& net, const std::string& name);

// About a parameter of the net that the file lacks. Empty if nothing is known about it.
std::string note_on_missing(const Module& net, const std::string& name);

}  // namespace tapedeck
