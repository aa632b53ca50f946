/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_MEMIF_SOCKET_H
#define UR_EDGE_MEMIF_SOCKET_H

/* What is at the path of a memif socket. A memif server leaves its socket behind when it dies. */
enum ur_memif_socket {
	UR_MEMIF_SOCKET_NONE,  /* nothing */
	UR_MEMIF_SOCKET_LIVE,  /* a server listens there */
	UR_MEMIF_SOCKET_STALE, /* a socket nobody listens at; safe to unlink */
	UR_MEMIF_SOCKET_OTHER, /* a file that is no socket, or one we may not touch */
};

/* Asks the kernel only; a server notices nothing. */
enum ur_memif_socket ur_memif_socket(const char *path);

#endif
