// Weights of a file for a model that is recorded by its name.
#pragma once

#include <tapedeck/engine/nn/module.h>

#include <string>

namespace zoo {

// Writes the weights of a safetensors file into the net of the model called `model`. The file is one of these:
// - one that this library wrote: a .tape, the state that `tapedeck replay --save` writes, or save_state(). Its names are those
// of the
//   net. The state of the optimizer and of the random numbers, which may be beside the weights, is left out.
// - any other: weights that PyTorch saved. The files of torchvision and Hugging Face fit the models of pytorch_names.h; for
// another
//   model the names are those of its modules. See capture/file/pytorch_weights.h.
// Every parameter and every buffer of the net must be in the file with its type, and nothing else. Throws FileError, which
// lists what is missing, unexpected and mismatched. If it throws, nothing has changed.
void load_model_weights(tapedeck::Module& net, const std::string& model, const std::string& path);

}  // namespace zoo
