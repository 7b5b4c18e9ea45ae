// The kernels of functions.inl for the device.
#include <tapedeck/kernels/cuda/elementwise/functions.inl>
