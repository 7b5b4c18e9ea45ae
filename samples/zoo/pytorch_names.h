// The names that the weights of well-known models have in their files, for load_weights():
//
//     zoo::Resnet<18> net(options);
//     load_weights(net, "resnet18.safetensors", zoo::torchvision_resnet_names);
//
// A name that no such model has stays as it is, so the load reports it as unexpected. One number that is no weight differs: the
// norms of torchvision's vision transformer have eps 1e-6, and ours 1e-5.
#pragma once

#include <tapedeck/capture/file/pytorch_weights.h>

#include <string>

namespace zoo {

tapedeck::FileWeight torchvision_resnet_names(const std::string& in_file);
tapedeck::FileWeight torchvision_vgg16_names(const std::string& in_file);
tapedeck::FileWeight torchvision_vgg19_names(const std::string& in_file);
// vit_b_16, in the names of both versions of its file ("mlp.0" and "mlp.linear_1").
tapedeck::FileWeight torchvision_vit_names(const std::string& in_file);
// gpt2, with and without the prefix "transformer.". Its matrices are [in,out]. The masks of attention and the output layer,
// which is the table of embeddings, are left out.
tapedeck::FileWeight huggingface_gpt2_names(const std::string& in_file);

}  // namespace zoo
