// The gradient of attention, compiled for the device.
#include <tapedeck/kernels/cuda/products/attention_grad.inl>
