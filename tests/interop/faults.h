/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_FAULTS_H
#define INTEROP_FAULTS_H

#include "session.h"

#endif
