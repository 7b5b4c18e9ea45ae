// Compiles the scans for the device.
#include <tapedeck/kernels/cuda/movement/scan.inl>
