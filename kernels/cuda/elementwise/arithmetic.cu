// The kernels of arithmetic, comparisons, casts and sums of many operands for the device.
#include <tapedeck/kernels/cuda/elementwise/add_n.inl>
#include <tapedeck/kernels/cuda/elementwise/arithmetic.inl>
#include <tapedeck/kernels/cuda/elementwise/cast.inl>
#include <tapedeck/kernels/cuda/elementwise/compare.inl>
