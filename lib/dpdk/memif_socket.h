/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_MEMIF_SOCKET_H
#define UR_DPDK_MEMIF_SOCKET_H

/* The state of a memif socket path. A memif server that dies does not remove its socket. */
enum ur_memif_socket {
	UR_MEMIF_SOCKET_NONE,  /* nothing */
	UR_MEMIF_SOCKET_LIVE,  /* a server is listening */
	UR_MEMIF_SOCKET_STALE, /* a socket without a listener; safe to unlink */
	UR_MEMIF_SOCKET_OTHER, /* not a socket, or no permission */
};

/* Returns the state of `path`. A server does not notice this. */
enum ur_memif_socket ur_memif_socket(const char *path);

/*
 * Permits the driver a socket in a directory that this process may not write to. The driver wants to write there whatever
 * the role is, but only a server has to, and preflight checks that. Call it before a device is made.
 */
void ur_memif_permit_directory(void);

#endif
