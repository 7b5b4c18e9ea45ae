// The kernels of unfold.inl on the device.
#include <tapedeck/kernels/cuda/convolution/unfold.inl>
