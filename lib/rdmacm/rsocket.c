/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include <rdma/rsocket.h>

/*
 * There are no rsockets: a stream over RDMA WRITEs is a protocol of its own, which librdmacm implements above rdma_cm. Without a
 * socket no other call of them is of use; names.txt lets all others fail with EOPNOTSUPP.
 */
int rsocket(int domain, int type, int protocol)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	(void)domain;
	(void)type;
	(void)protocol;
	if (!atomic_flag_test_and_set(&said))
		fprintf(stderr,
			"uroce: rsockets are not supported; let the program use TCP sockets or rdma_cm\n");
	errno = EOPNOTSUPP;
	return -1;
}
