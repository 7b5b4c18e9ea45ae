// The kernels that normalize rows for the device.
#include <tapedeck/kernels/cuda/normalization/rows.inl>
