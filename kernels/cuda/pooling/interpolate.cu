// The kernels of interpolate.inl on the device.
#include <tapedeck/kernels/cuda/pooling/interpolate.inl>
