// The kernels of functions of one operand, and of mathematical functions, for the device.
#include <tapedeck/kernels/cuda/elementwise/functions.inl>
#include <tapedeck/kernels/cuda/elementwise/unary.inl>
