// The kernels of grouped.inl for the device.
#include <tapedeck/kernels/cuda/optimizer/grouped.inl>
