// sum, mean, max, min and prod for the device.
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/reduction/reduce.inl>
