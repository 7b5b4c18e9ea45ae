// The kernels of unary.inl for the device.
#include <tapedeck/kernels/cuda/elementwise/unary.inl>
