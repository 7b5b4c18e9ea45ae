// The kernels of argmax.inl for the device.
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/reduction/argmax.inl>
