/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_VERBS_H
#define INTEROP_VERBS_H

/*
 * Both ends of a scenario are built from one source. V(create_qp) is uroce_create_qp() outside the
 * guest, and ibv_create_qp(), with the kernel's rxe, in the guest.
 */
#ifdef INTEROP_UROCE
#include "uroce/uroce.h"
#define V(name)	  uroce_##name
#define OUR_NAME  "uroce"
#define PEER_NAME "rxe"
#else
#include <infiniband/verbs.h>
#define V(name)	  ibv_##name
#define OUR_NAME  "rxe"
#define PEER_NAME "uroce"
#endif

#endif
