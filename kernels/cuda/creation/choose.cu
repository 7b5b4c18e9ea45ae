// The kernels of choose.inl for the device.
#include <tapedeck/kernels/cuda/creation/choose.inl>
