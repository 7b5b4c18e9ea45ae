// The kernels of adaptive.inl on the device.
#include <tapedeck/kernels/cuda/pooling/adaptive.inl>
