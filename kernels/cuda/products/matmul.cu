// The kernels of matrix products for the device.
#include <tapedeck/kernels/cuda/products/matmul.inl>
