// The kernels of add_n.inl for the device.
#include <tapedeck/kernels/cuda/elementwise/add_n.inl>
