// The kernels of recurrent.inl for the device.
#include <tapedeck/kernels/cuda/elementwise/recurrent.inl>
