// The kernels of compare.inl for the device.
#include <tapedeck/kernels/cuda/elementwise/compare.inl>
