// Loads weights that PyTorch saved (as safetensors) into a module, with PyTorch's names and layouts.
//
//     load_weights(net, "model.safetensors");                                         // the net has PyTorch's module names
//     load_weights(net, "resnet18.safetensors", zoo::torchvision_resnet_names);       // other names: a function maps them
//
// The layers of this library know where their layout differs:
//
//     layer                              PyTorch                                  here
//     Linear                             weight [out,in]                          weight [in,out]
//     Conv*, ConvTranspose*              bias [out]                               bias [out,1,...]
//     MultiheadAttention                 in_proj_weight [3 size,size]             in_weight [size,3 size]
//                                        in_proj_bias, out_proj.weight/.bias      in_bias, out_weight (transposed), out_bias
//     Lstm, Gru, Rnn, their cells        weight_ih_l0 [gates hidden,in], ...      weight_ih_l0 [in,gates hidden]; same gates
//     BatchNorm*                         num_batches_tracked                      left out
//     Embedding, norms, the author's     same                                     same
//
// Files that this library wrote are known by their metadata: a .tape, a file of save_state(), a file of `tapedeck replay
// --save`, and what save_safetensors() wrote with the metadata {{"tapedeck.weights", "1"}}. They have the names and the layouts
// of the net, so neither `names` nor the table is used, and only the weights are read.
#pragma once

#include <tapedeck/capture/file/load_report.h>
#include <tapedeck/engine/nn/module.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <map>
#include <string>

namespace tapedeck TAPEDECK_API {

// What a tensor of a file is for a net.
struct FileWeight {
  // The net's path of the module, and PyTorch's name of the parameter: "stage1.0.a.conv.weight",
  // "block.3.attention.in_proj_weight". Empty: the tensor is left out.
  std::string name;
  bool input_first = false;  // a matrix lies as [in,out] already (Conv1D of Hugging Face), not as PyTorch's [out,in]
};
using WeightNames = std::function<FileWeight(const std::string& in_file)>;

// The names of the file are those of the net.
FileWeight pytorch_names(const std::string& in_file);

// The names that the net has for PyTorch, with the shapes of PyTorch: what load_weights() looks for.
std::map<std::string, Shape> pytorch_shapes(const Module& net);

// Writes the tensors of the file into the parameters and buffers of the net, in place. Floating tensors are converted to the
// dtype of the net (f16 weights into an f32 net, rounded to nearest in the other direction). Everything is read and checked
// before the first write. The report has the names of FileWeight::name; unexpected tensors have their names in the file. Its
// notes say what a name means that our layers have no place for, as those of weight_norm, and which option was left out. Throws
// FileError that names the file if it cannot be read, if two of its tensors have one name for the net, or if it does not fit
// and the load is strict; CaptureError inside a capture. If it throws, nothing has changed.
LoadReport load_weights(Module& net, const std::string& path, const WeightNames& names = pytorch_names,
                        LoadOptions options = {}, Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
