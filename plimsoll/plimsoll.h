// Plimsoll: a tensor runtime that trains and runs models inside a memory budget you set.
// This is the one header programs include.
#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/half.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/device/allocate.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/host_page_source.h"
#include "plimsoll/memory/memory_resource.h"
#include "plimsoll/memory/page_source.h"
#include "plimsoll/memory/pmr_resource.h"
#include "plimsoll/memory/reclaimer.h"
#include "plimsoll/memory/stats.h"
#include "plimsoll/memory/system_memory.h"
