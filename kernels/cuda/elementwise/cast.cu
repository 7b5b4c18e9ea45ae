// The kernels of cast.inl for the device.
#include <tapedeck/kernels/cuda/elementwise/cast.inl>
