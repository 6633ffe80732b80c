// Datasets, transforms and the loader.
#pragma once
#include <gradus/data/dataloader.h>
#include <gradus/data/dataset.h>
#include <gradus/data/device_prefetcher.h>
#include <gradus/data/digits.h>
#include <gradus/data/distributed_sampler.h>
#include <gradus/data/idx.h>
#include <gradus/data/image_data.h>
#include <gradus/data/running_mean.h>
#include <gradus/data/sampler.h>
#include <gradus/data/transforms.h>
