// The launch of pointwise kernels (pointwise.inl) on the device; simt.h has the launch itself.
#pragma once

#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/pointwise.inl>

namespace tapedeck::kernels::cuda {

template <class F, class Out, class... In>
__global__ void map_kernel(const Walk<1 + sizeof...(In)> walk) {
  map_thread<Out, In...>(walk, F{}, thread_index(), thread_count());
}

struct DeviceLaunch {
  template <class Out, class... In, class F>
  static void map(const KernelCall& call, const F&) {
    const auto walk = make_walk<1 + sizeof...(In)>(call);
    launch<Walk<1 + sizeof...(In)>>(call, &map_kernel<F, Out, In...>, for_items(walk.n), walk);
  }
};

// Defines the function that the op registry links to under this name.
#define TAPEDECK_DEVICE_KERNEL(name, family, functor) \
  void name(const KernelCall& call) { family<DeviceLaunch, functor>(call); }

}  // namespace tapedeck::kernels::cuda
