// The kernels of create.inl for the device.
#include <tapedeck/kernels/cuda/creation/create.inl>
