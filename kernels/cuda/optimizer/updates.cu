// The kernels of updates.inl for the device.
#include <tapedeck/kernels/cuda/optimizer/updates.inl>
