// The kernels of softmax and of batch norms for the device.
#include <tapedeck/kernels/cuda/normalization/batch_norm.inl>
#include <tapedeck/kernels/cuda/normalization/softmax.inl>
