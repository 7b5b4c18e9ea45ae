// The kernels of elementwise.inl for the device.
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/loss/elementwise.inl>
