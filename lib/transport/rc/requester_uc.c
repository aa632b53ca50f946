/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/uc.h"

#define CODEC_TRANSPORT UR_TRANSPORT_UC
#include "transport/rc/codec_iba.h"
#include "transport/rc/loss_uc.h"

/* The requester of UC. */
#define REQUESTER(name) ur_uc_requester_##name
#include "transport/rc/requester_template.h"
