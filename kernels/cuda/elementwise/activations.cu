// The kernels of activations.inl for the device.
#include <tapedeck/kernels/cuda/elementwise/activations.inl>
