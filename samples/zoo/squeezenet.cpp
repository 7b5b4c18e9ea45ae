// SqueezeNet 1.1 (Iandola et al., 2016): a fire module squeezes the channels with a 1x1 convolution, and expands them with a
// 1x1 and a 3x3 convolution side by side.
#include <tapedeck/samples/zoo/vision.h>

namespace {

using namespace zoo;

struct Fire : Module {
  Conv2d squeeze, expand1, expand3;
  Fire(Module& parent, const std::string& name, std::int64_t in, std::int64_t narrow, std::int64_t wide)
      : Module(parent, name),
        squeeze(*this, "squeeze", in, narrow, 1),
        expand1(*this, "expand1", narrow, wide, 1),
        expand3(*this, "expand3", narrow, wide, 3, Padding(1)) {}
  Tensor operator()(const Arg& x) {
    const ModuleScope scope(*this, x.site());
    const Tensor h = relu(squeeze(x));
    return concat({relu(expand1(h)), relu(expand3(h))}, 1);
  }
};

struct Squeezenet : Module {
  Conv2d stem{*this, "stem", 3, 64, 3, Stride(2)};
  Fire fire2{*this, "fire2", 64, 16, 64}, fire3{*this, "fire3", 128, 16, 64};
  Fire fire4{*this, "fire4", 128, 32, 128}, fire5{*this, "fire5", 256, 32, 128};
  Fire fire6{*this, "fire6", 256, 48, 192}, fire7{*this, "fire7", 384, 48, 192};
  Fire fire8{*this, "fire8", 384, 64, 256}, fire9{*this, "fire9", 512, 64, 256};
  Dropout drop{*this, "drop", 0.5};
  Conv2d head{*this, "head", 512, kImageNetClasses, 1};

  static Tensor pool(const Arg& x) { return max_pool2d(x, {.window = {3}, .stride = {2}, .ceil_mode = true}); }
  Tensor operator()(const Tensor& x) {
    Tensor h = fire3(fire2(pool(relu(stem(x)))));
    h = fire5(fire4(pool(h)));
    h = fire9(fire8(fire7(fire6(pool(h)))));
    return plane_means(relu(head(drop(h))));
  }
};

const bool squeezenet_model = [] {
  register_model({"squeezenet",
                  "SqueezeNet 1.1 of fire modules, 1000 classes",
                  [](const ModelOptions& o) { return record_image_classifier<Squeezenet>("squeezenet", o); },
                  {"batch", "image", "dtype"},
                  {.batch = 8, .image = 224}});
  return true;
}();

}  // namespace
