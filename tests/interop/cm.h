/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_CM_H
#define INTEROP_CM_H

#include <netinet/in.h>

#include "session.h"

/*
 * Connections by CM, with uroce/cm.h (cm_uroce.c) or librdmacm (cm_rdmacm.c). Each returns false
 * with the reason noted. A connection owns s->qp; both are gone after cm_disconnect().
 */
enum { CM_PORT = 7480, CM_PORT_OF_NOBODY = 7481 };

/* What a refusal carries. */
#define CM_REFUSAL "not today"

bool cm_open(struct session *s);
bool cm_listen(struct session *s);
/* Waits for a request and accepts it; refuses it. */
bool cm_accept(struct session *s);
bool cm_refuse(struct session *s);
/* Connects to s->remote.gid; expects the peer's refusal, or that there is no listener. */
bool cm_connect(struct session *s);
bool cm_expect_refusal(struct session *s, bool nobody_listens);
/* Ends the connection, or waits until the peer has ended it. */
bool cm_disconnect(struct session *s, bool our_wish);
void cm_close(struct session *s);

/* The peer's address in CM's space of ports; its length is that of its family. */
struct sockaddr_storage cm_peer(const struct session *s, uint16_t port);

#endif
