// The kernels of arithmetic.inl for the device.
#include <tapedeck/kernels/cuda/elementwise/arithmetic.inl>
