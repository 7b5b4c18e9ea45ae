// The kernels of rows.inl for the device.
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/normalization/rows.inl>
