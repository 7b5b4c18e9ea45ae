// The kernels of attention for the device.
#include <tapedeck/kernels/cuda/products/attention.inl>
#include <tapedeck/kernels/cuda/products/attention_grad.inl>
