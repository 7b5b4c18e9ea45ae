// The kernels of random.inl for the device.
#include <tapedeck/kernels/cuda/creation/random.inl>
