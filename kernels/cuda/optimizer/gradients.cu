// The kernels of gradients.inl for the device.
#include <tapedeck/kernels/cuda/optimizer/gradients.inl>
