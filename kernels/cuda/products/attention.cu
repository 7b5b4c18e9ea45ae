// Attention, compiled for the device.
#include <tapedeck/kernels/cuda/products/attention.inl>
