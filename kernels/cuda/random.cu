// The CUDA kernels of random draws. The work of one thread is in random.inl; philox.h describes the streams.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/cuda/launch.cuh>
#include <tapedeck/kernels/cuda/random.inl>

namespace tapedeck::kernels {
namespace cuda {
namespace {

template <class T>
__global__ void uniform_kernel(const Draw<T> draw) {
  uniform_thread(draw, thread_index(), thread_count());
}

template <class T>
__global__ void normal_kernel(const Draw<T> draw) {
  normal_thread(draw, thread_index(), thread_count());
}

template <class T>
__global__ void dropout_kernel(const Dropout<T> drop) {
  dropout_thread(drop, thread_index(), thread_count());
}

__global__ void rng_next_kernel(const Walk<2> state) {
  const auto* in = static_cast<const std::int64_t*>(state.data[1]);
  auto* out = static_cast<std::int64_t*>(state.data[0]);
  out[0] = in[0];
  out[1] = Add{}(in[1], std::int64_t{1});
}

template <class T>
Draw<T> draw_of(const KernelCall& call) {
  const auto& attrs = call.attributes<RandomAttrs>();
  return {call.inputs[0].as<std::int64_t>(), fnv1a64(attrs.path.view()), call.outputs[0].numel(),
          call.outputs[0].as<T>(),           static_cast<T>(attrs.low),  static_cast<T>(attrs.high)};
}

}  // namespace
}  // namespace cuda

namespace cuda TAPEDECK_API {

void uniform(const KernelCall& call) {
  cpu::for_floats(call, call.outputs[0].dtype, [&](auto t) {
    const auto draw = draw_of<decltype(t)>(call);
    launch(call, &uniform_kernel<decltype(t)>, for_items(draw.blocks()), draw);
  });
}

void normal(const KernelCall& call) {
  cpu::for_floats(call, call.outputs[0].dtype, [&](auto t) {
    const auto draw = draw_of<decltype(t)>(call);
    launch(call, &normal_kernel<decltype(t)>, for_items(draw.blocks()), draw);
  });
}

void dropout(const KernelCall& call) {
  const auto& attrs = call.attributes<DropoutAttrs>();
  cpu::for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    const Dropout<T> drop{call.inputs[1].as<std::int64_t>(),
                          fnv1a64(attrs.path.view()),
                          call.outputs[0].numel(),
                          call.inputs[0].as<T>(),
                          call.outputs[0].as<T>(),
                          static_cast<float>(attrs.p),
                          static_cast<T>(1.0 / (1.0 - attrs.p))};
    launch(call, &dropout_kernel<T>, for_items(drop.blocks()), drop);
  });
}

void rng_next(const KernelCall& call) { launch(call, &rng_next_kernel, Launch{.threads = 1}, make_walk<2>(call)); }

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
