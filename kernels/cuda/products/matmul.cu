// The products, compiled for the device.
#include <tapedeck/kernels/cuda/products/matmul.inl>
