#include <tapedeck/samples/zoo/load_model_weights.h>

#include <tapedeck/capture/file/pytorch_weights.h>
#include <tapedeck/samples/zoo/pytorch_names.h>

namespace zoo {

using namespace tapedeck;

namespace {

WeightNames file_names_of(const std::string& model) {
  if (model.starts_with("resnet")) return torchvision_resnet_names;
  if (model == "vgg16") return torchvision_vgg16_names;
  if (model == "vgg19") return torchvision_vgg19_names;
  if (model == "vit_b16") return torchvision_vit_names;
  if (model == "gpt2") return huggingface_gpt2_names;
  return pytorch_names;
}

}  // namespace

void load_model_weights(Module& net, const std::string& model, const std::string& path) {
  load_weights(net, path, file_names_of(model));
}

}  // namespace zoo
