#pragma once
#include <gradus/tensor/tensor.h>
namespace gradus { Tensor neg(const Tensor&); Tensor reciprocal(const Tensor&); }
