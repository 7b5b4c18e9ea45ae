// The convolution kernels of the device (conv.inl).
#include <tapedeck/kernels/cuda/convolution/conv.inl>
