// The kernels of activations, and of recurrent cells, for the device.
#include <tapedeck/kernels/cuda/elementwise/activations.inl>
#include <tapedeck/kernels/cuda/elementwise/recurrent.inl>
