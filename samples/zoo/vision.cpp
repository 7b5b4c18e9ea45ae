#include <tapedeck/samples/zoo/vision.h>

#include <fmt/format.h>

namespace zoo {

namespace {
ConvOptions without_bias(ConvOptions options) {
  options.bias = false;
  return options;
}
}  // namespace

ConvNorm::ConvNorm(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, ConvOptions options,
                   Activation act)
    : Module(parent, name), conv(*this, "conv", in, out, without_bias(options)), norm(*this, "norm", out), activation(act) {}

Tensor ConvNorm::operator()(const Arg& x) {
  const ModuleScope scope(*this, x.site());
  const Tensor y = norm(conv(x));
  return activation ? activation(y) : y;
}

ConvOptions same_size(std::int64_t kernel, std::int64_t stride, std::int64_t groups) {
  return {.kernel = {kernel}, .stride = {stride}, .padding = {kernel / 2}, .groups = groups};
}

Tensor plane_means(const Tensor& x) { return flatten(global_avg_pool(x), 1); }

void require_multiple(const std::string& model, const ModelOptions& options, std::int64_t block) {
  if (options.image % block != 0)
    throw UsageError(fmt::format("model {}: image must be a multiple of {}, not {}", model, block, options.image));
}

}  // namespace zoo
