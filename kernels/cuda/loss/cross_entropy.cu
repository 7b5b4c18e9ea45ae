// The kernels of cross_entropy.inl for the device.
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/loss/cross_entropy.inl>
