// The kernels of statistics.inl for the device.
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/reduction/statistics.inl>
